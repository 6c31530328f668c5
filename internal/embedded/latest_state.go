package embedded

import (
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// known returns an entry that new commits may refer to.
func (e *Engine) known(key []byte) ([]byte, bool, error) {
	v, ok, err := e.get(key, anyCommit)
	if err != nil || !ok {
		return v, ok, err
	}
	if b := e.collecting.Barrier.Load(); b != nil && b.Dead(key, v) {
		return nil, false, nil
	}
	return v, true, nil
}

var (
	_ entries.Latest = (*latestState)(nil)
	_ judge.Stored   = (*stock)(nil)
)

// latestState is the state of an engine as new commits see it. The write lock must be held, or the store is being opened.
type latestState Engine

func (s *latestState) Get(key []byte) ([]byte, bool, error) { return (*Engine)(s).known(key) }

func (s *latestState) GetBefore(key []byte, number uint64) ([]byte, bool, error) {
	return (*Engine)(s).get(key, number)
}

func (s *latestState) Scan(from, to []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		snapshot := s.index.Snapshot()
		defer snapshot.Close()
		snapshot.Scan(from, to)(yield)
	}
}

func (s *latestState) View() *read.View { return (*Engine)(s).now().View }

func (s *latestState) AnyErased() bool { return s.counts.Erased > 0 }

func (s *latestState) Collecting() bool { return s.collecting.Barrier.Load() != nil }

func (s *latestState) Closed(run structure.RunID) bool {
	return s.collecting.Barrier.Load().Refuses(run)
}

func (s *latestState) Deleting(key []byte) (bool, error) {
	if b := s.collecting.Barrier.Load(); b == nil || !b.Dead(key, nil) {
		return false, nil
	}
	_, there, err := s.index.Get(key)
	return there, err
}

func (s *latestState) OwnUsages(state read.Getter, id content.ID, number uint64) ([]read.Usage, error) {
	var hidden func(structure.SpanRef) bool
	if b := s.collecting.Barrier.Load(); b != nil && (!b.Covers(number) || s.packs.Load().hidden != nil) {
		hidden = b.Span // the index still has the dead spans
	}
	latest := (*Engine)(s).latest()
	defer latest.Close()
	return latest.view.OwnUsages(state, id, hidden)
}

// NewContext implements entries.Latest.
func (s *latestState) NewContext(id structure.ContextID) bool { return s.absent.context(id) }

// NewRun implements entries.Latest.
func (s *latestState) NewRun(id structure.RunID) bool { return s.absent.run(id) }

// stock implements judge.Stored with the content that new commits may refer to. It is safe for
// concurrent use.
type stock Engine

// HasBlock implements judge.Stored.
func (s *stock) HasBlock(id content.ID) (bool, error) {
	e := (*Engine)(s)
	if e.absent.content(id[:]) {
		return false, nil
	}
	_, ok, err := e.known(keys.Block(id))
	if err != nil || !ok {
		return ok, err
	}
	_, erased, err := e.index.Get(keys.Of(keys.TableErased, id[:]))
	return ok && !erased, err
}

// HasChunk implements judge.Stored.
func (s *stock) HasChunk(k content.Key) (bool, error) {
	e := (*Engine)(s)
	if e.absent.content(k[:]) {
		return false, nil
	}
	_, ok, err := e.known(keys.Chunk(k))
	return ok, err
}

// NewLookup implements entries.Latest.
func (s *latestState) NewLookup(l judge.Lookup) bool {
	return s.absent.lookups.isNew(l, func(home structure.Home) bool {
		if s.collecting.Barrier.Load() != nil {
			return true // a collection is removing runs before what they hold
		}
		prefix := keys.Of(keys.TableRunOfThread, home.Thread[:])
		for range s.Scan(prefix, keys.PrefixEnd(prefix)) {
			return true // a run of the thread, whatever its home, or an error
		}
		return false
	})
}
