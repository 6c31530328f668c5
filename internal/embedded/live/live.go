// Package live finds out what in a store can be reached, and removes the rest from commits. It does not change the
// store itself. That is up to an engine.
package live

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Set is everything that can be reached as of a commit. For a run it stores the last live place, because all places
// before it are live. For content it stores eight bytes of the hash. Dead content with the same eight bytes as live
// content is kept, which is harmless.
type Set struct {
	Until uint64 // everything in later commits is live

	runs        map[structure.RunID]Run
	contents    hashSet // blocks (including erased ones) and chunks
	threads     map[structure.ThreadID]struct{}
	contexts    map[structure.ContextID]creation
	remnants    map[structure.ContextID]creation // of deleted contexts
	sets        map[structure.SpanSetID]struct{}
	checkpoints map[structure.CheckpointID]struct{}
	summaries   map[structure.SummaryID]struct{}
	values      hashSet // of the index keys of value records

	// reflog has the commit of each context's first entry; an interrupted collection may have
	// left earlier ones in the journal. cutReflog has the commit of the last entry that a
	// context loses.
	reflog    map[structure.ContextID]uint64
	cutReflog map[structure.ContextID]uint64
	// deletedThreads has the last commit that deleted an id that is in use again: records before
	// it belong to the deleted thread.
	deletedThreads map[structure.ThreadID]uint64
	// erased has the blocks that are erased now. stored has, for each block that was ever erased, the commit with its
	// last record.
	erased map[content.ID]struct{}
	stored map[content.ID]uint64

	// deadRuns has the parents of runs that are not live.
	deadRuns map[structure.RunID]structure.SpanRef
}

// Run has the last live place of a run, and its last place if that is later.
type Run struct{ Live, End uint64 }

func newSet() *Set {
	return &Set{
		runs:        make(map[structure.RunID]Run),
		threads:     make(map[structure.ThreadID]struct{}),
		contexts:    make(map[structure.ContextID]creation),
		remnants:    make(map[structure.ContextID]creation),
		sets:        make(map[structure.SpanSetID]struct{}),
		checkpoints: make(map[structure.CheckpointID]struct{}),
		summaries:   make(map[structure.SummaryID]struct{}),
		reflog:      make(map[structure.ContextID]uint64),
		cutReflog:   make(map[structure.ContextID]uint64),

		deletedThreads: make(map[structure.ThreadID]uint64),
		erased:         make(map[content.ID]struct{}),
		stored:         make(map[content.ID]uint64),
		deadRuns:       make(map[structure.RunID]structure.SpanRef),
	}
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// Span reports whether a span is live. The zero ref counts as live.
func (l *Set) Span(r structure.SpanRef) bool { return r.IsZero() || r.Seq <= l.runs[r.Run].Live }

// Hash returns the part of an id that the set stores.
func Hash(id []byte) uint64 { return binary.LittleEndian.Uint64(id) }

// Block reports whether a block is live.
func (l *Set) Block(id content.ID) bool { return l.HasContent(Hash(id[:])) }

// Chunk reports whether a chunk is live.
func (l *Set) Chunk(k content.Key) bool { return l.HasContent(Hash(k[:])) }

// HasContent reports whether content whose id has a hash is live.
func (l *Set) HasContent(hash uint64) bool { return l.contents.has(hash) }

// SpanSet reports whether a span set is live.
func (l *Set) SpanSet(id structure.SpanSetID) bool { return has(l.sets, id) }

// Run returns the live part of a run, and false if nothing of the run is live.
func (l *Set) Run(id structure.RunID) (r Run, ok bool) {
	r, ok = l.runs[id]
	return r, ok
}

// Cut reports whether the end of the run is dead.
func (r Run) Cut() bool { return r.Live > 0 && r.End > r.Live }

// clamp returns the last live span of the history that ends at a span.
func (l *Set) clamp(r structure.SpanRef) structure.SpanRef {
	for !l.Span(r) {
		if live := l.runs[r.Run].Live; live > 0 {
			return structure.SpanRef{Run: r.Run, Seq: live}
		}
		r = l.deadRuns[r.Run]
	}
	return r
}

// hashSet is a set of hashes in an open-addressing table: 8 bytes per hash, and at most as
// much again. The zero value is an empty set.
type hashSet struct {
	table []uint64 // the length is a power of two; 0 is an empty slot
	seed  maphash.Seed
	n     int
	zero  bool
}

const minHashes = 1 << 10

// spread returns the slot where the search for a hash starts. The seed is random, because hashes from a file may be
// crafted to collide, and hashes from another set come in the order of its table, so they would cluster.
func (s *hashSet) spread(h uint64) uint64 { return maphash.Comparable(s.seed, h) }

func (s *hashSet) has(h uint64) bool {
	if h == 0 {
		return s.zero
	}
	if s.n == 0 {
		return false
	}
	mask := uint64(len(s.table) - 1)
	for i := s.spread(h) & mask; s.table[i] != 0; i = (i + 1) & mask {
		if s.table[i] == h {
			return true
		}
	}
	return false
}

// add reports whether the hash is new.
func (s *hashSet) add(h uint64) bool {
	if h == 0 {
		added := !s.zero
		s.zero = true
		return added
	}
	if s.has(h) {
		return false
	}
	if s.n >= len(s.table)*3/4 {
		old := s.table
		s.seed = maphash.MakeSeed()
		s.table = make([]uint64, max(minHashes, 2*len(old)))
		for _, h := range old {
			if h != 0 {
				s.put(h)
			}
		}
	}
	s.put(h)
	s.n++
	return true
}

// addAll adds the hashes of one set that another does not have.
func (s *hashSet) addAll(hashes, without *hashSet) {
	for h := range hashes.all() {
		if !without.has(h) {
			s.add(h)
		}
	}
}

func (s *hashSet) len() uint64 {
	n := uint64(s.n)
	if s.zero {
		n++
	}
	return n
}

// all yields the hashes in undefined order.
func (s *hashSet) all() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if s.zero && !yield(0) {
			return
		}
		for _, h := range s.table {
			if h != 0 && !yield(h) {
				return
			}
		}
	}
}

func (s *hashSet) put(h uint64) {
	mask := uint64(len(s.table) - 1)
	i := s.spread(h) & mask
	for s.table[i] != 0 {
		i = (i + 1) & mask
	}
	s.table[i] = h
}

// creation is the commit that created a context. shared is set if that commit also has records of
// an earlier context with the same id.
type creation struct {
	commit uint64
	shared bool
}

// thread reports whether record i is about a live thread, and not about an earlier
// thread with the same id.
func (l *Set) thread(id structure.ThreadID, c *structure.Commit, i int) bool {
	commit, deleted := l.deletedThreads[id]
	if !has(l.threads, id) || !deleted || commit != c.Number {
		return has(l.threads, id) && !(deleted && commit > c.Number)
	}
	return !slices.ContainsFunc(c.Records[i+1:], func(r structure.Record) bool {
		d, ok := r.(*structure.Deletion)
		return ok && d.Subject == structure.KindThread && d.Thread == id
	})
}
