package embedded

import (
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// collect takes out of a state what a collection does: the same by other means.
func (s *state) collect(now time.Time, keepReflog time.Duration) {
	live := map[structure.SpanRef]bool{}
	mark := func(refs ...structure.SpanRef) {
		for _, tip := range refs {
			for !tip.IsZero() && !live[tip] {
				live[tip] = true
				if tip.Seq--; tip.Seq == 0 {
					tip = s.runs[tip.Run].Parent
				}
			}
		}
	}
	for _, c := range s.contexts {
		mark(c.Base, c.Tip)
	}
	for _, c := range s.checkpoints {
		mark(c.Span)
	}
	for _, r := range s.summaries {
		mark(r.From, r.To)
	}
	for _, r := range s.reflog {
		if !r.At.Before(now.Add(-keepReflog)) {
			mark(r.From, r.To)
		}
	}
	for ref := range s.spans {
		if home := s.runs[ref.Run].Home; s.exists(home) && s.threads[home.Thread].Keeps {
			mark(ref)
		}
	}
	sets := map[structure.SpanSetID]bool{}
	for n := -1; n != len(sets); {
		n = len(sets)
		for ref := range live {
			if set := s.spans[ref].span.Set; !set.IsZero() {
				sets[set] = true
				mark(s.sets[set].Parent)
			}
		}
	}
	s.collectValues(now, keepReflog)
	s.collectSpans(live, sets)
	s.collectContent()
}

func (s *state) collectSpans(live map[structure.SpanRef]bool, sets map[structure.SpanSetID]bool) {
	s.order = slices.DeleteFunc(slices.Clone(s.order), func(r structure.SpanRef) bool { return !live[r] })
	s.spans = maps.Clone(s.spans)
	ends := map[structure.RunID]uint64{}
	for ref := range s.spans {
		if live[ref] {
			ends[ref.Run] = max(ends[ref.Run], ref.Seq)
		} else {
			delete(s.spans, ref)
		}
	}
	for run, end := range s.ends {
		if ends[run] != 0 && ends[run] != end {
			s.closed[run] = true
		}
	}
	s.ends = ends
	maps.DeleteFunc(s.runs, func(id structure.RunID, _ *structure.Run) bool { return ends[id] == 0 })
	maps.DeleteFunc(s.sets, func(id structure.SpanSetID, _ *structure.SpanSet) bool { return !sets[id] })
	maps.DeleteFunc(s.lookups, func(_ judge.Lookup, r structure.SpanRef) bool { return !live[r] })
	dead := func(r structure.SpanRef) bool { return !r.IsZero() && !live[r] }
	s.collectSeen(dead)
	cut := map[structure.ContextID]int{} // so many entries go
	for i, r := range s.reflog {
		if dead(r.From) || dead(r.To) {
			cut[r.Context] = i + 1
		}
	}
	var reflog []*structure.Reflog
	for i, r := range s.reflog {
		if i >= cut[r.Context] {
			reflog = append(reflog, r)
		}
	}
	s.reflog = reflog
	clear(s.digests)
}

func (s *state) collectContent() {
	used := map[content.ID]bool{}
	s.logical = 0
	for _, p := range s.spans {
		for _, u := range p.span.Usages {
			for _, id := range u.Named(nil) {
				used[*id] = true
			}
			s.logical += uint64(s.blocks[u.Content].Size)
		}
	}
	for _, r := range s.summaries {
		used[r.Content] = true
	}
	s.valueContent(used)
	chunks := map[content.Key]bool{}
	for id, b := range s.blocks {
		if !used[id] && !s.erased[id] {
			delete(s.blocks, id)
		} else if !s.erased[id] {
			chunks[b.Tree.Key] = true
		}
	}
	maps.DeleteFunc(s.chunks, func(k content.Key, _ *structure.Chunk) bool { return !chunks[k] })
}
