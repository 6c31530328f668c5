package read

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// BranchesBySource implements backend.Reader.
func (v *View) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return bySource(ctx, v, keys.TableBranchBySource, sourceID, thread, v.Branch)
}

// CheckpointsBySource implements backend.Reader.
func (v *View) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return bySource(ctx, v, keys.TableCheckpointBySource, sourceID, thread, v.Checkpoint)
}

// bySource yields the branches or checkpoints with a source id in a thread, or in all
// threads.
func bySource[R any](ctx context.Context, v *View, table byte, sourceID string, thread structure.ThreadID, named func(context.Context, structure.ThreadID, string) (R, error)) iter.Seq2[R, error] {
	all := keys.Source(table, sourceID)
	prefix := all
	if !thread.IsZero() {
		prefix = keys.Source(table, sourceID, thread[:]...)
	}
	return Readings(v.Entries(ctx, prefix), func(e index.Entry) (R, error) {
		return named(ctx, structure.ThreadID(e.Key[len(all):]), string(e.Value))
	})
}

// homeOf returns the current home of a thread, if the thread exists.
func homeOf(state Getter, id structure.ThreadID) (structure.Home, bool, error) {
	v, ok, err := state.Get(keys.Of(keys.TableThread, id[:]))
	if err != nil || !ok {
		return structure.Home{}, false, err
	}
	t, err := keys.Record[*structure.Thread](structure.KindThread, v, "")
	if err != nil {
		return structure.Home{}, false, err
	}
	return t.Home(), true, nil
}

// Find implements backend.Reader.
func (v *View) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return func(yield func(backend.Found, error) bool) {
		f := finder{ctx: ctx, view: v, sourceID: sourceID, yield: yield}
		var err error
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case thread.IsZero():
			err = f.everywhere(after)
		default:
			err = f.in(thread, after)
		}
		if err != nil {
			yield(backend.Found{}, err)
		}
	}
}

// finder finds the usages with a source id.
type finder struct {
	ctx      context.Context
	view     *View
	sourceID string
	yield    func(backend.Found, error) bool
	done     bool
}

// in finds the usages in a thread.
func (f *finder) in(thread structure.ThreadID, after backend.Found) error {
	is, ok, err := homeOf(f.view.Index, thread)
	if err != nil || !ok {
		return err
	}
	return f.home(is, after)
}

// everywhere finds the usages in all threads, home by home.
func (f *finder) everywhere(after backend.Found) error {
	prefix := keys.Lookups(f.sourceID)
	from := prefix
	if after.Lookup != 0 {
		from = keys.LookupsIn(after.Home, f.sourceID)
	}
	for from != nil && !f.done {
		e, ok, err := f.first(from, keys.PrefixEnd(prefix))
		if err != nil || !ok {
			return err
		}
		at := e.Key[:min(keys.LookupsInSize, len(e.Key))]
		if err := f.entry(at, e.Value, after); err != nil {
			return err
		}
		from = keys.PrefixEnd(at)
	}
	return nil
}

// first returns the first entry between two keys, if any.
func (f *finder) first(from, to []byte) (index.Entry, bool, error) {
	if f.ctx.Err() != nil {
		return index.Entry{}, false, context.Cause(f.ctx)
	}
	for e, err := range f.view.Index.Scan(from, to) {
		return index.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)}, err == nil, err
	}
	return index.Entry{}, false, nil
}

// entry finds the usages of a home, given the prefix of its keys and the value of one of
// them. Another source id may share the prefix.
func (f *finder) entry(at, value []byte, after backend.Found) error {
	values := keys.ReadVarints(value)
	ref := keys.ReadRef(&values)
	if err := values.Err(); err != nil {
		return err
	}
	run, err := Run(f.view.Index, ref.Run)
	if err != nil || !bytes.Equal(at, keys.LookupsIn(run.Home, f.sourceID)) {
		return err
	}
	is, ok, err := homeOf(f.view.Index, run.Home.Thread)
	if err != nil || !ok || is != run.Home {
		return err
	}
	return f.home(is, after)
}

// home finds the usages in an existing home.
func (f *finder) home(is structure.Home, after backend.Found) error {
	if after.Home != is {
		after = backend.Found{}
	}
	if after.Lookup == 1 {
		return nil
	}
	prefix := keys.LookupsIn(is, f.sourceID)
	behind := prefix
	if after.Lookup != 0 {
		behind = keys.AppendNumber(bytes.Clone(prefix), after.Lookup)
	}
	for e, err := range f.view.entriesAfter(f.ctx, prefix, behind) {
		if err == nil {
			err = f.found(is, keys.NumberOf(e.Key[len(prefix):]), e.Value)
		}
		if err != nil || f.done {
			return err
		}
	}
	value, ok, err := f.view.Index.Get(prefix)
	if err != nil || !ok {
		return err
	}
	return f.found(is, 1, value)
}

func (f *finder) found(is structure.Home, number uint64, value []byte) error {
	values := keys.ReadVarints(value)
	found := backend.Found{Home: is, Lookup: number, Span: keys.ReadRef(&values)}
	if err := values.Err(); err != nil {
		return err
	}
	f.done = !f.yield(found, nil)
	return nil
}

// RunsOf implements backend.Reader.
func (v *View) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return func(yield func(structure.RunInfo, error) bool) {
		is, ok, err := homeOf(v.Index, thread)
		if err != nil {
			yield(structure.RunInfo{}, err)
		}
		if err != nil || !ok {
			return
		}
		prefix := keys.Of(keys.TableRunOfThread, thread[:])
		for r, err := range v.runsUnder(ctx, prefix, slices.Concat(prefix, after[:])) {
			if err == nil && r.Home != is {
				continue // of an earlier thread with the same id
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
