package write

import (
	"context"
	"fmt"
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

// The following methods of backend.Engine are not for transactions.

func (s *Stage) Outcome(context.Context, backend.Once) (backend.Receipt, error) {
	return backend.Receipt{}, outside("outcome of a request")
}

func (s *Stage) Forget(context.Context, [16]byte) error { return outside("end of a session") }

func (s *Stage) Feed(context.Context, backend.Cursor) iter.Seq2[*structure.Commit, error] {
	return refused[*structure.Commit]("feed")
}

func (s *Stage) Wait(context.Context, backend.Cursor) (backend.Cursor, error) {
	return backend.Cursor{}, outside("waiting for commits")
}

func (s *Stage) Sync(context.Context) error { return outside("sync") }

func (s *Stage) Verify(context.Context, backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return refused[backend.Finding]("verification")
}

func (s *Stage) Close() error { return outside("closing the store") }

func outside(what string) error {
	return fmt.Errorf("%s inside a transaction: %w", what, backend.ErrInvalid)
}

// refused returns a sequence that fails: it is not allowed in a transaction.
func refused[T any](what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, outside(what))
	}
}
