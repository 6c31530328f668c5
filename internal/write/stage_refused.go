package write

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Listings are refused because no expectation covers the changes that others can make to them.

func (s *Stage) Threads(context.Context, structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return refused[*structure.Thread]("a list of threads")
}

func (s *Stage) ListThreads(context.Context, backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return refused[backend.ThreadListing]("a list of threads")
}

func (s *Stage) ThreadsEnding(context.Context, [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return refused[*structure.Thread]("a list of threads")
}

func (s *Stage) Contexts(context.Context, structure.ThreadID, structure.ContextID) iter.Seq2[backend.Context, error] {
	return refused[backend.Context]("a list of contexts")
}

func (s *Stage) Children(context.Context, structure.ContextID, structure.ContextID) iter.Seq2[backend.Context, error] {
	return refused[backend.Context]("a list of contexts")
}

func (s *Stage) RunsOf(context.Context, structure.ThreadID, structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return refused[structure.RunInfo]("a list of runs")
}

func (s *Stage) Forks(context.Context, structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return refused[structure.RunInfo]("a list of runs")
}

func (s *Stage) ForksAt(context.Context, structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return refused[structure.RunInfo]("a list of runs")
}

func (s *Stage) Alternatives(context.Context, structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return refused[structure.SpanRef]("a list of alternatives")
}

func (s *Stage) Summaries(context.Context, structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return refused[*structure.Summary]("a list of summaries")
}

func (s *Stage) Values(context.Context, structure.Owner, string, string) iter.Seq2[backend.Value, error] {
	return refused[backend.Value]("a list of values")
}

func (s *Stage) ValueOwners(context.Context, structure.Scope, string) iter.Seq2[string, error] {
	return refused[string]("a list of owners of values")
}

func (s *Stage) Where(context.Context, content.ID) iter.Seq2[structure.UsageID, error] {
	return refused[structure.UsageID]("a list of usages")
}

func (s *Stage) Stats(context.Context) (backend.Stats, error) {
	return backend.Stats{}, outside("counting")
}
