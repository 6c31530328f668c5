package entries

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// Prefetch prefetches everything that judging commits may read, given their judge.Keys: first the entries of the
// keys, then the entries that depend on their values. The prefetcher must return an entry that it found as the last
// of a range also under its key.
func (s *State) Prefetch(ctx context.Context, ahead read.Prefetcher, all []judge.Key) error {
	var first, second read.Need
	for _, k := range all {
		s.need(&first, k)
	}
	if err := ahead.Prefetch(ctx, first); err != nil {
		return err
	}
	for _, k := range all {
		if err := s.needNext(&second, k); err != nil {
			return err
		}
	}
	if len(second.Keys)+len(second.Ranges) > 0 {
		if err := ahead.Prefetch(ctx, second); err != nil {
			return err
		}
	}
	for _, k := range all {
		if err := s.prefetchLines(ctx, ahead, k); err != nil {
			return err
		}
	}
	return nil
}

// prefetchLines prefetches the children of contexts that may be deleted, and the remnants above these contexts with
// their children.
func (s *State) prefetchLines(ctx context.Context, ahead read.Prefetcher, k judge.Key) error {
	switch k.Kind {
	case judge.KeyLine:
		return s.prefetchLine(ctx, ahead, structure.ContextID(k.ID))
	case judge.KeyOfThread:
		return s.list(keys.Of(keys.TableContextOfThread, k.ID[:]), func(id, _ []byte) error {
			return s.prefetchLine(ctx, ahead, structure.ContextID(id))
		})
	}
	return nil
}

func (s *State) prefetchLine(ctx context.Context, ahead read.Prefetcher, id structure.ContextID) error {
	c, err := s.Context(id)
	for !id.IsZero() && err == nil {
		err = ahead.Prefetch(ctx, read.Need{
			Keys: [][]byte{keys.Of(keys.TableRemnant, id[:])}, Ranges: []read.Range{read.Under(keys.Of(keys.TableChildOfContext, id[:]))},
		})
		if err != nil {
			return err
		}
		var r *structure.Remnant
		if c != nil {
			id, c = c.Parent, nil
		} else if r, err = s.Remnant(id); r != nil {
			id = r.Parent
		} else {
			return err
		}
	}
	return err
}

// need adds the entries of a key.
func (s *State) need(n *read.Need, k judge.Key) {
	get := func(table byte, parts ...[]byte) { n.Keys = append(n.Keys, keys.Of(table, parts...)) }
	under := func(prefix []byte) { n.Ranges = append(n.Ranges, read.Under(prefix)) }
	switch id := k.ID[:]; k.Kind {
	case judge.KeyThread:
		get(keys.TableThread, id)
	case judge.KeyContext, judge.KeyNamesOf:
		get(keys.TableContext, id)
		get(keys.TableTip, id)
	case judge.KeyRemnant:
		get(keys.TableRemnant, id)
	case judge.KeyRun, judge.KeyLookupsOfRun:
		get(keys.TableRun, id)
	case judge.KeyEnd:
		get(keys.TableRun, id)
		get(keys.TableCutRun, id)
		n.Lasts = append(n.Lasts, read.Under(keys.Of(keys.TableSpan, id)))
	case judge.KeyDigest:
		get(keys.TableRun, id)
		n.Keys = append(n.Keys, keys.Span(structure.SpanRef{Run: k.ID, Seq: k.Seq}))
	case judge.KeySpan:
		n.Keys = append(n.Keys, keys.Span(structure.SpanRef{Run: k.ID, Seq: k.Seq}))
	case judge.KeySet:
		get(keys.TableSpanSet, id)
	case judge.KeyLookups:
		under(keys.LookupsIn(structure.Home{Thread: k.ID, Incarnation: k.Seq}, k.Name))
	case judge.KeyFind:
		if id := structure.ThreadID(k.ID); id.IsZero() {
			under(keys.Lookups(k.Name))
		} else {
			get(keys.TableThread, id[:])
		}
	case judge.KeyBranch:
		n.Keys = append(n.Keys, keys.Branch(k.ID, k.Name))
	case judge.KeyCheckpoint:
		n.Keys = append(n.Keys, keys.Checkpoint(k.ID, k.Name))
	case judge.KeyBranchFrom:
		n.Keys = append(n.Keys, keys.Source(keys.TableBranchBySource, k.Name, id...))
	case judge.KeyCheckpointFrom:
		n.Keys = append(n.Keys, keys.Source(keys.TableCheckpointBySource, k.Name, id...))
	case judge.KeyBlock:
		n.Keys = append(n.Keys, keys.Block(k.Hash))
	case judge.KeyErased:
		if s.Latest.AnyErased() {
			get(keys.TableErased, k.Hash[:])
		}
	case judge.KeyChunk, judge.KeyTree:
		n.Keys = append(n.Keys, keys.Chunk(k.Hash))
	case judge.KeyOfThread:
		under(keys.Of(keys.TableContextOfThread, id))
		under(keys.Of(keys.TableBranch, id))
		under(keys.Of(keys.TableCheckpoint, id))
	case judge.KeySummaries:
		under(keys.Of(keys.TableSummary, id))
	case judge.KeyValue:
		under(keys.History(k.Value))
	case judge.KeyLine:
		get(keys.TableRemnant, id)
		under(keys.Of(keys.TableChildOfContext, id))
	}
}

// needNext adds the entries that depend on the values of a key's entries.
func (s *State) needNext(n *read.Need, k judge.Key) error {
	switch k.Kind {
	case judge.KeyLookupsOfRun:
		run, ok, err := s.Run(k.ID)
		if err == nil && ok {
			n.Ranges = append(n.Ranges, read.Under(keys.LookupsIn(run.Home, k.Name)))
		}
		return err
	case judge.KeyFind:
		if k.ID == [16]byte{} {
			return s.needFound(n, k.Name)
		}
		t, err := s.Thread(k.ID)
		if err == nil && t != nil {
			n.Ranges = append(n.Ranges, read.Under(keys.LookupsIn(t.Home(), k.Name)))
		}
		return err
	case judge.KeyNamesOf:
		c, err := s.Context(k.ID)
		if err == nil && c != nil {
			n.Ranges = append(n.Ranges, read.Under(keys.Named(c.Thread, c.ID, "")))
		}
		return err
	case judge.KeyOfThread:
		return s.list(keys.Of(keys.TableContextOfThread, k.ID[:]), func(id, _ []byte) error {
			n.Keys = append(n.Keys, keys.Of(keys.TableContext, id), keys.Of(keys.TableTip, id), keys.Of(keys.TableRemnant, id))
			n.Ranges = append(n.Ranges, read.Under(keys.Named(k.ID, structure.ContextID(id), "")), read.Under(keys.Of(keys.TableSummary, id)), read.Under(keys.Of(keys.TableChildOfContext, id)))
			return nil
		})
	}
	return nil
}

// needFound adds the runs of the usages with a source id in any home. Their threads are read one by one.
func (s *State) needFound(n *read.Need, sourceID string) error {
	prefix := keys.Lookups(sourceID)
	return s.list(prefix, func(rest, _ []byte) error {
		_, ref, err := keys.ReadLookup(slices.Concat(prefix, rest))
		n.Keys = append(n.Keys, keys.Of(keys.TableRun, ref.Run[:]))
		return err
	})
}

// Prefetch prefetches what the entries of a commit depend on. It is called between Begin and
// Entries.
func (b *Builder) Prefetch(ctx context.Context, ahead read.Prefetcher) error {
	var n read.Need
	under := func(prefix []byte) { n.Ranges = append(n.Ranges, read.Under(prefix)) }
	for id, c := range b.Contexts.All() {
		if c.Gone() {
			under(keys.Of(keys.TableSummary, id[:]))
			under(keys.Of(keys.TableReflog, id[:]))
			under(keys.Owner(structure.Owner{Scope: structure.ContextScope, Context: id}))
		}
	}
	for _, id := range b.ThreadsGone {
		under(keys.Owner(structure.Owner{Scope: structure.ThreadScope, Thread: id}))
	}
	for home := range b.LastMessages.All() {
		if _, ok := b.state.Cache.messages.Get(home); !ok {
			n.Keys = append(n.Keys, keys.AppendMessage(nil, home))
		}
	}
	for _, id := range b.Revived {
		n.Keys = append(n.Keys, keys.Block(id))
	}
	if len(n.Keys) == 0 && len(n.Ranges) == 0 {
		return nil
	}
	return ahead.Prefetch(ctx, n)
}
