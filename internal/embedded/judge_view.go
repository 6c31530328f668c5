package embedded

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// judgeView is the engine's state as the judge sees it: what is remembered, and the index with
// the packs below it. The lock on writing is held, or the store is being opened.
type judgeView struct {
	engine *Engine
	number uint64 // of the commit that is judged
	replay bool

	key     []byte // of the lookup at hand
	scanned uint64 // entries that were listed since the store was opened
}

var _ judge.View = (*judgeView)(nil)

// begin makes the state that before a commit.
func (s *judgeView) begin(number uint64, replay bool) { s.number, s.replay = number, replay }

// Get reads the index. In replay it finds nothing that came later.
func (s *judgeView) Get(key []byte) ([]byte, bool, error) {
	if s.replay {
		return s.engine.get(key, s.number)
	}
	return s.engine.known(key)
}

// look is Get for a table and the parts of a key.
func (s *judgeView) look(table byte, parts ...[]byte) ([]byte, bool, error) {
	s.key = append(s.key[:0], table)
	for _, p := range parts {
		s.key = append(s.key, p...)
	}
	return s.Get(s.key)
}

func (s *judgeView) has(table byte, parts ...[]byte) (bool, error) {
	_, ok, err := s.look(table, parts...)
	return ok, err
}

// stored returns the record under a key, nil if there is none.
func stored[R structure.Record](s *judgeView, kind structure.Kind, table byte, parts ...[]byte) (r R, err error) {
	v, ok, err := s.look(table, parts...)
	if err != nil || !ok {
		return r, err
	}
	return keys.Record[R](kind, v, "")
}

// Thread implements judge.View.
func (s *judgeView) Thread(id structure.ThreadID) (*structure.Thread, error) {
	return stored[*structure.Thread](s, structure.KindThread, keys.TableThread, id[:])
}

// Context implements judge.View. A context that a commit looks at is likely used again.
func (s *judgeView) Context(id structure.ContextID) (*backend.Context, error) {
	if c, ok := s.engine.current.keep(id); ok {
		return c, nil
	}
	v, ok, err := s.look(keys.TableContext, id[:])
	if err != nil || !ok {
		return nil, err
	}
	c, err := contextOf(s, id, v)
	if err != nil {
		return nil, err
	}
	s.engine.current.add(&c)
	return &c, nil
}

// Fresh implements judge.View.
func (s *judgeView) Fresh(id structure.ContextID) bool { return !s.replay && s.engine.isNew(id) }

// Value implements judge.View.
func (s *judgeView) Value(key structure.ValueKey) (uint64, error) {
	snapshot := s.engine.index.Snapshot()
	defer snapshot.Close()
	commit, _, err := latestValue(snapshot, key)
	return commit, err
}

// Run implements judge.View.
func (s *judgeView) Run(id structure.RunID) (structure.RunInfo, bool, error) {
	if info, ok := s.engine.runs.get(id); ok {
		return info, true, nil
	}
	if !s.replay && s.engine.isNewRun(id) {
		return structure.RunInfo{}, false, nil
	}
	v, ok, err := s.look(keys.TableRun, id[:])
	if err != nil || !ok {
		return structure.RunInfo{}, false, err
	}
	info, err := keys.ReadRun(id, v)
	if err == nil {
		s.engine.runs.set(id, info)
	}
	return info, err == nil, err
}

// End implements judge.View. It is not asked in replay, when the index may have spans that
// come later.
func (s *judgeView) End(id structure.RunID) (end judge.End, there bool, err error) {
	if end, ok := s.engine.current.ends.get(id); ok {
		return end, true, nil
	}
	run, ok, err := s.Run(id)
	if err != nil || !ok {
		return end, false, err
	}
	end.Closed, err = s.has(keys.TableCut, id[:])
	if end.Closed = end.Closed || s.engine.barrier.Load().refuses(id); err != nil || end.Closed {
		return end, true, err
	}
	latest := s.engine.latest()
	defer latest.Close()
	last, err := latest.lastSpan(id)
	if err != nil {
		return end, true, err
	}
	if end.Seq, end.Digest = last.Seq, run.Digest; last.Seq > 0 {
		end.Digest, err = s.Digest(last)
	}
	return end, true, err
}

// HasSpan implements judge.View.
func (s *judgeView) HasSpan(r structure.SpanRef) (bool, error) {
	if end, ok := s.engine.current.ends.get(r.Run); ok && r.Seq != 0 && r.Seq <= end.Seq {
		return true, nil
	}
	s.key = append(append(s.key[:0], keys.TableSpan), r.Run[:]...)
	s.key = binary.BigEndian.AppendUint64(s.key, r.Seq)
	_, ok, err := s.Get(s.key)
	return ok, err
}

// Digest implements judge.View.
func (s *judgeView) Digest(r structure.SpanRef) (structure.Digest, error) {
	if d, ok := s.engine.knownDigest(r); ok {
		return d, nil
	}
	v := s.engine.now()
	defer v.release()
	d, err := v.computeDigest(r)
	if err == nil {
		s.engine.digests.set(r, d) // where one run starts, others will
	}
	return d, err
}

// HasSet implements judge.View.
func (s *judgeView) HasSet(id structure.SpanSetID) (bool, error) {
	return s.has(keys.TableSpanSet, id[:])
}

// HasLookup implements judge.View.
func (s *judgeView) HasLookup(l judge.Lookup) (bool, error) {
	_, ok, err := s.Get(keys.Lookup(l))
	return ok, err
}

// Find implements judge.View.
func (s *judgeView) Find(sourceID string, thread structure.ThreadID) iter.Seq2[backend.Found, error] {
	return func(yield func(backend.Found, error) bool) {
		v := s.engine.now()
		defer v.release()
		v.Find(context.Background(), sourceID, thread, backend.Found{})(yield)
	}
}

// Branch implements judge.View.
func (s *judgeView) Branch(n judge.Name) (*structure.Branch, error) {
	return stored[*structure.Branch](s, structure.KindBranch, keys.TableBranch, n.Thread[:], []byte(n.Name))
}

// Checkpoint implements judge.View.
func (s *judgeView) Checkpoint(n judge.Name) (*structure.Checkpoint, error) {
	return stored[*structure.Checkpoint](s, structure.KindCheckpoint, keys.TableCheckpoint, n.Thread[:], []byte(n.Name))
}

// BranchFrom implements judge.View.
func (s *judgeView) BranchFrom(from judge.Source) (string, error) {
	return s.nameFrom(keys.TableBranchFrom, from)
}

// CheckpointFrom implements judge.View.
func (s *judgeView) CheckpointFrom(from judge.Source) (string, error) {
	return s.nameFrom(keys.TablePointFrom, from)
}

func (s *judgeView) nameFrom(table byte, from judge.Source) (string, error) {
	name, _, err := s.Get(keys.Source(table, from.ID, from.Thread[:]...))
	return string(name), err
}

// Block implements judge.View.
func (s *judgeView) Block(id content.ID) (size int64, known bool, err error) {
	v, ok, err := s.look(keys.TableBlock, id[:keys.HashPrefix])
	if err != nil || !ok {
		return 0, false, err
	}
	p, err := keys.ReadPlace(v)
	return p.Size, err == nil, err
}

// Erased implements judge.View.
func (s *judgeView) Erased(id content.ID) (bool, error) {
	if s.engine.counts.Erased == 0 {
		return false, nil
	}
	return s.has(keys.TableErased, id[:])
}

// HasChunk implements judge.View.
func (s *judgeView) HasChunk(k content.Key) (bool, error) {
	return s.has(keys.TableChunk, k[:keys.HashPrefix])
}

// Chunks implements judge.View.
func (s *judgeView) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	v := s.engine.now()
	defer v.release()
	return v.Chunks(ctx, keys)
}
