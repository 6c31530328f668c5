package backendtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// expectedNames checks the expected branches and checkpoints of a commit.
func (m *Model) expectedNames(o backend.Options) error {
	for _, expect := range o.Branches {
		got, ok := m.branches[named{expect.Thread, expect.Name}]
		if err := expected(got, ok, expect.Was); err != nil {
			return err
		}
	}
	for _, expect := range o.Checkpoints {
		got, ok := m.checkpoints[named{expect.Thread, expect.Name}]
		if err := expected(got, ok, expect.Was); err != nil {
			return err
		}
	}
	return nil
}

// lookup is the key by which a usage is found.
type lookup struct {
	home   structure.Home
	source string
	number uint64
}

// live reports whether a home exists.
func (m *Model) live(h structure.Home) bool {
	t, ok := m.threads[h.Thread]
	return ok && t.Incarnation == h.Incarnation
}

// homeOf returns the home of new runs in a thread.
func (m *Model) homeOf(id structure.ThreadID) structure.Home {
	return structure.Home{Thread: id, Incarnation: m.threads[id].Incarnation}
}

// find lists the spans with a source id in one thread or in all. Those of one thread
// are together, the latest version first.
func (m *Model) find(source string, thread structure.ThreadID) []backend.Found {
	out := []backend.Found{}
	for l, ref := range m.lookups {
		if l.source == source && (thread.IsZero() || l.home.Thread == thread) && m.live(l.home) {
			out = append(out, backend.Found{Home: l.home, Lookup: l.number, Span: ref})
		}
	}
	sortFound(out)
	return out
}

func sortFound(all []backend.Found) {
	slices.SortFunc(all, func(a, b backend.Found) int {
		return cmp.Or(a.Home.Thread.Compare(b.Home.Thread), cmp.Compare(b.Lookup, a.Lookup))
	})
}

func (m *Model) expectedSources(o backend.Options) error {
	for _, expect := range o.Sources {
		found := m.find(expect.SourceID, expect.Thread)
		for _, one := range found {
			if len(expect.Spans) == 0 {
				return backend.ErrExists
			}
			if !slices.Contains(expect.Spans, one.Span) {
				return backend.ErrConflict
			}
		}
		if len(found) < len(expect.Spans) {
			return backend.ErrConflict
		}
	}
	return nil
}

// runsOf lists the runs of a thread.
func (m *Model) runsOf(thread structure.ThreadID) []structure.RunInfo {
	out := []structure.RunInfo{}
	for _, r := range m.runs {
		if r.Home.Thread == thread && !thread.IsZero() && m.live(r.Home) {
			out = append(out, m.info(r))
		}
	}
	slices.SortFunc(out, func(a, b structure.RunInfo) int { return a.ID.Compare(b.ID) })
	return out
}

// expected compares a value with the expected one; nil means that none may exist.
func expected[T any](now T, there bool, was *T) error {
	switch {
	case there && was == nil:
		return backend.ErrExists
	case was != nil && !there:
		return backend.ErrNotFound
	case was != nil && !equalFacts(now, *was):
		return backend.ErrConflict
	}
	return nil
}

// sourceFacts answers the queries by source id.
func (m *Model) sourceFacts(f Facts, seen *Census) {
	for _, source := range seen.sources.list() {
		for _, thread := range append([]structure.ThreadID{{}}, several(seen.threads.list())...) {
			wanted := func(id structure.ThreadID) bool { return thread.IsZero() || id == thread }
			f[fmt.Sprintf("branches from %.20q in %v", source, thread)] = chosen(m.branches,
				func(b structure.Branch) bool { return b.SourceID == source && wanted(b.Thread) },
				func(a, b structure.Branch) int { return a.Thread.Compare(b.Thread) })
			f[fmt.Sprintf("checkpoints from %.20q in %v", source, thread)] = chosen(m.checkpoints,
				func(c structure.Checkpoint) bool { return c.SourceID == source && wanted(c.Thread) },
				func(a, b structure.Checkpoint) int { return a.Thread.Compare(b.Thread) })
			f[fmt.Sprintf("found from %.20q in %v", source, thread)] = m.find(source, thread)
		}
	}
	for _, thread := range seen.threads.list() {
		f[fmt.Sprint("runs of ", thread)] = m.runsOf(thread)
	}
}

// sources runs the queries of sourceFacts on a store.
func (f Facts) sources(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	for _, source := range seen.sources.list() {
		for _, thread := range append([]structure.ThreadID{{}}, several(seen.threads.list())...) {
			f.put(t, fmt.Sprintf("branches from %.20q in %v", source, thread), values(t, r.BranchesBySource(background, source, thread)))
			f.put(t, fmt.Sprintf("checkpoints from %.20q in %v", source, thread), values(t, r.CheckpointsBySource(background, source, thread)))
			f.put(t, fmt.Sprintf("found from %.20q in %v", source, thread), found(t, r, source, thread))
		}
	}
	for _, thread := range seen.threads.list() {
		runs := list(t, r.RunsOf(background, thread, structure.RunID{}))
		f.put(t, fmt.Sprint("runs of ", thread), runs)
		for i := range runs {
			if rest := list(t, r.RunsOf(background, thread, runs[i].ID)); rest != nil {
				require.Equal(t, runs[i+1:], rest, "runs of %v behind %v", thread, runs[i].ID)
			}
		}
	}
}

// found lists the spans with a source id, and checks that continued listings agree. The
// order of threads is up to the engine.
func found(t tester, r backend.Reader, source string, thread structure.ThreadID) []backend.Found {
	t.Helper()
	all := list(t, r.Find(background, source, thread, backend.Found{}))
	for i := range all {
		if rest := list(t, r.Find(background, source, thread, all[i])); rest != nil {
			require.Equal(t, all[i+1:], rest, "what %q leads to behind %v", source, all[i])
		}
	}
	first, err := backend.FindFirst(background, r, source, thread)
	if errors.Is(err, backend.ErrNotFound) {
		require.Empty(t, all)
	} else if fine(t, err) && all != nil {
		require.NotEmpty(t, all)
		require.Equal(t, all[0], first)
	}
	seen, sorted := map[structure.ThreadID]bool{}, slices.Clone(all)
	for i, one := range all { // those of one thread are together, in order
		if i == 0 || all[i-1].Home != one.Home {
			require.False(t, seen[one.Home.Thread])
			seen[one.Home.Thread] = true
		} else {
			require.Greater(t, all[i-1].Lookup, one.Lookup)
		}
	}
	sortFound(sorted)
	return sorted
}
