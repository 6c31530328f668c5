package lineage

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/structure"
)

// The kinds of usage.
const (
	Message  = structure.MessageUsage
	Document = structure.DocumentUsage
	Asset    = structure.AssetUsage
)

// Item is something to add to a history: content and its usage. The zero Kind is a message. Content
// is given as Body, as Reader if it is large, or as the id of stored Content. Without any of them
// it is empty.
type Item struct {
	Kind structure.UsageKind
	// Role and Name are for messages. Name defaults to the role.
	Role, Name string
	// Document and Revision are for document revisions. Extend numbers a revision without a number,
	// and refuses a number that has other content in the history (ErrExists). A revision is derived
	// from the one before it unless Origin names another parent.
	Document string
	Revision uint64
	// Filename is for assets.
	Filename string

	Body    []byte
	Reader  io.Reader
	Content ContentID
	// parts are the usages of the entry that the item was made from. They apply while Content is the entry's.
	parts []structure.Usage
	// at is the span of that entry.
	at SpanRef
	// with are the other items of the same span: see Together.
	with []Item
	// joins is set if the item belongs to the span of the previous item.
	joins bool

	// Type is the media type. Default: the type that Content was stored with; else
	// application/octet-stream for an asset and text/plain otherwise.
	Type string
	// Origin is where the content comes from. Its Kind defaults to that of the role.
	Origin Origin
	// SourceID is an id chosen by the caller, unique in the thread: see Thread.Find. Metadata is
	// JSON of the caller, kept byte for byte.
	SourceID string
	Metadata []byte
	// CreatedAt defaults to now.
	CreatedAt time.Time
}

// User returns a user's message.
func User(text string) Item { return textMessage("user", text) }

// Assistant returns a model's message.
func Assistant(text string) Item { return textMessage("assistant", text) }

// System returns a system message.
func System(text string) Item { return textMessage("system", text) }

// Together returns an item that adds all the items as one span: one step of the history with several
// usages, such as a message and its attachments, or calls of tools and their results. The methods that
// add to a history accept it; Edit and Return, which take a single item, refuse it. Its fields are
// those of the first item.
func Together(items ...Item) Item {
	if len(items) == 0 {
		return Item{}
	}
	all := items[0]
	all.with = slices.Concat(all.with, items[1:])
	return all
}

// flat returns the items with those of Together in line, marked as joined.
func flat(items []Item) []Item {
	if n := count(items); n != len(items) {
		return appendFlat(make([]Item, 0, n), items, false)
	}
	return items
}

func appendFlat(dst, items []Item, joined bool) []Item {
	for i := range items {
		item := items[i]
		with := item.with
		item.with, item.joins = nil, item.joins || joined
		dst = appendFlat(append(dst, item), with, true)
	}
	return dst
}

// count returns the number of items, including those in items of Together.
func count(items []Item) int {
	n := len(items)
	for i := range items {
		n += count(items[i].with)
	}
	return n
}

func textMessage(role, text string) Item { return Item{Role: role, Body: []byte(text)} }

// From returns the item with the model that produced it.
func (i Item) From(model string) Item {
	i.Origin.ModelID = model
	return i
}

// WithID returns the item with a source id.
func (i Item) WithID(id string) Item {
	i.SourceID = id
	return i
}

// Entry is a usage as read from a history.
type Entry struct {
	// Position is the position of its span in the history, from 1.
	Position uint64
	Span     SpanRef
	// Index is its position in the span.
	Index int
	// Commit is the number of the commit that added it.
	Commit uint64

	Kind       structure.UsageKind
	Role, Name string
	Document   string
	Revision   uint64
	Filename   string
	Content    ContentID
	// Type, Origin and CreatedAt are those of this usage; where it states none, those first
	// recorded with the content.
	Type     string
	Origin   Origin
	SourceID string
	// Metadata is nil if it was erased. MetadataContent is the content with the metadata. It is zero if the metadata
	// has nothing that could be erased, but only ids, times, numbers and names of kinds.
	Metadata        []byte
	MetadataContent ContentID
	CreatedAt       time.Time
	// Set is the span set that the entry's span is an alternative in, else zero.
	Set structure.SpanSetID

	// Pieces are the pieces of a message given as JSON, in order, or nil for a message that is a single piece. With
	// pieces, Content is the first text, or the first piece if there is no text.
	Pieces []Piece

	// Body is the body as it was given. It must not be changed. It is nil if it is larger than content.InlineLimit
	// (64 KiB), or if a part of it was erased, which sets Erased. Store.Original returns bodies of any size. Size is
	// the length of the body. For a message of several pieces with a nil Body it is the length of the pieces.
	Size   int64
	Body   []byte
	Erased bool

	// parts are the usages of a message. message has its pieces and form. It is nil for a plain body.
	parts   []structure.Usage
	message *form.Message
	// searchRole is what SearchRole returns.
	searchRole string
}

// SearchRole returns the role by which searches and logs find a message. It is tool for a message of the role user that has
// only results of tools, because some formats give these to the user. Else it is Role.
func (e *Entry) SearchRole() string { return e.searchRole }

// Piece is a part of a message: a text, a tool call, a tool result, a file.
type Piece struct {
	Kind structure.PieceKind
	// Tool is the name of the called tool.
	Tool    string
	Content ContentID
	Type    string
	// Size, Body and Erased are as in Entry.
	Size   int64
	Body   []byte
	Erased bool
}

// The kinds of piece.
const (
	TextPiece      = structure.TextPiece
	ReasoningPiece = structure.ReasoningPiece
	InputPiece     = structure.InputPiece
	OutputPiece    = structure.OutputPiece
	FilePiece      = structure.FilePiece
	DataPiece      = structure.DataPiece
)

// Excerpt returns the text of the entry as far as it was loaded with the entry. A body that is not loaded is a note
// in brackets, such as "[text/plain, 70000 bytes]" or "[erased]". Store.Text returns texts of any size.
func (e *Entry) Excerpt() string {
	switch {
	case e.message != nil:
		return form.Tell(e.message.Pieces)
	case e.Erased || e.Body == nil && e.Size > 0:
		return e.note()
	}
	return string(e.Body)
}

// Contents returns the ids of the entry's content that is not erased: its pieces or body, and its
// metadata. Erasing all of them removes the entry's content from the store, also for other entries
// with the same content: see Store.Where.
func (e *Entry) Contents() []ContentID {
	var ids []ContentID
	add := func(id ContentID, there bool) {
		if there && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for i := range e.Pieces {
		add(e.Pieces[i].Content, !e.Pieces[i].Erased)
	}
	if len(e.Pieces) == 0 {
		add(e.Content, !e.Erased)
	}
	add(e.MetadataContent, e.Metadata != nil && !e.MetadataContent.IsZero())
	return ids
}

// note is the text for a body that is not shown.
func (e *Entry) note() string {
	if e.Erased {
		return form.Erased
	}
	return fmt.Sprintf("[%s, %d bytes]", e.Type, e.Size)
}

// isZero reports whether an item has no content and no usage.
func (i *Item) isZero() bool {
	return i.Kind == 0 && i.Role == "" && i.Body == nil && i.Reader == nil && i.Content.IsZero()
}

// Item returns an item that adds the same content with the same usage elsewhere.
func (e *Entry) Item() Item {
	return Item{
		Kind: e.Kind, Role: e.Role, Name: e.Name, Document: e.Document, Revision: e.Revision, Filename: e.Filename,
		Content: e.Content, Type: e.Type, Origin: e.Origin, Metadata: e.Metadata, CreatedAt: e.CreatedAt, parts: e.parts, at: e.Span,
	}
}

// Result returns a message with the content of the entry, without its author and time, as the result of a subagent.
func (e *Entry) Result(role string) Item {
	i := e.Item()
	return Item{Role: role, Content: i.Content, Type: i.Type, parts: i.parts}
}

var (
	errTogether      = fmt.Errorf("several items together where one is expected: %w", ErrInvalid)
	errSeveralBodies = fmt.Errorf("item has more than one of body, reader and content id: %w", ErrInvalid)
)

// check validates an item and fills in defaults.
func (i *Item) check(now time.Time) error {
	if i.Kind == 0 {
		i.Kind = Message
	}
	if i.CreatedAt.IsZero() {
		i.CreatedAt = now
	}
	sources := 0
	for _, given := range []bool{i.Body != nil, i.Reader != nil, !i.Content.IsZero()} {
		if given {
			sources++
		}
	}
	switch {
	case sources > 1:
		return errSeveralBodies
	case sources == 0:
		i.Body = []byte{}
	}
	switch i.Kind {
	case Message:
		if i.Role == "" {
			return fmt.Errorf("message without a role: %w", ErrInvalid)
		}
	case Document:
		if i.Document == "" {
			return fmt.Errorf("document revision without a document: %w", ErrInvalid)
		}
	case Asset:
		if i.Filename == "" {
			return fmt.Errorf("asset without a filename: %w", ErrInvalid)
		}
	default:
		return fmt.Errorf("%v: %w", i.Kind, ErrInvalid)
	}
	if i.Origin.Kind == content.OriginUnknown && i.Kind == Message {
		i.Origin.Kind = content.OriginOfRole(i.Role)
	}
	if i.Type == "" && i.Content.IsZero() {
		i.Type = content.TypeText
		if i.Kind == Asset {
			i.Type = content.TypeBinary
		}
	}
	return nil
}
