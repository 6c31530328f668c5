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

// Item is something to add to a history: content and what it is used as. The
// zero Kind is a message. Content is given in one of three ways: as Body, as
// Reader for what is large, or as the id of content that the store has. Without any of
// them it is empty.
type Item struct {
	Kind structure.UsageKind
	// Role and Name are a message's. Name may be left empty where it is the role.
	Role, Name string
	// Document and Revision are a document revision's. Extend gives a revision without a number the next
	// one that its history does not have, and refuses a number that the history has with other content
	// (ErrExists). A revision is derived from the one before it, unless its Origin names another parent.
	Document string
	Revision uint64
	// Filename is an asset's.
	Filename string

	Body    []byte
	Reader  io.Reader
	Content ContentID
	// parts are the usages of the entry that the item was made from, if its Content is still
	// that entry's.
	parts []structure.Usage
	// at is the span of that entry.
	at SpanRef
	// joins is set where the item belongs to the span of the item before it.
	joins bool

	// Type is the media type. Default: text/plain for a message or document,
	// application/octet-stream for an asset, or what Content was stored with.
	Type string
	// Origin is who brought it. Its Kind defaults to what the role says.
	Origin Origin
	// SourceID is an id of the caller's choice, unique in the thread: see Thread.Find.
	// Metadata is JSON of the caller's, kept byte for byte.
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

// ToolResult returns what a tool answered.
func ToolResult(tool, text string) Item {
	i := textMessage("tool", text)
	i.Name = tool
	return i
}

// Together returns the items as they are added as one span: one step of the history with several
// usages, such as a message and the files that came with it.
func Together(items ...Item) []Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].joins = i > 0
	}
	return items
}

func textMessage(role, text string) Item { return Item{Role: role, Body: []byte(text)} }

// From returns the item with the model that made it.
func (i Item) From(model string) Item {
	i.Origin.ModelID = model
	return i
}

// WithID returns the item with an id of the caller's choice.
func (i Item) WithID(id string) Item {
	i.SourceID = id
	return i
}

// Entry is a usage as it is read from a history.
type Entry struct {
	// Position is its span's place in the history, from 1.
	Position uint64
	Span     SpanRef
	// Index is its place in the span.
	Index int
	// Commit is the number of the commit that added it.
	Commit uint64

	Kind       structure.UsageKind
	Role, Name string
	Document   string
	Revision   uint64
	Filename   string
	Content    ContentID
	// Type, Origin and CreatedAt are this usage's own where they differ from
	// what was first recorded with the content.
	Type     string
	Origin   Origin
	SourceID string
	// Metadata is nil if it was erased. MetadataContent is the content that it is, zero where it says
	// nothing that could be erased: only ids, times, numbers and names of kinds.
	Metadata        []byte
	MetadataContent ContentID
	CreatedAt       time.Time
	// Set is the span set it is an alternative in, else zero.
	Set structure.SpanSetID

	// Pieces are what a message says, in its order, where it was given as JSON that was taken
	// apart; nil for a message that is its only piece. Content is the first text of them, or
	// the first piece if there is no text.
	Pieces []Piece

	// Body is what was given. It is nil when that is too large to come along, which is beyond
	// content.InlineLimit (64 KiB), or if some of it was erased, which Erased tells.
	// Store.Original returns one of any size. Body must not be changed. Size is its length;
	// of a message of several pieces whose Body is nil it is the length of these.
	Size   int64
	Body   []byte
	Erased bool

	// parts are the message's usages, and said its pieces with their form.
	parts []structure.Usage
	said  *form.Message
}

// Piece is a part of a message: a text, a call of a tool, what came of one, a file.
type Piece struct {
	Kind structure.Piece
	// Tool is the tool that was called.
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

// Text returns what was said, for people and models to read. Of a message that was given as
// JSON these are its texts, a line for each call of a tool and for what came of it, and a note
// for each file. A body that is not at hand is a note in brackets, such as
// "[text/plain, 70000 bytes]" or "[erased]". Store.Text reads bodies of any size.
func (e *Entry) Text() string {
	switch {
	case e.said != nil:
		return form.Tell(e.said.Pieces)
	case e.Erased || e.Body == nil && e.Size > 0:
		return e.note()
	}
	return string(e.Body)
}

// Contents returns the content that the entry is and that was not erased: its pieces, or the
// whole body, and its metadata. Erasing all of it takes what was said out of the store. Other
// entries that say the same have it too: see Store.Where.
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

// note is what is said of a body that is not shown.
func (e *Entry) note() string {
	if e.Erased {
		return form.Erased
	}
	return fmt.Sprintf("[%s, %d bytes]", e.Type, e.Size)
}

// isNothing reports whether an item says nothing at all.
func (i *Item) isNothing() bool {
	return i.Kind == 0 && i.Role == "" && i.Body == nil && i.Reader == nil && i.Content.IsZero()
}

// Item returns what would add the same content in the same use elsewhere.
func (e *Entry) Item() Item {
	return Item{
		Kind: e.Kind, Role: e.Role, Name: e.Name, Document: e.Document, Revision: e.Revision, Filename: e.Filename,
		Content: e.Content, Type: e.Type, Origin: e.Origin, Metadata: e.Metadata, CreatedAt: e.CreatedAt, parts: e.parts, at: e.Span,
	}
}

var errSeveralBodies = fmt.Errorf("item has more than one of body, reader and content id: %w", ErrInvalid)

// check refuses an item that cannot be added, and fills in defaults.
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
