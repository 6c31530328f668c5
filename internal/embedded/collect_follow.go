package embedded

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/structure"
)

// follow marks everything that the commits up to a later state add or refer to. What
// they add is live, and what they delete stays live until the next collection, except
// for erased bytes.
func (m *marker) follow(v view) error {
	from := m.live.until
	m.view, m.live.until = v, v.Index.State().Number
	for f, err := range v.commitsFrom(from+1, m.live.until) {
		if err != nil {
			return err
		}
		for _, r := range f.Records {
			if err := m.followRecord(f.Commit, r); err != nil {
				return err
			}
		}
	}
	for len(m.revived) > 0 {
		s := m.revived[len(m.revived)-1]
		m.revived = m.revived[:len(m.revived)-1]
		if err := m.revive(s); err != nil {
			return err
		}
	}
	return m.findStored()
}

func (m *marker) followRecord(c *structure.Commit, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		if r.Tree.Size > 0 {
			m.trees[r.ID] = r.Tree
		}
		if err := m.content(r.ID); err != nil || !has(m.live.erased, r.ID) {
			return err
		}
		delete(m.live.erased, r.ID)
		return m.tree(r.ID)
	case *structure.Chunk:
		m.live.contents.add(hash(r.Key[:]))
	case *structure.Thread:
		m.live.threads[r.ID] = struct{}{}
		return m.kept(r)
	case *structure.Context:
		if !has(m.live.contexts, r.ID) {
			m.live.contexts[r.ID] = beginning{commit: c.Number}
		}
		if err := m.remnants(r.Parent); err != nil {
			return err
		}
		if err := m.inherit(r); err != nil {
			return err
		}
		if err := m.spans(r.Base, r.Tip); err != nil || r.Set.IsZero() {
			return err
		}
		return m.set(r.Set)
	case *structure.Remnant:
		if !has(m.live.remnants, r.ID) {
			m.live.remnants[r.ID] = beginning{commit: c.Number}
		}
	case *structure.Tip:
		return m.span(r.Span)
	case *structure.Run:
		if _, ok := m.live.runs[r.ID]; !ok {
			m.live.runs[r.ID] = liveRun{}
		}
		return m.span(r.Parent)
	case *structure.Span:
		return m.followSpan(r)
	case *structure.SpanSet:
		m.live.sets[r.ID] = struct{}{}
		return m.span(r.Parent)
	case *structure.Checkpoint:
		m.live.checkpoints[r.ID] = struct{}{}
		return m.span(r.Span)
	case *structure.Summary:
		return m.summary(r)
	case *structure.Reflog:
		if !has(m.live.reflog, r.Context) {
			m.live.reflog[r.Context] = c.Number
		}
		return m.spans(r.From, r.To)
	case *structure.Value:
		return m.keepValue(keys.Value(r.ValueKey, c.Number), r)
	case *structure.Deletion:
		if r.Subject == structure.KindBlock {
			m.live.erased[r.Content] = struct{}{}
			m.live.stored[r.Content] = 0
			m.live.contents.add(hash(r.Content[:]))
		}
	}
	return nil
}

func (m *marker) followSpan(s *structure.Span) error {
	if err := m.span(s.Ref); err != nil {
		return err
	}
	if !s.Set.IsZero() {
		if err := m.set(s.Set); err != nil {
			return err
		}
	}
	var named [3]*content.ID
	for i := range s.Usages {
		for _, id := range s.Usages[i].Named(named[:0]) {
			if err := m.content(*id); err != nil {
				return err
			}
		}
	}
	return nil
}

// revive marks what spans use that were dead when the journal was scanned.
func (m *marker) revive(s revival) error {
	spans, reading := m.view.NewSpanReader(), structure.Reading{}
	for seq := s.after + 1; seq <= s.last; seq++ {
		if err := spans.Read(structure.SpanRef{Run: s.run, Seq: seq}, s.last, &reading); err != nil {
			return err
		}
		if err := m.followSpan(&reading.Span); err != nil {
			return err
		}
	}
	return nil
}
