package backendtest

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// expectedNames compares branches and checkpoints with what they must be.
func (m *model) expectedNames(o backend.Options) error {
	for _, expect := range o.Branches {
		is, ok := m.branches[named{expect.Thread, expect.Name}]
		if err := expected(is, ok, expect.Was); err != nil {
			return err
		}
	}
	for _, expect := range o.Checkpoints {
		is, ok := m.checkpoints[named{expect.Thread, expect.Name}]
		if err := expected(is, ok, expect.Was); err != nil {
			return err
		}
	}
	return nil
}

// expected compares what there is with what there must be, nil for nothing.
func expected[T any](is T, there bool, was *T) error {
	switch {
	case there && was == nil:
		return backend.ErrExists
	case was != nil && !there:
		return backend.ErrNotFound
	case was != nil && !equalFacts(is, *was):
		return backend.ErrConflict
	}
	return nil
}

// sourceFacts answers the questions about ids that callers chose.
func (m *model) sourceFacts(f facts, seen *census) {
	for _, source := range seen.sources.list() {
		for _, thread := range append([]structure.ThreadID{{}}, seen.threads.list()...) {
			of := func(is structure.ThreadID) bool { return thread.IsZero() || is == thread }
			f[fmt.Sprintf("branches from %.20q in %v", source, thread)] = chosen(m.branches,
				func(b structure.Branch) bool { return b.SourceID == source && of(b.Thread) },
				func(a, b structure.Branch) int { return a.Thread.Compare(b.Thread) })
			f[fmt.Sprintf("checkpoints from %.20q in %v", source, thread)] = chosen(m.checkpoints,
				func(c structure.Checkpoint) bool { return c.SourceID == source && of(c.Thread) },
				func(a, b structure.Checkpoint) int { return a.Thread.Compare(b.Thread) })
		}
	}
}

// sources asks a store the same.
func (f facts) sources(t tester, r backend.Reader, seen *census) {
	t.Helper()
	for _, source := range seen.sources.list() {
		for _, thread := range append([]structure.ThreadID{{}}, seen.threads.list()...) {
			f[fmt.Sprintf("branches from %.20q in %v", source, thread)] = values(t, r.BranchesBySource(background, source, thread))
			f[fmt.Sprintf("checkpoints from %.20q in %v", source, thread)] = values(t, r.CheckpointsBySource(background, source, thread))
		}
	}
}
