package backendtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Facts answers all queries about the ids of a census.
func (m *Model) Facts(seen *Census) Facts {
	f := Facts{"head": m.number, "stats": m.stats()}
	m.threadFacts(f, seen)
	m.viewFacts(f, seen)
	m.runFacts(f, seen)
	m.pages(f, seen)
	m.listingFacts(f, seen)
	m.sourceFacts(f, seen)
	m.valueFacts(f, seen)
	for _, id := range seen.blocks.list() {
		f[fmt.Sprint("has ", id)] = m.has(id)
		f[fmt.Sprint("usages of ", id)] = m.usages(id)
		f[fmt.Sprint("block ", id)] = look(m.blocks, id)
		if m.erased[id] {
			f[fmt.Sprint("block ", id)] = backend.ErrErased.Error()
		}
	}
	for _, key := range seen.chunks.list() {
		f[fmt.Sprint("chunk ", key)] = look(m.chunks, key)
	}
	return f
}

func look[K comparable, V any](there map[K]V, key K) any {
	if v, ok := there[key]; ok {
		return v
	}
	return backend.ErrNotFound.Error()
}

// chosen returns the values that accept returns true for, in order.
func chosen[K comparable, V any](all map[K]V, accept func(V) bool, order func(a, b V) int) []V {
	out := []V{}
	for _, v := range all {
		if accept(v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, order)
	return out
}

func (m *Model) threadFacts(f Facts, seen *Census) {
	f["threads"] = m.threadsWhere(func(structure.Thread) bool { return true })
	for _, id := range seen.threads.list() {
		f[fmt.Sprint("thread ", id)] = look(m.threads, id)
		f[fmt.Sprint("threads that end like ", id)] = chosen(m.threads, func(t structure.Thread) bool { return idEnd(t.ID) == idEnd(id) },
			func(a, b structure.Thread) int { return a.ID.Compare(b.ID) })
		f[fmt.Sprint("contexts of ", id)] = m.viewsWhere(func(v backend.Context) bool { return v.Thread == id })
		f[fmt.Sprint("branches of ", id)] = m.branchesWhere(func(b structure.Branch) bool { return b.Thread == id })
		for _, context := range several(seen.contexts.list()) {
			f[fmt.Sprintf("branches of %v in %v", context, id)] = m.branchesWhere(func(b structure.Branch) bool {
				return b.Thread == id && b.Context == context
			})
		}
		f[fmt.Sprint("checkpoints of ", id)] = m.checkpointsWhere(func(c structure.Checkpoint) bool { return c.Thread == id })
		for _, name := range several(seen.names.list()) {
			for _, prefix := range prefixes(name) {
				f[fmt.Sprintf("branches named %q… in %v", prefix, id)] = m.branchesWhere(func(b structure.Branch) bool {
					return b.Thread == id && strings.HasPrefix(b.Name, prefix)
				})
			}
			m.namedFacts(f, named{id, name})
		}
	}
	for _, n := range seen.named.list() {
		m.namedFacts(f, n)
	}
}

func (m *Model) namedFacts(f Facts, n named) {
	f[fmt.Sprintf("branch %q of %v", n.name, n.thread)] = look(m.branches, n)
	f[fmt.Sprintf("checkpoint %q of %v", n.name, n.thread)] = look(m.checkpoints, n)
}

func (m *Model) threadsWhere(accept func(structure.Thread) bool) []structure.Thread {
	return chosen(m.threads, accept, func(a, b structure.Thread) int { return a.ID.Compare(b.ID) })
}

func (m *Model) checkpointsWhere(accept func(structure.Checkpoint) bool) []structure.Checkpoint {
	return chosen(m.checkpoints, accept, func(a, b structure.Checkpoint) int { return cmp.Compare(a.Name, b.Name) })
}

func (m *Model) branchesWhere(accept func(structure.Branch) bool) []structure.Branch {
	return chosen(m.branches, accept, func(a, b structure.Branch) int { return cmp.Compare(a.Name, b.Name) })
}

func (m *Model) viewsWhere(accept func(backend.Context) bool) []backend.Context {
	return chosen(m.views, accept, func(a, b backend.Context) int { return a.ID.Compare(b.ID) })
}

func (m *Model) viewFacts(f Facts, seen *Census) {
	f["contexts"] = m.viewsWhere(func(backend.Context) bool { return true })
	f["contexts alone"] = m.viewsWhere(func(v backend.Context) bool { return v.Thread.IsZero() })
	f["summaries"] = m.allSummaries()
	for _, id := range seen.contexts.list() {
		f[fmt.Sprint("context ", id)] = look(m.views, id)
		f[fmt.Sprint("remnant ", id)] = look(m.remnants, id)
		f[fmt.Sprint("children of ", id)] = m.viewsWhere(func(v backend.Context) bool { return v.Parent == id })
		f[fmt.Sprint("summaries of ", id)] = m.summariesOf(id)
		f[fmt.Sprint("reflog of ", id)] = filter(m.reflog, func(r structure.Reflog) bool { return r.Context == id })
	}
	for _, id := range seen.sets.list() {
		f[fmt.Sprint("span set ", id)] = look(m.sets, id)
		f[fmt.Sprint("alternatives in ", id)] = filter(m.order, func(r structure.SpanRef) bool {
			return m.spans[r].Span.Set == id
		})
	}
}

// summariesOf returns the summaries of a context.
func (m *Model) summariesOf(id structure.ContextID) []structure.Summary {
	return filter(m.allSummaries(), func(s structure.Summary) bool { return s.Context == id })
}

// allSummaries returns all summaries in the order of their contexts, without the embeddings of erased texts.
func (m *Model) allSummaries() []structure.Summary {
	out := filter(m.summaries, func(structure.Summary) bool { return true })
	slices.SortStableFunc(out, func(a, b structure.Summary) int { return a.Context.Compare(b.Context) })
	for i := range out {
		if m.erased[out[i].Content] {
			out[i].Embedding = nil
		}
	}
	return out
}

func filter[T any](all []T, accept func(T) bool) []T {
	out := []T{}
	for _, v := range all {
		if accept(v) {
			out = append(out, v)
		}
	}
	return out
}

func (m *Model) runFacts(f Facts, seen *Census) {
	f["roots"] = m.forks(structure.RunID{})
	for _, id := range seen.runs.list() {
		last := structure.SpanRef{Run: id, Seq: m.ends[id]}
		if last.Seq == 0 {
			last = structure.SpanRef{}
		}
		f[fmt.Sprint("run ", id)] = look(m.runs, id)
		f[fmt.Sprint("last of ", id)] = look(m.runs, id)
		for _, limit := range ancestors {
			f[fmt.Sprintf("at most %d ancestors of %v", limit, id)] = look(m.runs, id)
		}
		if r, ok := m.runs[id]; ok {
			f[fmt.Sprint("run ", id)] = m.info(r)
			ancestry := m.ancestry(r)
			for _, limit := range ancestors {
				f[fmt.Sprintf("at most %d ancestors of %v", limit, id)] = ancestry[:min(limit, len(ancestry))]
			}
			f[fmt.Sprint("last of ", id)] = last
		}
		f[fmt.Sprint("forks of ", id)] = m.forks(id)
		f[fmt.Sprint("path to ", id)] = m.path(last, structure.Window{})
	}
	for _, ref := range seen.spans.list() {
		f[fmt.Sprint("digest of ", ref)] = look(m.spans, ref)
		if _, ok := m.spans[ref]; ok {
			f[fmt.Sprint("digest of ", ref)] = m.digest(ref)
		}
		f[fmt.Sprint("forks at ", ref)] = filter(m.forks(ref.Run), func(r structure.RunInfo) bool { return r.Parent == ref })
	}
}

func (m *Model) forks(id structure.RunID) []structure.RunInfo {
	out := []structure.RunInfo{}
	for _, r := range m.runs {
		if r.Parent.Run == id {
			out = append(out, m.info(r))
		}
	}
	sortForks(out)
	return out
}

func (m *Model) info(r structure.Run) structure.RunInfo {
	return structure.RunInfo{Run: r, Depth: uint64(len(m.history(r.Parent))), Digest: m.digest(r.Parent)}
}

// ancestry lists a run and its ancestors, nearest first.
func (m *Model) ancestry(r structure.Run) []structure.RunInfo {
	out := []structure.RunInfo{m.info(r)}
	for ; !r.Parent.IsZero(); out = append(out, m.info(r)) {
		r = m.runs[r.Parent.Run]
	}
	return out
}

// history lists the spans up to a tip, oldest first, by following parents.
func (m *Model) history(tip structure.SpanRef) []Placed {
	var out []Placed
	for !tip.IsZero() {
		out = append(out, m.spans[tip])
		if tip.Seq--; tip.Seq == 0 {
			tip = m.runs[tip.Run].Parent
		}
	}
	slices.Reverse(out)
	return out
}

func (m *Model) digest(tip structure.SpanRef) (d structure.Digest) {
	for _, p := range m.history(tip) {
		d = structure.NextDigest(d, p.Span.Usages)
	}
	return d
}

// path lists a window of a history.
func (m *Model) path(tip structure.SpanRef, w structure.Window) any {
	if _, ok := m.spans[tip]; !ok && !tip.IsZero() {
		return backend.ErrNotFound.Error()
	}
	steps := []step{}
	for i, p := range m.history(tip) {
		position := uint64(i + 1)
		if position < w.From || w.To != 0 && position > w.To {
			continue
		}
		s := step{Position: position, Commit: p.Commit, Span: p.Span}
		for _, u := range p.Span.Usages {
			b := m.blocks[u.Content]
			if m.erased[u.Content] {
				b = structure.Block{}
			}
			s.Bodies = append(s.Bodies, body(&b))
		}
		steps = append(steps, s)
	}
	if n := uint64(len(steps)); w.Last != 0 && n > w.Last {
		steps = steps[n-w.Last:]
	}
	return steps
}

// feedFrom lists the commits from a number on, without erased bodies and embeddings of erased texts.
func (m *Model) feedFrom(from uint64) []structure.Commit {
	from = min(max(from, 1), m.number+1)
	out := slices.Clone(m.feed[from-1:])
	for i := range out {
		out[i].Records = slices.Clone(out[i].Records)
		for k, r := range out[i].Records {
			if b, ok := r.(*structure.Block); ok && m.erased[b.ID] {
				out[i].Records[k] = &structure.Block{Block: b.Block, Tree: b.Tree}
			}
			if s, ok := r.(*structure.Summary); ok && m.erased[s.Content] {
				out[i].Records[k] = s.WithoutEmbedding()
			}
		}
	}
	return out
}

func (m *Model) usages(id content.ID) []structure.UsageID {
	out := []structure.UsageID{}
	for _, ref := range m.order {
		for i, u := range m.spans[ref].Span.Usages {
			if u.Content == id || u.MetadataContent == id {
				out = append(out, structure.UsageID{Span: ref, Index: i})
			}
		}
	}
	return out
}

// stats counts everything except erased content.
func (m *Model) stats() backend.Stats {
	s := backend.Stats{
		Threads: uint64(len(m.threads)), Contexts: uint64(len(m.views)), Branches: uint64(len(m.branches)),
		Checkpoints: uint64(len(m.checkpoints)), Runs: uint64(len(m.runs)), Spans: uint64(len(m.spans)),
		Chunks: uint64(len(m.chunks)), LogicalBytes: m.logical,
	}
	for _, p := range m.spans {
		s.Usages += uint64(structure.Entries(p.Span.Usages))
	}
	for id, b := range m.blocks {
		if !m.erased[id] {
			s.Blocks++
			s.UniqueBytes += uint64(b.Size)
		}
	}
	return s
}
