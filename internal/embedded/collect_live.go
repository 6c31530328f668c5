package embedded

import (
	"encoding/binary"
	"hash/maphash"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// liveSet is what can be reached as of a commit. It knows every run by how far it
// is live, since what lies before a live span lives, and content by eight bytes of
// its hash: what shares them with something live stays, which is harmless.
type liveSet struct {
	until uint64 // what came with later commits lives

	runs        map[structure.RunID]liveRun
	contents    hashSet // blocks, erased ones too, and chunks
	threads     map[structure.ThreadID]struct{}
	contexts    map[structure.ContextID]struct{}
	sets        map[structure.SpanSetID]struct{}
	checkpoints map[structure.CheckpointID]struct{}
	summaries   map[structure.SummaryID]struct{}
	values      hashSet // of the index keys of records of values

	// reflog has the commit of the first entry that a context has: others may be left
	// in the journal by a collection that did not come to its end. cutReflog has, for
	// contexts that lose entries, the commit of the last that goes.
	reflog    map[structure.ContextID]uint64
	cutReflog map[structure.ContextID]uint64
	// deletedThreads and deletedContexts have the commit in which something was last
	// deleted whose id is in use again: what came before is of its past life.
	deletedThreads  map[structure.ThreadID]uint64
	deletedContexts map[structure.ContextID]uint64
	// erased are the blocks that are. Of those that ever were, stored has the commit with the
	// record that counts: the last.
	erased map[content.ID]struct{}
	stored map[content.ID]uint64

	// deadRuns has where runs begin that are not live.
	deadRuns map[structure.RunID]structure.SpanRef
}

// liveRun is how far a run is live, and its last place if that is further.
type liveRun struct{ live, end uint64 }

func newLiveSet() *liveSet {
	return &liveSet{
		runs:        make(map[structure.RunID]liveRun),
		threads:     make(map[structure.ThreadID]struct{}),
		contexts:    make(map[structure.ContextID]struct{}),
		sets:        make(map[structure.SpanSetID]struct{}),
		checkpoints: make(map[structure.CheckpointID]struct{}),
		summaries:   make(map[structure.SummaryID]struct{}),
		reflog:      make(map[structure.ContextID]uint64),
		cutReflog:   make(map[structure.ContextID]uint64),

		deletedThreads:  make(map[structure.ThreadID]uint64),
		deletedContexts: make(map[structure.ContextID]uint64),
		erased:          make(map[content.ID]struct{}),
		stored:          make(map[content.ID]uint64),
		deadRuns:        make(map[structure.RunID]structure.SpanRef),
	}
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// span reports whether a span lives; the empty position does.
func (l *liveSet) span(r structure.SpanRef) bool { return r.IsZero() || r.Seq <= l.runs[r.Run].live }

// hash is what the set knows content by.
func hash(id []byte) uint64 { return binary.LittleEndian.Uint64(id) }

func (l *liveSet) block(id content.ID) bool     { return l.contents.has(hash(id[:])) }
func (l *liveSet) chunk(k content.Key) bool     { return l.contents.has(hash(k[:])) }
func (r liveRun) cut() bool                     { return r.live > 0 && r.end > r.live }
func (l *liveSet) isCut(r structure.RunID) bool { return l.runs[r].cut() }

// clamp returns the last live span of the history that ends at a span.
func (l *liveSet) clamp(r structure.SpanRef) structure.SpanRef {
	for !l.span(r) {
		if live := l.runs[r.Run].live; live > 0 {
			return structure.SpanRef{Run: r.Run, Seq: live}
		}
		r = l.deadRuns[r.Run]
	}
	return r
}

// hashSet is a set of hashes in an open table: 8 bytes for each and as much room
// again at most. The zero value is an empty set.
type hashSet struct {
	table []uint64 // a power of two of them; 0 is an empty place
	seed  maphash.Seed
	n     int
	zero  bool
}

const leastHashes = 1 << 10

// spread returns where to look for a hash. Hashes that are read from a file may have been chosen to meet in one place, and
// those of another set come in the order of its table, which in this one would make long runs.
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
		s.table = make([]uint64, max(leastHashes, 2*len(old)))
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

// addAll adds what one set has and another has not.
func (s *hashSet) addAll(of, without *hashSet) {
	for h := range of.all() {
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

// all yields the hashes in no order that means anything.
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
