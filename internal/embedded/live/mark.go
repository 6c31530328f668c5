package live

import (
	"errors"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// span marks a span and its history.
func (m *Marker) span(r structure.SpanRef) error {
	for !r.IsZero() {
		was, seen := m.Live.runs[r.Run]
		if r.Seq <= was.Live {
			return nil
		}
		if m.scanned {
			m.Revived = m.Revived || !m.arrived || r.Seq != was.Live+1
			m.revived = append(m.revived, revival{r.Run, was.Live, r.Seq})
			if !seen {
				last, err := m.view.LastSpan(r.Run)
				if err != nil {
					return err
				}
				was.End = last.Seq
			}
		}
		m.Live.runs[r.Run] = Run{Live: r.Seq, End: max(was.End, r.Seq)}
		if seen {
			return nil
		}
		run, err := read.Run(m.view.Index, r.Run)
		if err != nil {
			return err
		}
		r, m.arrived = run.Parent, false
	}
	return nil
}

func (m *Marker) spans(refs ...structure.SpanRef) error {
	for _, r := range refs {
		if err := m.span(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Marker) threadRoot(e index.Entry) error {
	t, err := keys.Record[*structure.Thread](structure.KindThread, e.Value, "")
	if err != nil {
		return err
	}
	m.Live.threads[t.ID] = struct{}{}
	return m.kept(t)
}

// kept marks all runs of a thread with Keeps set.
func (m *Marker) kept(t *structure.Thread) error {
	if !t.Keeps {
		return nil
	}
	for run, err := range m.view.RunsOf(m.ctx, t.ID, structure.RunID{}) {
		if err != nil {
			return err
		}
		last, err := m.view.LastSpan(run.ID)
		if err != nil {
			return err
		}
		if last.IsZero() {
			if last = run.Parent; !has(m.Live.runs, run.ID) {
				m.Live.runs[run.ID] = Run{}
				m.Revived = m.Revived || m.scanned
			}
		}
		if err := m.span(last); err != nil {
			return err
		}
	}
	return nil
}

func (m *Marker) checkpointRoot(e index.Entry) error {
	c, err := keys.Record[*structure.Checkpoint](structure.KindCheckpoint, e.Value, "")
	if err != nil {
		return err
	}
	m.Live.checkpoints[c.ID] = struct{}{}
	return m.span(c.Span)
}

// summaryRoot marks the content of a summary, and its whole range because readers can ask for it.
func (m *Marker) summaryRoot(e index.Entry) error {
	s, err := keys.Record[*structure.Summary](structure.KindSummary, e.Value, "")
	if err != nil {
		return err
	}
	return m.summary(s)
}

func (m *Marker) summary(s *structure.Summary) error {
	m.Live.summaries[s.ID] = struct{}{}
	if err := m.content(s.Content); err != nil {
		return err
	}
	return m.spans(s.From, s.To)
}

func (m *Marker) reflogRoot(e index.Entry) error {
	r, err := keys.Record[*structure.Reflog](structure.KindReflog, e.Value, "")
	if err == nil && !has(m.Live.reflog, r.Context) {
		m.Live.reflog[r.Context] = keys.ReadUint64(e.Key[1+len(r.Context):])
	}
	if err != nil || r.At.Before(m.before(m.opt.KeepReflog)) {
		return err
	}
	return m.spans(r.From, r.To)
}

func (m *Marker) before(keep time.Duration) time.Time { return m.opt.Now.Add(-max(keep, 0)) }

func (m *Marker) erasedRoot(e index.Entry) error {
	id := content.ID(e.Key[1:])
	m.Live.erased[id] = struct{}{}
	m.Live.contents.add(Hash(id[:]))
	return nil
}

// set marks a span set and its position.
func (m *Marker) set(id structure.SpanSetID) error {
	if has(m.Live.sets, id) {
		return nil
	}
	m.Revived = m.Revived || m.scanned
	s, err := read.Record[*structure.SpanSet](m.view.Index, keys.Of(keys.TableSpanSet, id[:]), structure.KindSpanSet, id.String())
	if err != nil {
		return err
	}
	m.Live.sets[id] = struct{}{}
	return m.span(s.Parent)
}

// alternatives marks the sets of live spans. Their positions may make more spans live.
func (m *Marker) alternatives() error {
	prefix := keys.Of(keys.TableAlternative)
	for changed := true; changed; {
		changed = false
		for e, err := range m.view.Entries(m.ctx, prefix) {
			if err != nil {
				return err
			}
			id := structure.SpanSetID(e.Key[len(prefix):][:16])
			if has(m.Live.sets, id) {
				continue
			}
			values := keys.ReadVarints(e.Value)
			ref := keys.ReadRef(&values)
			if err := values.Err(); err != nil {
				return err
			}
			if m.Live.Span(ref) {
				changed = true
				if err := m.set(id); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// content marks a block and, once all trees are known, its chunks, also if other live content has the same hash.
func (m *Marker) content(id content.ID) error {
	added := m.Live.contents.add(Hash(id[:]))
	if !m.scanned {
		return nil
	}
	m.Revived = m.Revived || added
	return m.tree(id)
}

// tree marks those chunks of a chunked block that exist. It forgets the tree.
func (m *Marker) tree(id content.ID) error {
	root, ok := m.trees[id]
	if !ok || has(m.Live.erased, id) {
		return nil
	}
	err := content.Walk(m.ctx, root, m.view.Chunks, func(k content.Key, _ bool) error {
		if m.Live.contents.add(Hash(k[:])) && m.following {
			m.Revived = true
		}
		return nil
	})
	if errors.Is(err, backend.ErrNotFound) {
		err = nil
	}
	if err == nil {
		delete(m.trees, id)
	}
	return err
}
