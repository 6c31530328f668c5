package read

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// Getter looks up entries by key.
type Getter interface {
	// Get returns the value of a key. The caller must not change it.
	Get(key []byte) (value []byte, ok bool, err error)
}

// Scanner yields the entries with from <= key < to in order; a nil to has no end.
type Scanner interface {
	Scan(from, to []byte) iter.Seq2[index.Entry, error]
}

// Index is an ordered map of the entries of package keys, as of one commit.
type Index interface {
	Getter
	Scanner
	Derived
	// State returns the last commit, its id, the first commit with that id, and the counters.
	State() index.State
	// Last returns the entry with the greatest key in from <= key < to; a nil to has no end.
	Last(from, to []byte) (index.Entry, bool, error)
	// Cursor returns a cursor over the entries with from <= key < to.
	Cursor(from, to []byte) Cursor
	// Name names the index in errors.
	Name() string
	Close()
}

// Cursor reads entries in order.
type Cursor interface {
	// Next returns the next entry; ok is false at the end.
	Next() (e index.Entry, ok bool, err error)
	// Skip skips the entries before a key.
	Skip(key []byte)
}

// Derived has the entries that Derive updates in each fold. They are as of the last fold.
type Derived interface {
	// FirstDerived and LastDerived return the derived entry with the least and the greatest key
	// in from <= key < to.
	FirstDerived(from, to []byte) (index.Entry, bool, error)
	LastDerived(from, to []byte) (index.Entry, bool, error)
	// Changed yields the entries with a prefix that changed since the last fold.
	Changed(prefix []byte) iter.Seq[index.Entry]
	// ManyChanged is called by a listing that a fold would make cheaper.
	ManyChanged()
}

// Commits are the commits that the index refers to.
type Commits interface {
	NewReader() Reader
	// FileOf names the file of a position in errors.
	FileOf(journal.Position) string
	// Damage returns the reason why commits cannot be read to their end, or nil.
	Damage() error
	// Collecting reports whether commits may contain spans that the index no longer has.
	Collecting() bool
}

// Reader reads commits. It is not safe for concurrent use.
type Reader interface {
	// Frame returns the frame at a position.
	Frame(journal.Position) (journal.Frame, error)
	// Object returns the block or chunk at an offset in the commit at a position. size is its
	// approximate size. The caller must compare its id.
	Object(frame journal.Position, record, size int64) (structure.Record, error)
	// Place identifies the file at a position. The file changes when the segment is rewritten. If spans can be read
	// without the whole commit, Place also returns those of the commit, including with.
	Place(p journal.Position, with structure.SpanRef) (journal.File, *journal.PackedSpans, error)
	// Name names the file that was read last, in errors.
	Name() string
}

// Packs looks up entries that the index leaves to packs below it.
type Packs interface {
	// Own is Index.Get without packs.
	Own(key []byte) (value []byte, ok bool, err error)
	// Object reads the block or chunk under a key.
	Object(r Reader, key []byte) (structure.Record, keys.Location, bool, error)
	// SpansAt returns the spans of a run that a pack stores together with the given one, and the position of its frame, or
	// no spans if no pack has it. If keep is set, the spans may be used as long as the view, else not at all.
	SpansAt(structure.SpanRef) (found journal.Spans, at journal.Position, keep bool, err error)
	// LastSpan returns the last span of a run, or the zero ref if there is none.
	LastSpan(structure.RunID) (structure.SpanRef, error)
}

// Prefetcher reads several things at once. What it did not read is read on demand.
type Prefetcher interface {
	Prefetch(context.Context, Need) error
}

// Need lists what will be read.
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

// Digests caches digests of histories.
type Digests interface {
	Digest(structure.SpanRef) (structure.Digest, bool)
	SetDigest(structure.SpanRef, structure.Digest)
}
