package read

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
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

// HasUsage reports whether a span is in a run of a home and has a usage with a source id and a Lookup.
func (v *View) HasUsage(home structure.Home, sourceID string, lookup uint64, span structure.SpanRef) (bool, error) {
	run, err := Run(v.Index, span.Run)
	if err != nil || run.Home != home {
		return false, err
	}
	if v.Commits.Collecting() { // the span may be gone already
		_, ok, err := v.Index.Get(keys.Span(span))
		if err != nil || !ok {
			return false, err
		}
	}
	var r structure.Reading
	if err := v.NewSpanReader().Read(span, span.Seq, &r); err != nil {
		return false, err
	}
	return slices.ContainsFunc(r.Span.Usages, func(u structure.Usage) bool { return u.Lookup == lookup && u.SourceID == sourceID }), nil
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
	home, ok, err := homeOf(f.view.Index, thread)
	if err != nil || !ok || after.Home == home && after.Lookup == 1 { // 1 comes last
		return err
	}
	hash := keys.HashOfSource(home, f.sourceID)
	prefix := hash.Prefix()
	for e, err := range f.view.entriesAfter(f.ctx, prefix, behind(prefix, home, after)) {
		if err == nil {
			err = f.entry(home, &hash, e)
		}
		if err != nil || f.done {
			return err
		}
	}
	return nil
}

// behind returns the key at which a search in a home continues after the last usage that was found. It is nil if that usage
// is of another home.
func behind(prefix []byte, home structure.Home, after backend.Found) []byte {
	if after.Home != home || after.Lookup == 0 {
		return nil
	}
	return keys.PrefixEnd(keys.AppendNumber(bytes.Clone(prefix), after.Lookup))
}

// entry yields the usage of an entry if it has the source id in the home.
func (f *finder) entry(home structure.Home, hash *keys.SourceHash, e index.Entry) error {
	found := backend.Found{Home: home}
	has, sure := hash.Has(e.Value)
	if !has {
		return nil
	}
	var err error
	if found.Lookup, found.Span, err = keys.ReadLookup(e.Key); err != nil {
		return err
	}
	if !sure {
		if has, err = f.view.HasUsage(home, f.sourceID, found.Lookup, found.Span); err != nil || !has {
			return err
		}
	}
	f.done = !f.yield(found, nil)
	return nil
}

// everywhere finds the usages in all threads, home by home. Homes whose usages have the same prefix are few; they come in
// the order of their ids.
func (f *finder) everywhere(after backend.Found) error {
	prefix := keys.Lookups(f.sourceID)
	from := []byte(nil)
	if after.Lookup != 0 {
		from = keys.LookupsIn(after.Home, f.sourceID)
	}
	var group []index.Entry // with the same prefix
	for e, err := range f.view.entriesAfter(f.ctx, prefix, from) {
		if err != nil {
			return err
		}
		if len(group) > 0 && !bytes.Equal(group[0].Key[:keys.LookupsInSize], e.Key[:min(len(e.Key), keys.LookupsInSize)]) {
			if err := f.group(group, after); err != nil || f.done {
				return err
			}
			group = group[:0]
		}
		group = append(group, index.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
	}
	return f.group(group, after)
}

// group finds the usages in the homes of entries with the same prefix.
func (f *finder) group(entries []index.Entry, after backend.Found) error {
	entriesOf := map[structure.Home][]index.Entry{}
	for _, e := range entries {
		_, span, err := keys.ReadLookup(e.Key)
		if err != nil {
			return err
		}
		run, err := Run(f.view.Index, span.Run)
		if err != nil {
			return err
		}
		entriesOf[run.Home] = append(entriesOf[run.Home], e)
	}
	for _, home := range slices.SortedFunc(maps.Keys(entriesOf), compareHomes) {
		if err := f.inHome(home, entriesOf[home], after); err != nil || f.done {
			return err
		}
	}
	return nil
}

// inHome finds the usages in a home, which are among entries with the same prefix.
func (f *finder) inHome(home structure.Home, entries []index.Entry, after backend.Found) error {
	hash := keys.HashOfSource(home, f.sourceID)
	prefix := hash.Prefix()
	if !bytes.Equal(prefix, entries[0].Key[:keys.LookupsInSize]) {
		return nil // they have another source id
	}
	if after.Lookup != 0 && bytes.Equal(prefix, keys.LookupsIn(after.Home, f.sourceID)) && compareHomes(home, after.Home) < 0 {
		return nil // they come before the place to continue from
	}
	current, ok, err := homeOf(f.view.Index, home.Thread)
	if err != nil || !ok || current != home {
		return err
	}
	from := behind(prefix, home, after)
	for _, e := range entries {
		if bytes.Compare(e.Key, from) < 0 {
			continue
		}
		if err := f.entry(home, &hash, e); err != nil || f.done {
			return err
		}
	}
	return nil
}

func compareHomes(a, b structure.Home) int {
	return cmp.Or(a.Thread.Compare(b.Thread), cmp.Compare(a.Incarnation, b.Incarnation))
}

// RunsOf implements backend.Reader.
func (v *View) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return func(yield func(structure.RunInfo, error) bool) {
		home, ok, err := homeOf(v.Index, thread)
		if err != nil {
			yield(structure.RunInfo{}, err)
		}
		if err != nil || !ok {
			return
		}
		prefix := keys.Of(keys.TableRunOfThread, thread[:])
		for r, err := range v.runsUnder(ctx, prefix, slices.Concat(prefix, after[:])) {
			if err == nil && r.Home != home {
				continue // of an earlier thread with the same id
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
