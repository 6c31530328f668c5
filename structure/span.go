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

// SpanRef is the address of a span: its place in a run. Places count from 1;
// the zero SpanRef is the empty position before any first span.
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

// ParseSpanRef parses what String returns.
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
	// PartUsage is a further piece of the message that comes before it in the span.
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

// Piece is the kind of content of a message, or of a part of one.
type Piece uint8

// The pieces. The values are part of the disk format.
const (
	TextPiece      Piece = 0
	ReasoningPiece Piece = 1
	InputPiece     Piece = 2 // of a tool
	OutputPiece    Piece = 3 // of a tool
	FilePiece      Piece = 4
	DataPiece      Piece = 5
	lastPiece            = DataPiece
)

var pieceNames = [...]string{"text", "reasoning", "input", "output", "file", "data"}

// String returns the name of the piece.
func (p Piece) String() string {
	if int(p) < len(pieceNames) {
		return pieceNames[p]
	}
	return "piece " + strconv.Itoa(int(p))
}

// MostExtras and MostExtraBytes bound the extras of a usage, together.
const (
	MostExtras     = 256
	MostExtraBytes = 64 << 10
)

// MostParts bounds the parts of a message.
const MostParts = 1000

// Entries returns how many messages, documents and assets usages are. Parts belong to the
// message before them.
func Entries(usages []Usage) (n int) {
	for i := range usages {
		if usages[i].Kind != PartUsage {
			n++
		}
	}
	return n
}

// Usage is one appearance of a content block in a span. Fields that belong to
// another kind of usage are not stored.
type Usage struct {
	Kind    UsageKind
	Content content.ID

	// Piece belongs to messages and parts.
	Piece Piece
	// Role and Name belong to a message. Name is empty where it equals Role. The Name of a
	// part is that of its tool.
	Role, Name string
	// Form is the content that says how a message was written, its pieces left out, and
	// Extras what varies in it. Zero and nil for a message that has no form.
	Form   content.ID
	Extras [][]byte
	// Opaque says that the content is the whole message as it was written.
	Opaque bool
	// Document and Revision belong to a document revision.
	Document string
	Revision uint64
	// Filename belongs to an asset.
	Filename string

	// Type is the media type where it differs from the block's, else empty.
	Type string
	// By says who brought this appearance.
	By content.Attribution
	// Origin is where this appearance comes from, where that differs from the origin
	// first recorded with the block, else nil.
	Origin *content.BlockOrigin
	// SourceID is the id its caller or its archive gave it, else empty.
	SourceID string
	// Lookup is how the span is found by SourceID in the home of its run: 0 not at all, 1
	// as the first message of that id, n as its n-th version. No two usages of a home
	// have the same source id and the same Lookup. The greatest is found first.
	Lookup uint64
	// Metadata is JSON, kept byte for byte; nil when absent. MetadataContent is content that
	// has it instead, zero when there is none.
	Metadata        []byte
	MetadataContent content.ID
	// CreatedAt has millisecond precision.
	CreatedAt time.Time
}

// Check refuses a usage that has no binary form.
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
	case u.Origin != nil && u.Origin.Kind > mostOriginKind:
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

// Named appends where the usage names content: its own, and its form and its metadata if
// it has them.
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

// CloneBytes gives the usage memory of its own for what are bytes.
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

// OriginWith returns the whole origin of the usage, given that of its block.
func (u *Usage) OriginWith(block content.BlockOrigin) content.Origin {
	if u.Origin != nil {
		block = *u.Origin
	}
	return block.By(u.By)
}

// UsageID identifies a usage: the span it is in and its place there. The ids
// are derived from where the usage stands, not stored.
type UsageID struct {
	Span  SpanRef
	Index int
}

// String returns "run/seq.index".
func (u UsageID) String() string { return u.Span.String() + "." + strconv.Itoa(u.Index) }

// Span is one step of a conversation: one or more usages after one parent span.
// The parent is the span before it in its run or, for the first of a run, the
// run's parent.
type Span struct {
	Ref SpanRef
	// Set names the span set that this span is an alternative in, else zero.
	Set SpanSetID
	// Usages are in order and at least one.
	Usages []Usage
}

func (*Span) Kind() Kind { return KindSpan }
