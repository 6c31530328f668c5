package live

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/structure"
)

// Follow marks everything that the commits up to a later state add or refer to. What
// they add is live, and what they delete stays live until the next collection, except
// for erased bytes.
func (m *Marker) Follow(v View) error {
	from := m.Live.Until
	m.following = true
	m.view, m.Live.Until = v, v.Index.State().Number
	for f, err := range v.History(from+1, m.Live.Until) {
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

func (m *Marker) followRecord(c *structure.Commit, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		return m.followBlock(r)
	case *structure.Chunk:
		m.Live.contents.add(Hash(r.Key[:]))
	case *structure.Thread:
		m.Live.threads[r.ID] = struct{}{}
		return m.kept(r)
	case *structure.Context:
		return m.followContext(c, r)
	case *structure.Remnant:
		if !has(m.Live.remnants, r.ID) {
			m.Live.remnants[r.ID] = creation{commit: c.Number}
		}
	case *structure.Tip:
		return m.span(r.Span)
	case *structure.Run:
		if _, ok := m.Live.runs[r.ID]; !ok {
			m.Live.runs[r.ID] = Run{}
		}
		return m.span(r.Parent)
	case *structure.Span:
		return m.followSpan(r)
	case *structure.SpanSet:
		m.Live.sets[r.ID] = struct{}{}
		return m.span(r.Parent)
	case *structure.Checkpoint:
		m.Live.checkpoints[r.ID] = struct{}{}
		return m.span(r.Span)
	case *structure.Summary:
		return m.summary(r)
	case *structure.Reflog:
		if !has(m.Live.reflog, r.Context) {
			m.Live.reflog[r.Context] = c.Number
		}
		return m.spans(r.From, r.To)
	case *structure.Value:
		return m.keepValue(keys.Value(r.ValueKey, c.Number), r)
	case *structure.Deletion:
		if r.Subject == structure.KindBlock {
			m.Live.erased[r.Content] = struct{}{}
			m.Live.stored[r.Content] = 0
			if m.Live.contents.add(Hash(r.Content[:])) {
				m.Revived = true
			}
		}
	}
	return nil
}

func (m *Marker) followBlock(b *structure.Block) error {
	if b.Tree.Size > 0 {
		m.trees[b.ID] = b.Tree
	}
	m.Live.contents.add(Hash(b.ID[:]))
	delete(m.Live.erased, b.ID)
	return m.tree(b.ID)
}

func (m *Marker) followContext(c *structure.Commit, r *structure.Context) error {
	if !has(m.Live.contexts, r.ID) {
		m.Live.contexts[r.ID] = creation{commit: c.Number}
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
}

func (m *Marker) followSpan(s *structure.Span) error {
	m.arrived = true
	err := m.span(s.Ref)
	if m.arrived = false; err != nil {
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
func (m *Marker) revive(s revival) error {
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
