package resume

import (
	"cmp"
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Sequences implements the methods of backend.Reader that yield sequences. Each opens its own reader.
type Sequences struct{ Open Open[backend.Reader] }

func (s *Sequences) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
		return r.Threads(ctx, after)
	}, func(last *structure.Thread) structure.ThreadID { return last.ID })
}

func (s *Sequences) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return ordered(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[*structure.Thread, error] { return r.ThreadsEnding(ctx, end) },
		func(v, last *structure.Thread) bool { return v.ID.Compare(last.ID) > 0 })
}

func (s *Sequences) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return Paged(ctx, s.Open, q, func(r backend.Reader, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
		return r.ListThreads(ctx, q)
	}, func(last backend.ThreadListing) backend.ThreadQuery {
		q := q
		q.After = last.Token()
		return q
	})
}

func (s *Sequences) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after structure.ContextID) iter.Seq2[backend.Context, error] {
		return r.Contexts(ctx, thread, after)
	}, func(last backend.Context) structure.ContextID { return last.ID })
}

func (s *Sequences) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after structure.ContextID) iter.Seq2[backend.Context, error] {
		return r.ContextsAlone(ctx, after)
	}, func(last backend.Context) structure.ContextID { return last.ID })
}

func (s *Sequences) Children(ctx context.Context, parent structure.ContextID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after structure.ContextID) iter.Seq2[backend.Context, error] {
		return r.Children(ctx, parent, after)
	}, func(last backend.Context) structure.ContextID { return last.ID })
}

func (s *Sequences) Branches(ctx context.Context, thread structure.ThreadID, prefix string, after string) iter.Seq2[*structure.Branch, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after string) iter.Seq2[*structure.Branch, error] {
		return r.Branches(ctx, thread, prefix, after)
	}, func(last *structure.Branch) string { return last.Name })
}

func (s *Sequences) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return ordered(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[*structure.Branch, error] { return r.BranchesOf(ctx, thread, id) },
		func(v, last *structure.Branch) bool { return v.Name > last.Name })
}

func (s *Sequences) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return ordered(ctx, s.Open, func(r backend.Reader) iter.Seq2[*structure.Branch, error] {
		return r.BranchesBySource(ctx, sourceID, thread)
	}, func(v, last *structure.Branch) bool { return v.Thread.Compare(last.Thread) > 0 })
}

func (s *Sequences) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after string) iter.Seq2[*structure.Checkpoint, error] {
		return r.Checkpoints(ctx, thread, after)
	}, func(last *structure.Checkpoint) string { return last.Name })
}

func (s *Sequences) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return ordered(ctx, s.Open, func(r backend.Reader) iter.Seq2[*structure.Checkpoint, error] {
		return r.CheckpointsBySource(ctx, sourceID, thread)
	}, func(v, last *structure.Checkpoint) bool { return v.Thread.Compare(last.Thread) > 0 })
}

func (s *Sequences) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after backend.Found) iter.Seq2[backend.Found, error] {
		return r.Find(ctx, sourceID, thread, after)
	}, func(last backend.Found) backend.Found { return last })
}

func (s *Sequences) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
		return r.RunsOf(ctx, thread, after)
	}, func(last structure.RunInfo) structure.RunID { return last.ID })
}

func (s *Sequences) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return ordered(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[structure.RunInfo, error] { return r.Forks(ctx, run) },
		func(v, last structure.RunInfo) bool {
			return cmp.Or(cmp.Compare(v.Parent.Seq, last.Parent.Seq), v.ID.Compare(last.ID)) > 0
		})
}

func (s *Sequences) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return ordered(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[structure.RunInfo, error] { return r.ForksAt(ctx, at) },
		func(v, last structure.RunInfo) bool { return v.ID.Compare(last.ID) > 0 })
}

func (s *Sequences) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return Paged(ctx, s.Open, w, func(r backend.Reader, w structure.Window) iter.Seq2[*backend.Step, error] {
		return r.Path(ctx, tip, w, o)
	}, func(last *backend.Step) structure.Window {
		return structure.Window{From: last.Position + 1, To: w.To}
	})
}

func (s *Sequences) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return distinct(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[structure.SpanRef, error] { return r.Alternatives(ctx, id) },
		func(s structure.SpanRef) structure.SpanRef { return s })
}

func (s *Sequences) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return distinct(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[*structure.Summary, error] { return r.Summaries(ctx, id) },
		func(s *structure.Summary) structure.SummaryID { return s.ID })
}

func (s *Sequences) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	type move struct {
		from, to structure.SpanRef
		reason   string
		at       int64
	}
	return appended(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[*structure.Reflog, error] { return r.Reflog(ctx, id) },
		func(m *structure.Reflog) move {
			return move{m.From, m.To, m.Reason, m.At.UnixNano()}
		})
}

func (s *Sequences) Values(ctx context.Context, owner structure.Owner, prefix string, after string) iter.Seq2[backend.Value, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after string) iter.Seq2[backend.Value, error] {
		return r.Values(ctx, owner, prefix, after)
	}, func(last backend.Value) string { return last.Key })
}

func (s *Sequences) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return ordered(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[backend.Value, error] { return r.ValueHistory(ctx, key) },
		func(v, last backend.Value) bool { return v.Commit < last.Commit })
}

func (s *Sequences) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return Paged(ctx, s.Open, after, func(r backend.Reader, after string) iter.Seq2[string, error] { return r.ValueOwners(ctx, scope, after) }, func(last string) string { return last })
}

func (s *Sequences) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return distinct(ctx, s.Open,
		func(r backend.Reader) iter.Seq2[structure.UsageID, error] { return r.Where(ctx, id) },
		func(u structure.UsageID) structure.UsageID { return u })
}
