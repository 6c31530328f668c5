package backendtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var background = context.Background()

// Facts maps every query about the ids of a census to its result. Results that engines
// may choose, such as byte counts, are left out.
type Facts map[string]any

func equalFacts(a, b any) bool { return reflect.DeepEqual(a, b) }

// explain describes two facts; of lists, only from the first difference on.
func explain(a, b any) (string, string) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if va.Kind() != reflect.Slice || vb.Kind() != reflect.Slice {
		return describe(a), describe(b)
	}
	i := 0
	for i < min(va.Len(), vb.Len()) && equalFacts(va.Index(i).Interface(), vb.Index(i).Interface()) {
		i++
	}
	rest := func(v reflect.Value) string {
		return fmt.Sprintf("%d elements, from %d: %s", v.Len(), i, describe(v.Slice(i, min(v.Len(), i+2)).Interface()))
	}
	return rest(va), rest(vb)
}

func describe(fact any) string {
	s := fmt.Sprintf("%+v", fact)
	if len(s) > 1500 {
		s = s[:1500] + "…"
	}
	return s
}

// step is a backend.Step with values instead of pointers.
type step struct {
	Position, Commit uint64
	Span             structure.Span
	Bodies           []string
}

// The bodies of steps whose blocks have no bytes.
const (
	erasedBody = "\x00erased"
	treeBody   = "\x00tree "
)

// failure is the fact for a reader that fails.
type failure struct{ err error }

// lenient is the tester of a reader that may fail. It keeps the error for the next put.
type lenient struct {
	tester
	failed error
}

// fine reports whether err is nil. Otherwise it fails the test, unless the reader may fail.
func fine(t tester, err error) bool {
	if l, ok := t.(*lenient); ok {
		l.failed = cmp.Or(l.failed, err)
		return err == nil
	}
	t.Helper()
	require.NoError(t, err)
	return true
}

// put records the result of a query.
func (f Facts) put(t tester, question string, answer any) {
	if l, ok := t.(*lenient); ok && l.failed != nil {
		answer, l.failed = failure{l.failed}, nil
	}
	f[question] = answer
}

// once is put for a question that several ids lead to: it is asked for the first of them.
func (f Facts) once(t tester, question string, ask func() any) {
	t.Helper()
	if _, asked := f[question]; !asked {
		f.put(t, question, ask())
	}
}

// Ask queries a reader about all ids of a census. An unexpected error is recorded as a
// failure.
func Ask(t require.TestingT, r backend.Reader, seen *Census) Facts {
	return readFacts(&lenient{tester: quiet{t}}, r, seen)
}

// quiet is a tester that does not log.
type quiet struct{ require.TestingT }

func (quiet) Helper()             {}
func (quiet) Logf(string, ...any) {}

// Wrong describes at most five results that differ from those wanted. With damaged, failures
// do not count.
func (f Facts) Wrong(want Facts, damaged bool) (wrong []string) {
	questions := maps.Clone(want)
	maps.Copy(questions, f)
	for _, question := range slices.Sorted(maps.Keys(questions)) {
		got, asked := f[question]
		_, failed := got.(failure)
		if should, known := want[question]; asked && known && equalFacts(got, should) || damaged && (failed || !asked) {
			continue
		}
		got, should := explain(got, want[question])
		if wrong = append(wrong, fmt.Sprintf("%s: is %.500s, should be %.500s", question, got, should)); len(wrong) == 5 {
			break
		}
	}
	return wrong
}

// readFacts runs all queries.
func readFacts(t tester, r backend.Reader, seen *Census) Facts {
	t.Helper()
	f := Facts{}
	head, err := r.Head(background)
	f.put(t, "head", answer(t, head.Number, err))
	f.threads(t, r, seen)
	f.contexts(t, r, seen)
	f.runs(t, r, seen)
	f.pages(t, r, seen)
	f.listings(t, r, seen)
	f.sources(t, r, seen)
	f.values(t, r, seen)
	f.content(t, r, seen)
	stats, err := r.Stats(background)
	if fine(t, err) {
		require.LessOrEqual(t, stats.IndexBytes, stats.StoredBytes)
	}
	f.put(t, "stats", stats.Counts())
	return f
}

func idEnd(id structure.ThreadID) [backend.IDEnd]byte {
	return [backend.IDEnd]byte(id[len(id)-backend.IDEnd:])
}

func (f Facts) threads(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	f.put(t, "threads", values(t, r.Threads(background, structure.ThreadID{})))
	for _, id := range seen.threads.list() {
		thread, err := r.Thread(background, id)
		f.put(t, fmt.Sprint("thread ", id), answer(t, deref(thread), err))
		f.put(t, fmt.Sprint("threads that end like ", id), values(t, r.ThreadsEnding(background, idEnd(id))))
		f.put(t, fmt.Sprint("contexts of ", id), list(t, r.Contexts(background, id, structure.ContextID{})))
		f.put(t, fmt.Sprint("branches of ", id), values(t, r.Branches(background, id, "", "")))
		f.put(t, fmt.Sprint("checkpoints of ", id), values(t, r.Checkpoints(background, id, "")))
		for _, context := range several(seen.contexts.list()) {
			f.put(t, fmt.Sprintf("branches of %v in %v", context, id), values(t, r.BranchesOf(background, id, context)))
		}
		for _, name := range several(seen.names.list()) {
			for _, prefix := range prefixes(name) {
				f.once(t, fmt.Sprintf("branches named %q… in %v", prefix, id), func() any { return values(t, r.Branches(background, id, prefix, "")) })
			}
			f.named(t, r, named{id, name})
		}
	}
	for _, n := range seen.named.list() {
		f.named(t, r, n)
	}
}

func (f Facts) named(t tester, r backend.Reader, n named) {
	t.Helper()
	f.once(t, fmt.Sprintf("branch %q of %v", n.name, n.thread), func() any {
		branch, err := r.Branch(background, n.thread, n.name)
		return answer(t, deref(branch), err)
	})
	f.once(t, fmt.Sprintf("checkpoint %q of %v", n.name, n.thread), func() any {
		checkpoint, err := r.Checkpoint(background, n.thread, n.name)
		return answer(t, deref(checkpoint), err)
	})
}

// prefixes returns prefixes of a name, including the whole name.
func prefixes(name string) []string { return []string{"", name[:len(name)/2], name} }

func (f Facts) contexts(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	f.put(t, "contexts", list(t, r.Contexts(background, structure.ThreadID{}, structure.ContextID{})))
	f.put(t, "contexts alone", list(t, r.ContextsAlone(background, structure.ContextID{})))
	f.put(t, "summaries", values(t, r.Summaries(background, structure.ContextID{})))
	for _, id := range seen.contexts.list() {
		c, err := r.Context(background, id)
		f.put(t, fmt.Sprint("context ", id), answer(t, c, err))
		left, err := r.Remnant(background, id)
		f.put(t, fmt.Sprint("remnant ", id), answer(t, deref(left), err))
		f.put(t, fmt.Sprint("children of ", id), list(t, r.Children(background, id, structure.ContextID{})))
		f.put(t, fmt.Sprint("summaries of ", id), values(t, r.Summaries(background, id)))
		f.put(t, fmt.Sprint("reflog of ", id), values(t, r.Reflog(background, id)))
	}
	for _, id := range seen.sets.list() {
		set, err := r.SpanSet(background, id)
		f.put(t, fmt.Sprint("span set ", id), answer(t, deref(set), err))
		f.put(t, fmt.Sprint("alternatives in ", id), list(t, r.Alternatives(background, id)))
	}
}

// ancestors are the limits of ancestry queries.
var ancestors = []int{1, 2, 1000}

func (f Facts) runs(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	f.put(t, "roots", forks(t, r, structure.RunID{}))
	for _, id := range seen.runs.list() {
		run, err := r.Run(background, id)
		f.put(t, fmt.Sprint("run ", id), answer(t, run, err))
		for _, limit := range ancestors {
			ancestry, err := r.Ancestry(background, id, limit)
			f.put(t, fmt.Sprintf("at most %d ancestors of %v", limit, id), answer(t, ancestry, err))
		}
		f.put(t, fmt.Sprint("forks of ", id), forks(t, r, id))
		last, err := r.Last(background, id)
		f.put(t, fmt.Sprint("last of ", id), answer(t, last, err))
		answer(t, last, err) // without it there is no path to read
		f.put(t, fmt.Sprint("path to ", id), path(t, r, last, structure.Window{}))
	}
	for _, ref := range seen.spans.list() {
		digest, err := r.Digest(background, ref)
		f.put(t, fmt.Sprint("digest of ", ref), answer(t, digest, err))
		f.put(t, fmt.Sprint("forks at ", ref), list(t, r.ForksAt(background, ref)))
	}
}

func (f Facts) content(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	ids := seen.blocks.list()
	has, err := r.Has(background, ids)
	if err != nil {
		has = make([]bool, len(ids))
	}
	require.Len(t, has, len(ids))
	var there []content.ID
	for i, id := range ids {
		fine(t, err)
		f.put(t, fmt.Sprint("has ", id), has[i])
		f.put(t, fmt.Sprint("usages of ", id), list(t, r.Where(background, id)))
		if has[i] {
			there = append(there, id)
			continue
		}
		_, err := r.Blocks(background, append(slices.Clone(some(there)), id))
		f.put(t, fmt.Sprint("block ", id), answer(t, "there", err))
	}
	f.blocks(t, r, there)
	var keys []content.Key
	for _, key := range seen.chunks.list() {
		b, err := r.Chunks(background, append(slices.Clone(keys), key))
		f.put(t, fmt.Sprint("chunk ", key), answer(t, "", err))
		if err == nil {
			require.Len(t, b, len(keys)+1)
			f.put(t, fmt.Sprint("chunk ", key), string(b[len(keys)]))
			keys = append(keys[max(len(keys)-3, 0):], key)
		}
	}
}

// blocks reads existing blocks, in one call unless that fails.
func (f Facts) blocks(t tester, r backend.Reader, ids []content.ID) {
	t.Helper()
	blocks, err := r.Blocks(background, ids)
	if err != nil && len(ids) > 1 {
		for i := range ids {
			f.blocks(t, r, ids[i:i+1])
		}
		return
	}
	if err != nil {
		blocks = make([]*structure.Block, len(ids))
	}
	require.Len(t, blocks, len(ids))
	for i, id := range ids {
		b := deref(blocks[i])
		b.Body = bytes.Clone(b.Body)
		fine(t, err)
		f.put(t, fmt.Sprint("block ", id), plain(b))
	}
}

// plain returns the comparable form of a block: an empty body is nil, and its origin is left
// out.
func plain(b structure.Block) structure.Block {
	if len(b.Body) == 0 {
		b.Body = nil
	}
	return structure.Block{Block: b.Block, Body: b.Body, Tree: b.Tree}
}

// forks lists the runs that start after spans of a run; those after the same span are
// sorted by id.
func forks(t tester, r backend.Reader, run structure.RunID) []structure.RunInfo {
	t.Helper()
	found := list(t, r.Forks(background, run))
	byPlace := func(a, b structure.RunInfo) int { return cmp.Compare(a.Parent.Seq, b.Parent.Seq) }
	require.True(t, slices.IsSortedFunc(found, byPlace), "forks of %v are not by place: %v", run, found)
	sortForks(found)
	return found
}

func sortForks(runs []structure.RunInfo) {
	slices.SortFunc(runs, func(a, b structure.RunInfo) int {
		return cmp.Or(cmp.Compare(a.Parent.Seq, b.Parent.Seq), a.ID.Compare(b.ID))
	})
}

// path lists a window of a history with its bodies.
func path(t tester, r backend.Reader, tip structure.SpanRef, w structure.Window) any {
	t.Helper()
	steps := []step{}
	for s, err := range r.Path(background, tip, w, backend.PathOptions{Bodies: true}) {
		if err != nil {
			got := answer(t, 0, err)
			if got != nil {
				require.Empty(t, steps, "%v", err)
			}
			return got
		}
		require.Len(t, s.Blocks, len(s.Span.Usages))
		one := step{Position: s.Position, Commit: s.Commit, Span: *s.Span}
		for i, b := range s.Blocks {
			require.Equal(t, s.Span.Usages[i].Content, b.ID)
			one.Bodies = append(one.Bodies, body(b))
		}
		steps = append(steps, one)
	}
	// Passing yields the same steps.
	n := 0
	for s, err := range r.Path(background, tip, w, backend.PathOptions{Bodies: true, Passing: true}) {
		if !fine(t, err) {
			return nil
		}
		require.Less(t, n, len(steps))
		require.Equal(t, steps[n].Position, s.Position)
		require.Equal(t, steps[n].Span, *s.Span)
		require.Len(t, s.Blocks, len(s.Span.Usages))
		n++
	}
	require.Len(t, steps, n)
	return steps
}

func body(b *structure.Block) string {
	switch {
	case !b.Tree.IsZero():
		return treeBody + b.Tree.Key.String()
	case len(b.Body) == 0 && b.ID != content.Sum(nil):
		return erasedBody
	}
	return string(b.Body)
}

// list collects a sequence and fails the test on an error.
func list[T any](t tester, seq iter.Seq2[T, error]) []T {
	t.Helper()
	out := []T{}
	for v, err := range seq {
		if !fine(t, err) {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// values collects the values that a sequence of pointers points to.
func values[T any](t tester, seq iter.Seq2[*T, error]) []T {
	t.Helper()
	out := []T{}
	for v, err := range seq {
		if !fine(t, err) {
			return nil
		}
		out = append(out, *v)
	}
	return out
}

func deref[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
