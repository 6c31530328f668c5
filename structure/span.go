package structure

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
)

// SpanRef is the address of a span: its run and its place in it. Places count from 1; the
// zero SpanRef is the empty position before the first span.
type SpanRef struct {
	Run RunID
	Seq uint64
}

// IsZero reports whether the ref is the empty position.
func (r SpanRef) IsZero() bool { return r == SpanRef{} }

// String returns "run/seq", or "-" for the empty position.
func (r SpanRef) String() string {
	if r.IsZero() {
		return "-"
	}
	return r.Run.String() + "/" + strconv.FormatUint(r.Seq, 10)
}

// ParseSpanRef is the inverse of String.
func ParseSpanRef(s string) (SpanRef, error) {
	if s == "-" {
		return SpanRef{}, nil
	}
	run, seq, found := strings.Cut(s, "/")
	id, err := ParseID[RunID](run)
	n, numErr := strconv.ParseUint(seq, 10, 64)
	if !found || err != nil || numErr != nil || n == 0 || strconv.FormatUint(n, 10) != seq {
		if len(s) > 80 {
			s = s[:80] + "…"
		}
		return SpanRef{}, fmt.Errorf("%w: span %q", ErrBadID, s)
	}
	return SpanRef{Run: id, Seq: n}, nil
}

// MarshalText implements encoding.TextMarshaler.
func (r SpanRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *SpanRef) UnmarshalText(text []byte) error {
	parsed, err := ParseSpanRef(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}

// UsageKind is the way in which a content block is used.
type UsageKind uint8

// The kinds of usage. The values are part of the disk format.
const (
	MessageUsage  UsageKind = 1
	DocumentUsage UsageKind = 2
	AssetUsage    UsageKind = 3
	// PartUsage is a further piece of the message before it in the span.
	PartUsage UsageKind = 4
)

// String returns the name of the kind.
func (k UsageKind) String() string {
	switch k {
	case MessageUsage:
		return "message"
	case DocumentUsage:
		return "document"
	case AssetUsage:
		return "asset"
	case PartUsage:
		return "part"
	}
	return "usage kind " + strconv.Itoa(int(k))
}

// PieceKind is the kind of content of a message, or of a part of one.
type PieceKind uint8

// The kinds of pieces. The values are part of the disk format.
const (
	TextPiece      PieceKind = 0
	ReasoningPiece PieceKind = 1
	InputPiece     PieceKind = 2 // of a tool
	OutputPiece    PieceKind = 3 // of a tool
	FilePiece      PieceKind = 4
	DataPiece      PieceKind = 5
	lastPiece                = DataPiece
)

var pieceNames = [...]string{"text", "reasoning", "input", "output", "file", "data"}

// String returns the name of the piece.
func (p PieceKind) String() string {
	if int(p) < len(pieceNames) {
		return pieceNames[p]
	}
	return "piece " + strconv.Itoa(int(p))
}

// MostExtras and MostExtraBytes limit the extras of a usage.
const (
	MostExtras     = 256
	MostExtraBytes = 64 << 10
)

// MostParts limits the parts of a message.
const MostParts = 1000

// Entries returns the number of messages, documents and assets. Parts belong to the
// message before them.
func Entries(usages []Usage) (n int) {
	for i := range usages {
		if usages[i].Kind != PartUsage {
			n++
		}
	}
	return n
}

// Usage is one appearance of a content block in a span. Fields of other kinds of usage are
// not stored.
type Usage struct {
	Kind    UsageKind
	Content content.ID

	// Piece is for messages and parts.
	Piece PieceKind
	// Role and Name are for messages. Name is empty if it equals Role. For a part, Name is
	// its tool.
	Role, Name string
	// Form is the content with the form of the message, without its pieces, and Extras the
	// values that vary in it. They are zero and nil for a message without a form.
	Form   content.ID
	Extras [][]byte
	// Opaque means that the content is the whole original message.
	Opaque bool
	// Document and Revision are for document revisions.
	Document string
	Revision uint64
	// Filename is for assets.
	Filename string

	// Type is the media type if it differs from the block's, or empty.
	Type string
	// By is the user, model and source of this appearance.
	By content.Attribution
	// Origin is the origin of this appearance if it differs from the one first recorded
	// with the block, or nil.
	Origin *content.BlockOrigin
	// SourceID is the id from the caller or archive, or empty.
	SourceID string
	// Lookup is the number under which SourceID finds the span in the home of its run: 0
	// for not at all, 1 for the first message with that id, n for its n-th version. No two
	// usages in a home have the same source id and Lookup. The greatest is found first.
	Lookup uint64
	// Metadata is JSON, stored byte for byte; nil if absent. MetadataContent is content
	// with the metadata instead, or zero.
	Metadata        []byte
	MetadataContent content.ID
	// CreatedAt has millisecond precision.
	CreatedAt time.Time
}

// Check returns an error for a usage that has no binary form.
func (u *Usage) Check() error {
	fail := func(why string) error { return fmt.Errorf("%v: %s: %w", u.Kind, why, ErrIncomplete) }
	message := u.Kind == MessageUsage
	switch {
	case u.Kind < MessageUsage || u.Kind > PartUsage:
		return fail("unknown kind")
	case u.Piece > lastPiece:
		return fail("unknown " + u.Piece.String())
	case u.Piece != 0 && !message && u.Kind != PartUsage:
		return fail("it is no piece of a message")
	case !message && (!u.Form.IsZero() || u.Opaque), u.Opaque && !u.Form.IsZero():
		return fail("it has no form")
	case len(u.Extras) > 0 && u.Form.IsZero():
		return fail("extras without a form")
	case u.Metadata != nil && !u.MetadataContent.IsZero():
		return fail("metadata twice")
	case u.Lookup != 0 && u.SourceID == "":
		return fail("lookup without a source id")
	case u.Origin != nil && u.Origin.Kind > maxOriginKind:
		return fail("unknown kind of origin")
	case len(u.Extras) > MostExtras:
		return fail("too many extras")
	}
	size := 0
	for _, b := range u.Extras {
		if size += len(b); size > MostExtraBytes {
			return fail("extras are too large")
		}
	}
	return nil
}

// Named appends pointers to the content ids in the usage: its content, its form and its
// metadata.
func (u *Usage) Named(dst []*content.ID) []*content.ID {
	dst = append(dst, &u.Content)
	if !u.Form.IsZero() {
		dst = append(dst, &u.Form)
	}
	if !u.MetadataContent.IsZero() {
		dst = append(dst, &u.MetadataContent)
	}
	return dst
}

// Names reports whether the usage names content.
func (u *Usage) Names(id content.ID) bool {
	return u.Content == id || !id.IsZero() && (u.Form == id || u.MetadataContent == id)
}

// CloneBytes gives the byte fields of the usage their own memory.
func (u *Usage) CloneBytes() {
	u.Metadata = bytes.Clone(u.Metadata)
	if u.Extras != nil {
		u.Extras = slices.Clone(u.Extras)
		for i := range u.Extras {
			u.Extras[i] = bytes.Clone(u.Extras[i])
		}
	}
}

// Settle makes the usage state what it leaves to the block of its content.
func (u *Usage) Settle(b *content.Block) {
	if u.Type == "" {
		u.Type = b.Type
	}
	if u.Origin == nil {
		origin := b.Origin
		u.Origin = &origin
	}
}

// OriginWith returns the complete origin of the usage, given that of its block.
func (u *Usage) OriginWith(block content.BlockOrigin) content.Origin {
	if u.Origin != nil {
		block = *u.Origin
	}
	return block.By(u.By)
}

// UsageID identifies a usage: its span and its index there. It is derived from the place,
// not stored.
type UsageID struct {
	Span  SpanRef
	Index int
}

// String returns "run/seq.index".
func (u UsageID) String() string { return u.Span.String() + "." + strconv.Itoa(u.Index) }

// Span is one step of a conversation: one or more usages after a parent span. The parent
// is the span before it in its run or, for the first, the run's parent.
type Span struct {
	Ref SpanRef
	// Set is the span set of which this span is an alternative, or zero.
	Set SpanSetID
	// Usages are in order; there is at least one.
	Usages []Usage
}

func (*Span) Kind() Kind { return KindSpan }

// maxOriginKind is the greatest kind of origin that can be encoded.
const maxOriginKind = 127

// kindByte is the kind of a usage with its piece, which is 0 for plain text.
func kindByte(u *Usage) byte { return byte(u.Kind) | byte(u.Piece)<<4 }
