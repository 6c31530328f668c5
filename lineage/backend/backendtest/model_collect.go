package backendtest

import (
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Collect removes from the model everything that an engine's collection may
// remove.
func (m *Model) Collect(now time.Time, keepReflog time.Duration) {
	live := m.liveSpans(now.Add(-keepReflog))
	sets := map[structure.SpanSetID]bool{}
	for n := -1; n != len(sets); {
		n = len(sets)
		for ref := range live {
			if set := m.spans[ref].Span.Set; !set.IsZero() {
				sets[set] = true
				m.mark(live, m.sets[set].Parent)
			}
		}
	}
	values := m.liveValues(now.Add(-keepReflog))
	used := m.used(live, values)
	chunks := map[content.Key]bool{}
	for id, b := range m.blocks {
		if used[id] && !m.erased[id] {
			chunks[b.Tree.Key] = true
		}
	}
	m.Keep(Kept{
		Span:  func(r structure.SpanRef) bool { return live[r] },
		Set:   func(id structure.SpanSetID) bool { return sets[id] },
		Block: func(id content.ID) bool { return used[id] || m.erased[id] },
		Chunk: func(k content.Key) bool { return chunks[k] },
		Value: func(k structure.ValueKey, commit uint64) bool { return values[version{k, commit}] },
	})
}

// version identifies a record of a value.
type version struct {
	key    structure.ValueKey
	commit uint64
}

// mark marks spans and their histories as live.
func (m *Model) mark(live map[structure.SpanRef]bool, refs ...structure.SpanRef) {
	for _, tip := range refs {
		for !tip.IsZero() && !live[tip] {
			live[tip] = true
			if tip.Seq--; tip.Seq == 0 {
				tip = m.runs[tip.Run].Parent
			}
		}
	}
}

// liveSpans returns the spans that are reachable other than through span sets.
func (m *Model) liveSpans(since time.Time) map[structure.SpanRef]bool {
	live := map[structure.SpanRef]bool{}
	for _, v := range m.views {
		m.mark(live, v.Base, v.Tip)
	}
	for _, c := range m.checkpoints {
		m.mark(live, c.Span)
	}
	for _, s := range m.summaries {
		m.mark(live, s.From, s.To)
	}
	for _, r := range m.reflog {
		if !r.At.Before(since) {
			m.mark(live, r.From, r.To)
		}
	}
	for ref := range m.spans {
		if home := m.runs[ref.Run].Home; m.live(home) && m.threads[home.Thread].Keeps {
			m.mark(live, ref)
		}
	}
	return live
}

// liveValues returns the values that are current, recently replaced or
// inherited.
func (m *Model) liveValues(since time.Time) map[version]bool {
	live := map[version]bool{}
	for key, history := range m.named {
		live[version{key, history[len(history)-1].Commit}] = true
		for _, v := range slices.Backward(history) {
			live[version{key, v.Commit}] = true
			if v.At.Before(since) {
				break
			}
		}
	}
	for id := range m.views {
		m.eachInForce(id, nil, func(v backend.Value) { live[version{v.ValueKey, v.Commit}] = true })
	}
	return live
}

// used returns the content used by live spans and values.
func (m *Model) used(live map[structure.SpanRef]bool, values map[version]bool) map[content.ID]bool {
	used := map[content.ID]bool{}
	for ref := range live {
		p := m.spans[ref]
		for i := range p.Span.Usages {
			for _, id := range p.Span.Usages[i].Named(nil) {
				used[*id] = true
			}
		}
	}
	for _, s := range m.summaries {
		used[s.Content] = true
	}
	for key, history := range m.named {
		for _, v := range history {
			if values[version{key, v.Commit}] {
				used[v.Content] = true
			}
		}
	}
	return used
}

// Kept decides what a collection keeps.
type Kept struct {
	Span  func(structure.SpanRef) bool
	Set   func(structure.SpanSetID) bool
	Block func(content.ID) bool
	Chunk func(content.Key) bool
	Value func(structure.ValueKey, uint64) bool
}

// Keep removes everything from a model that is not kept.
func (m *Model) Keep(k Kept) {
	dead := func(r structure.SpanRef) bool { return !r.IsZero() && !k.Span(r) }
	m.order = slices.DeleteFunc(slices.Clone(m.order), dead)
	maps.DeleteFunc(m.spans, func(r structure.SpanRef, _ Placed) bool { return dead(r) })
	ends := map[structure.RunID]uint64{}
	for ref := range m.spans {
		ends[ref.Run] = max(ends[ref.Run], ref.Seq)
	}
	for run, end := range m.ends {
		if ends[run] != 0 && ends[run] != end {
			m.closed[run] = true
		}
	}
	m.ends = ends
	maps.DeleteFunc(m.runs, func(id structure.RunID, _ structure.Run) bool { return ends[id] == 0 })
	maps.DeleteFunc(m.sets, func(id structure.SpanSetID, _ structure.SpanSet) bool { return !k.Set(id) })
	maps.DeleteFunc(m.lookups, func(_ lookup, r structure.SpanRef) bool { return dead(r) })
	maps.DeleteFunc(m.blocks, func(id content.ID, _ structure.Block) bool { return !k.Block(id) })
	maps.DeleteFunc(m.chunks, func(key content.Key, _ string) bool { return !k.Chunk(key) })
	m.keepReflog(dead)
	m.keepValues(k, dead)
	m.summaries = slices.Clone(m.summaries)
	for i := range m.summaries {
		if m.erased[m.summaries[i].Content] {
			m.summaries[i].Embedding = nil
		}
	}
	m.logical = 0
	for _, p := range m.spans {
		for i := range p.Span.Usages {
			m.logical += uint64(m.blocks[p.Span.Usages[i].Content].Size)
		}
	}
	m.feed = nil
}

// keepReflog removes entries that name dead spans, and the entries before them.
func (m *Model) keepReflog(dead func(structure.SpanRef) bool) {
	cut := map[structure.ContextID]int{} // number of entries to remove
	for i, r := range m.reflog {
		if dead(r.From) || dead(r.To) {
			cut[r.Context] = i + 1
		}
	}
	var left []structure.Reflog
	for i, r := range m.reflog {
		if i >= cut[r.Context] {
			left = append(left, r)
		}
	}
	m.reflog = left
}

// keepValues clears the Seen positions that are dead.
func (m *Model) keepValues(k Kept, dead func(structure.SpanRef) bool) {
	left := map[structure.ValueKey][]backend.Value{}
	for key, history := range m.named {
		for _, v := range history {
			if !k.Value(key, v.Commit) {
				continue
			}
			if dead(v.Seen) && v.Seen != structure.CollectedSpan {
				v.Seen = structure.CollectedSpan
			}
			left[key] = append(left[key], v)
		}
	}
	m.named = left
}
