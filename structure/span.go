package structure

import (
	"fmt"
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

// UsageKind tells what a content block is used as.
type UsageKind uint8

// The kinds of usage. The values are part of the disk format.
const (
	MessageUsage  UsageKind = 1
	DocumentUsage UsageKind = 2
	AssetUsage    UsageKind = 3
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
	}
	return "usage kind " + strconv.Itoa(int(k))
}

// Usage is one appearance of a content block in a span. Fields that belong to
// another kind of usage are not stored.
type Usage struct {
	Kind    UsageKind
	Content content.ID

	// Role and Name belong to a message. Name is empty where it equals Role.
	Role, Name string
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
	// Metadata is JSON, kept byte for byte; nil when absent.
	Metadata []byte
	// CreatedAt has millisecond precision.
	CreatedAt time.Time
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
