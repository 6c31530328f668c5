package entries

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// State is the latest state of a store for the judge: a cache and the entries. It belongs to
// the writer.
type State struct {
	Latest Latest
	Cache  *Cache
	number uint64 // commit being judged
	replay bool

	key     []byte // of the current lookup
	Scanned uint64 // number of listed entries
}

// Latest is the latest state of an engine, as the writer sees it.
type Latest interface {
	// Get returns an entry that new commits may refer to.
	Get(key []byte) ([]byte, bool, error)
	// GetBefore returns an entry for the replay of a commit. It may return the entry of a later
	// commit only if keys.Early is true.
	GetBefore(key []byte, number uint64) ([]byte, bool, error)
	// Scan yields the entries in the index itself, without packs.
	read.Scanner
	// View returns a view of the state. The caller must close it.
	View() *read.View

	// NewContext and NewRun report that an id is certainly unused.
	NewContext(structure.ContextID) bool
	NewRun(structure.RunID) bool
	// NewLookup reports that certainly no usage in a home has a source id and number.
	NewLookup(judge.Lookup) bool
	// AnyErased reports whether any content may be erased.
	AnyErased() bool

	// Collecting reports whether a collection is deleting entries, Closed whether it deletes the end of a run, and
	// Deleting whether the entry of a key still has to be deleted.
	Collecting() bool
	Closed(structure.RunID) bool
	Deleting(key []byte) (bool, error)
	// OwnUsages is read.View.OwnUsages for a commit with this number.
	OwnUsages(state read.Getter, id content.ID, number uint64) ([]read.Usage, error)
}

var _ judge.View = (*State)(nil)

// Begin moves the state to just before a commit.
func (s *State) Begin(number uint64, replay bool) { s.number, s.replay = number, replay }

// Get reads the index. In replay it does not return entries of later commits.
func (s *State) Get(key []byte) ([]byte, bool, error) {
	if s.replay {
		return s.Latest.GetBefore(key, s.number)
	}
	return s.Latest.Get(key)
}

// lookup is Get for a table and the parts of a key.
func (s *State) lookup(table byte, parts ...[]byte) ([]byte, bool, error) {
	s.key = append(s.key[:0], table)
	for _, p := range parts {
		s.key = append(s.key, p...)
	}
	return s.Get(s.key)
}

func (s *State) has(table byte, parts ...[]byte) (bool, error) {
	_, ok, err := s.lookup(table, parts...)
	return ok, err
}

// stored returns the record under a key, or nil.
func stored[R structure.Record](s *State, kind structure.Kind, table byte, parts ...[]byte) (r R, err error) {
	v, ok, err := s.lookup(table, parts...)
	if err != nil || !ok {
		return r, err
	}
	return keys.Record[R](kind, v, "")
}

// Thread implements judge.View.
func (s *State) Thread(id structure.ThreadID) (*structure.Thread, error) {
	return stored[*structure.Thread](s, structure.KindThread, keys.TableThread, id[:])
}

// Context implements judge.View. The context is cached for later commits.
func (s *State) Context(id structure.ContextID) (*backend.Context, error) {
	if c, ok := s.Cache.keep(id); ok {
		return c, nil
	}
	v, ok, err := s.lookup(keys.TableContext, id[:])
	if err != nil || !ok {
		return nil, err
	}
	c, err := read.ContextOf(s, id, v)
	if err != nil {
		return nil, err
	}
	s.Cache.add(&c)
	return &c, nil
}

// Remnant implements judge.View.
func (s *State) Remnant(id structure.ContextID) (*structure.Remnant, error) {
	return stored[*structure.Remnant](s, structure.KindRemnant, keys.TableRemnant, id[:])
}

// Unused implements judge.View.
func (s *State) Unused(id structure.ContextID) bool { return !s.replay && s.Latest.NewContext(id) }

// Value implements judge.View.
func (s *State) Value(key structure.ValueKey) (uint64, error) {
	commit, _, err := read.LatestValue(s.Latest, key)
	return commit, err
}

// Run implements judge.View.
func (s *State) Run(id structure.RunID) (structure.RunInfo, bool, error) {
	if info, ok := s.Cache.runs.Get(id); ok {
		return info, true, nil
	}
	if !s.replay && s.Latest.NewRun(id) {
		return structure.RunInfo{}, false, nil
	}
	v, ok, err := s.lookup(keys.TableRun, id[:])
	if err != nil || !ok {
		return structure.RunInfo{}, false, err
	}
	info, err := keys.ReadRun(id, v)
	if err == nil {
		s.Cache.runs.Set(id, info)
	}
	return info, err == nil, err
}

// End implements judge.View. It is not called in replay, when the index may have later spans.
func (s *State) End(id structure.RunID) (end judge.End, there bool, err error) {
	if end, ok := s.Cache.ends.Get(id); ok {
		return end, true, nil
	}
	run, ok, err := s.Run(id)
	if err != nil || !ok {
		return end, false, err
	}
	end.Closed, err = s.has(keys.TableCutRun, id[:])
	if end.Closed = end.Closed || s.Latest.Closed(id); err != nil || end.Closed {
		return end, true, err
	}
	v := s.Latest.View()
	last, err := v.LastSpan(id)
	v.Close()
	if err != nil {
		return end, true, err
	}
	if end.Seq, end.Digest = last.Seq, run.Digest; last.Seq > 0 {
		end.Digest, err = s.Digest(last)
	}
	return end, true, err
}

// HasSpan implements judge.View.
func (s *State) HasSpan(r structure.SpanRef) (bool, error) {
	if end, ok := s.Cache.ends.Get(r.Run); ok && r.Seq != 0 && r.Seq <= end.Seq {
		return true, nil
	}
	s.key = append(append(s.key[:0], keys.TableSpan), r.Run[:]...)
	s.key = binary.BigEndian.AppendUint64(s.key, r.Seq)
	_, ok, err := s.Get(s.key)
	return ok, err
}

// Digest implements judge.View.
func (s *State) Digest(r structure.SpanRef) (structure.Digest, error) {
	if d, ok := s.Cache.Digest(r); ok {
		return d, nil
	}
	v := s.Latest.View()
	defer v.Close()
	d, err := v.ComputeDigest(r)
	if err == nil {
		s.Cache.SetDigest(r, d) // other runs will start here too
	}
	return d, err
}

// HasSet implements judge.View.
func (s *State) HasSet(id structure.SpanSetID) (bool, error) {
	return s.has(keys.TableSpanSet, id[:])
}

// HasLookup implements judge.View.
func (s *State) HasLookup(l judge.Lookup) (has bool, err error) {
	if s.Latest.NewLookup(l) {
		return false, nil
	}
	hash := keys.HashOfSource(l.Home, l.SourceID)
	prefix := keys.AppendNumber(hash.Prefix(), l.Number)
	for e, err := range s.Latest.Scan(prefix, keys.PrefixEnd(prefix)) {
		if err != nil {
			return false, err
		}
		s.Scanned++
		found, sure := hash.Has(e.Value)
		if found {
			_, found, err = s.Get(e.Key)
		}
		if found && !sure && err == nil {
			found, err = s.holds(e.Key, l)
		}
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// holds reports whether the span in a sealed entry has a lookup.
func (s *State) holds(key []byte, l judge.Lookup) (bool, error) {
	v := s.Latest.View()
	defer v.Close()
	number, span, err := keys.ReadLookup(key)
	if err != nil {
		return false, err
	}
	return v.HasUsage(l.Home, l.SourceID, number, span)
}

// Find implements judge.View.
func (s *State) Find(sourceID string, thread structure.ThreadID) iter.Seq2[backend.Found, error] {
	return func(yield func(backend.Found, error) bool) {
		v := s.Latest.View()
		defer v.Close()
		v.Find(context.Background(), sourceID, thread, backend.Found{})(yield)
	}
}

// Branch implements judge.View.
func (s *State) Branch(n judge.Name) (*structure.Branch, error) {
	return stored[*structure.Branch](s, structure.KindBranch, keys.TableBranch, n.Thread[:], []byte(n.Name))
}

// Checkpoint implements judge.View.
func (s *State) Checkpoint(n judge.Name) (*structure.Checkpoint, error) {
	return stored[*structure.Checkpoint](s, structure.KindCheckpoint, keys.TableCheckpoint, n.Thread[:], []byte(n.Name))
}

// BranchFrom implements judge.View.
func (s *State) BranchFrom(from judge.SourceID) (string, error) {
	return s.nameFrom(keys.TableBranchBySource, from)
}

// CheckpointFrom implements judge.View.
func (s *State) CheckpointFrom(from judge.SourceID) (string, error) {
	return s.nameFrom(keys.TableCheckpointBySource, from)
}

func (s *State) nameFrom(table byte, from judge.SourceID) (string, error) {
	name, _, err := s.Get(keys.Source(table, from.ID, from.Thread[:]...))
	return string(name), err
}

// Block implements judge.View.
func (s *State) Block(id content.ID) (size int64, known bool, err error) {
	v, ok, err := s.lookup(keys.TableBlock, id[:keys.HashPrefix])
	if err != nil || !ok {
		return 0, false, err
	}
	p, err := keys.ReadLocation(v)
	return p.Size, err == nil, err
}

// Erased implements judge.View.
func (s *State) Erased(id content.ID) (bool, error) {
	if !s.Latest.AnyErased() {
		return false, nil
	}
	return s.has(keys.TableErased, id[:])
}

// HasChunk implements judge.View.
func (s *State) HasChunk(k content.Key) (bool, error) {
	return s.has(keys.TableChunk, k[:keys.HashPrefix])
}

// Chunks implements judge.View.
func (s *State) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	v := s.Latest.View()
	defer v.Close()
	return v.Chunks(ctx, keys)
}
