package read

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// Getter finds entries by their keys.
type Getter interface {
	// Get returns the value of a key, which must not be changed.
	Get(key []byte) (value []byte, ok bool, err error)
}

// Scanner yields the entries with from <= key < to in order; a nil to has no end.
type Scanner interface {
	Scan(from, to []byte) iter.Seq2[index.Entry, error]
}

// Index is an ordered map of the entries that package keys defines, as of one commit.
type Index interface {
	Getter
	Scanner
	Derived
	// State returns the commit, its id since when, and the counters.
	State() index.State
	// Last returns the entry with the greatest key in from <= key < to; a nil to has no end.
	Last(from, to []byte) (index.Entry, bool, error)
	// Cursor returns a cursor over the entries with from <= key < to.
	Cursor(from, to []byte) Cursor
	// Name says in errors where the index is.
	Name() string
	Close()
}

// Cursor reads entries in order.
type Cursor interface {
	// Next returns the next entry; ok is false when there is none.
	Next() (e index.Entry, ok bool, err error)
	// Skip passes over the entries before a key.
	Skip(key []byte)
}

// Derived are the entries that Derive makes whenever changes are folded. They are as of the last
// fold.
type Derived interface {
	// FirstDerived and LastDerived return the derived entry with the least and the greatest key
	// in from <= key < to.
	FirstDerived(from, to []byte) (index.Entry, bool, error)
	LastDerived(from, to []byte) (index.Entry, bool, error)
	// Changed yields the entries with a prefix that changed since the last fold.
	Changed(prefix []byte) iter.Seq[index.Entry]
	// ManyChanged is called by a listing that would be cheaper after a fold.
	ManyChanged()
}

// Commits are the commits that the entries of an index refer to.
type Commits interface {
	NewReader() Reader
	// FileOf says in errors where a position is.
	FileOf(journal.Position) string
	// Damage is why commits cannot be read to their end, nil if they can.
	Damage() error
	// Collecting reports whether commits may hold spans that the index has no longer.
	Collecting() bool
}

// Reader reads commits. It is not safe for concurrent use.
type Reader interface {
	// Frame returns the commit at a position.
	Frame(journal.Position) (journal.Frame, error)
	// Object returns the block or chunk of about so many bytes whose record is at an offset of
	// the commit at a position. The caller compares what it gets with what it wanted.
	Object(frame journal.Position, record, size int64) (structure.Record, error)
	// Place returns what tells apart different files that have had this position, and, where it
	// can read spans of the commit without all of it, these, with the given one among them.
	Place(p journal.Position, with structure.SpanRef) (journal.File, *journal.PackedSpans, error)
	// Name says in errors what was read last.
	Name() string
}

// Packs finds what an index leaves to packs below it.
type Packs interface {
	// Own is Index.Get for entries that the index itself has.
	Own(key []byte) (value []byte, ok bool, err error)
	// Object reads the block or chunk under a key.
	Object(r Reader, key []byte) (structure.Record, keys.Place, bool, error)
	// SpansAt returns the spans of a run that a pack has together with one of them; none where
	// no pack has it. They may be kept for as long as the view if keep is set.
	SpansAt(structure.SpanRef) (found journal.Spans, keep bool, err error)
	// LastSpan returns the last span of a run, or the zero ref if there is none.
	LastSpan(structure.RunID) (structure.SpanRef, error)
}

// Prefetcher reads at once what is going to be asked for. What it is not told of is read when it
// is asked for.
type Prefetcher interface {
	Prefetch(context.Context, Need) error
}

// Need is what is going to be asked for.
type Need struct {
	Keys    [][]byte // for Index.Get
	Ranges  []Range  // for Index.Get, Scan and Cursor
	Lasts   []Range  // for Index.Last
	Commits []journal.Position
}

// Range is the keys with From <= key < To.
type Range struct{ From, To []byte }

// Under is the range of a prefix.
func Under(prefix []byte) Range { return Range{prefix, keys.PrefixEnd(prefix)} }

// Digests remembers digests of histories.
type Digests interface {
	Digest(structure.SpanRef) (structure.Digest, bool)
	SetDigest(structure.SpanRef, structure.Digest)
}
