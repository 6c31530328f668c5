package salvage

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func (m *Mender) thread(t structure.Thread) error {
	active := t.Active
	t.Active = structure.ContextID{}
	if err := m.apply(&t); err != nil || active.IsZero() {
		return err
	}
	t.Active = active
	return m.needing(&t, m.needContext(active, t.ID))
}

func (m *Mender) needThread(id structure.ThreadID) error {
	if id.IsZero() {
		return nil
	}
	_, err := m.to.Thread(m.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		m.report.Names++
		m.lost[id] = true
		return m.put(func(b *write.Batch) { b.NewThread(write.Thread{ID: id, Incarnation: m.homes[id]}) })
	}
	return err
}

func (m *Mender) context(c structure.Context) error {
	above, err := m.above(&c.Parent)
	if err != nil {
		return err
	}
	if c.Set, err = m.setIfThere(c.Set); err != nil {
		return err
	}
	if err := errors.Join(m.needThread(c.Thread), m.needSpan(c.Base), m.needSpan(c.Tip)); err != nil {
		return err
	}
	if !m.placeholders[c.ID] {
		return m.apply(append(above, &c)...)
	}
	values, err := m.valuesOf(c.ID)
	if err != nil {
		return err
	}
	delete(m.placeholders, c.ID)
	m.report.Names--
	err = m.instead(above, &c)
	if errors.Is(err, backend.ErrExists) { // it has forks, which keep its remnant
		c.Parent = structure.ContextID{}
		err = m.instead(nil, &c)
	}
	if err != nil {
		return err
	}
	for i := range values {
		if err := m.apply(&values[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// above returns the remnants from which a context was forked, the topmost first. The commit that creates a fork of a
// remnant must state the remnant. A lost parent becomes zero.
func (m *Mender) above(parent *structure.ContextID) (above []structure.Record, err error) {
	seen := make(map[structure.ContextID]bool)
	for at := parent; !at.IsZero(); {
		if _, err := m.to.Context(m.ctx, *at); !errors.Is(err, backend.ErrNotFound) {
			return above, err
		}
		r, err := m.to.Remnant(m.ctx, *at)
		if err == nil {
			return slices.Insert(above, 0, structure.Record(r)), nil
		}
		if !errors.Is(err, backend.ErrNotFound) {
			return nil, err
		}
		remnant, ok := m.remnants[*at]
		if !ok || seen[*at] {
			*at = structure.ContextID{}
			return above, nil
		}
		seen[*at] = true
		own := *remnant
		above, at = slices.Insert(above, 0, structure.Record(&own)), &own.Parent
	}
	return above, nil
}

// instead replaces a placeholder by the real context. It keeps the placeholder's branches, summaries and reflog.
func (m *Mender) instead(above []structure.Record, c *structure.Context) error {
	was, err := m.to.Context(m.ctx, c.ID)
	if err != nil {
		return err
	}
	var branches []*structure.Branch
	var about []structure.Record
	for b, err := range m.to.BranchesOf(m.ctx, was.Thread, c.ID) {
		if err != nil {
			return err
		}
		branches, about = append(branches, b), append(about, b)
	}
	for r, err := range m.to.Summaries(m.ctx, c.ID) {
		if err != nil {
			return err
		}
		about = append(about, r)
	}
	for r, err := range m.to.Reflog(m.ctx, c.ID) {
		if err != nil {
			return err
		}
		about = append(about, r)
	}
	return m.put(func(b *write.Batch) {
		for _, branch := range branches {
			b.DeleteBranch(branch.Thread, branch.Name)
		}
		b.DeleteContext(c.ID)
		b.Adopt(above...)
		b.Adopt(c)
		b.Adopt(about...)
	})
}

func (m *Mender) needContext(id structure.ContextID, thread structure.ThreadID) error {
	_, err := m.to.Context(m.ctx, id)
	if !errors.Is(err, backend.ErrNotFound) {
		return err
	}
	if err := m.needThread(thread); err != nil {
		return err
	}
	m.report.Names++
	m.placeholders[id] = true
	return m.put(func(b *write.Batch) { b.NewContext(write.Context{ID: id, Thread: thread}) })
}

// Finish creates threads for contexts whose thread is lost, and for runs that are in no
// context.
func (m *Mender) Finish() error {
	for _, id := range slices.SortedFunc(maps.Keys(m.placeholders), structure.ContextID.Compare) {
		c, err := m.to.Context(m.ctx, id)
		if errors.Is(err, backend.ErrNotFound) || err == nil && !c.Thread.IsZero() {
			continue // it was deleted later
		}
		if err != nil {
			return err
		}
		m.at = time.UnixMilli(c.MovedAt).UTC()
		if err := m.salvaged(id.String(), id, c.Tip); err != nil {
			return err
		}
	}
	reached, err := m.reached()
	if err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.homeless), structure.RunID.Compare) {
		last, err := m.to.Last(m.ctx, id)
		if err != nil {
			return err
		}
		if last.IsZero() || reached[id] {
			continue
		}
		m.at = m.homeless[id]
		if err := m.salvaged(id.String(), structure.ContextID{}, last); err != nil {
			return err
		}
	}
	return nil
}

// reached returns the runs in the histories of contexts. It is only needed if there are homeless runs.
func (m *Mender) reached() (map[structure.RunID]bool, error) {
	if len(m.homeless) == 0 {
		return nil, nil
	}
	reached := make(map[structure.RunID]bool)
	runs := backend.Runs(m.ctx, m.to)
	for c, err := range m.to.Contexts(m.ctx, structure.ThreadID{}, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		for at := c.Tip; !at.IsZero() && !reached[at.Run]; {
			reached[at.Run] = true
			run, err := runs(at.Run)
			if err != nil {
				return nil, err
			}
			at = run.Parent
		}
	}
	return reached, nil
}

// salvaged creates a thread with a main branch at a span.
func (m *Mender) salvaged(name string, parent structure.ContextID, at structure.SpanRef) error {
	return m.put(func(b *write.Batch) {
		t := b.NewThread(write.Thread{ID: structure.DeriveID[structure.ThreadID]("salvaged", name), Title: "salvaged " + name})
		in := b.NewContext(write.Context{ID: structure.DeriveID[structure.ContextID]("salvaged", name), Thread: t.ID, Parent: parent, At: at})
		active := *t
		active.Active = in.ID
		b.Branch(&active, "main", "", in.ID, b.Time())
		b.StateThread(active)
	})
}

// branch applies a branch. If a deletion was lost, another branch may have the name or source id.
func (m *Mender) branch(r *structure.Branch) error {
	err := m.needing(r, m.needThread(r.Thread), m.needContext(r.Context, r.Thread))
	if !errors.Is(err, backend.ErrExists) {
		return err
	}
	others := map[string]bool{}
	if stored, err := m.to.Branch(m.ctx, r.Thread, r.Name); err == nil && stored.Context != r.Context {
		others[stored.Name] = true
	}
	for b, err := range m.to.BranchesBySource(m.ctx, r.SourceID, r.Thread) {
		if err != nil {
			return err
		}
		others[b.Name] = true
	}
	return m.insteadOf(others, r, func(b *write.Batch, name string) { b.DeleteBranch(r.Thread, name) })
}

// checkpoint applies a checkpoint, as branch does a branch.
func (m *Mender) checkpoint(r *structure.Checkpoint) error {
	err := m.needing(r, m.needThread(r.Thread), m.needSpan(r.Span))
	if !errors.Is(err, backend.ErrExists) {
		return err
	}
	others := map[string]bool{}
	if stored, err := m.to.Checkpoint(m.ctx, r.Thread, r.Name); err == nil && stored.ID != r.ID {
		others[stored.Name] = true
	}
	for k, err := range m.to.CheckpointsBySource(m.ctx, r.SourceID, r.Thread) {
		if err != nil {
			return err
		}
		others[k.Name] = true
	}
	return m.insteadOf(others, r, func(b *write.Batch, name string) { b.DeleteCheckpoint(r.Thread, name) })
}

// insteadOf applies a named record after deleting the others that conflict with it.
func (m *Mender) insteadOf(others map[string]bool, r structure.Record, remove func(b *write.Batch, name string)) error {
	return m.put(func(b *write.Batch) {
		for name := range others {
			remove(b, name)
		}
		b.Adopt(r)
	})
}
