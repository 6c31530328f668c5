package backendtest

import (
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) thread(r *structure.Thread) error {
	if r.ID.IsZero() {
		return backend.ErrInvalid
	}
	if was, ok := m.threads[r.ID]; ok && was.Incarnation != r.Incarnation {
		m.dropValues(structure.Owner{Scope: structure.ThreadScope, Thread: r.ID})
	}
	m.threads[r.ID] = *r
	return optional(m.views, r.Active)
}

func (m *Model) view(c *structure.Commit, r *structure.Context) error {
	if r.ID.IsZero() {
		return backend.ErrInvalid
	}
	old, ok := m.views[r.ID]
	if ok && (old.Thread != r.Thread || old.Parent != r.Parent || old.Base != r.Base) {
		return backend.ErrExists
	}
	if err := first(optional(m.threads, r.Thread), optional(m.sets, r.Set), m.need(r.Base, r.Tip)); err != nil {
		return err
	}
	if !ok {
		left, deleted := m.remnants[r.ID]
		switch {
		case deleted && left.Parent != r.Parent:
			return backend.ErrExists
		case deleted || slices.Contains(m.stated, r.Parent) && needKey(m.remnants, r.Parent) == nil:
		default:
			if err := optional(m.views, r.Parent); err != nil {
				return err
			}
		}
		delete(m.remnants, r.ID)
	}
	v := backend.Context{Context: *r, Moved: old.Moved, MovedAt: old.MovedAt}
	if !ok || old.Tip != r.Tip {
		v.Moved, v.MovedAt = m.number, c.Time.UnixMilli()
	}
	m.views[r.ID] = v
	return nil
}

func (m *Model) tip(c *structure.Commit, r *structure.Tip) error {
	v, ok := m.views[r.Context]
	if !ok {
		return backend.ErrNotFound
	}
	v.Tip, v.Moved, v.MovedAt = r.Span, m.number, c.Time.UnixMilli()
	m.views[r.Context] = v
	return m.need(r.Span)
}

func (m *Model) run(r *structure.Run) error {
	if r.ID.IsZero() {
		return backend.ErrInvalid
	}
	if r.Home.Thread.IsZero() && r.Home.Incarnation != 0 {
		return backend.ErrInvalid
	}
	if _, ok := m.runs[r.ID]; ok {
		return backend.ErrExists
	}
	m.runs[r.ID] = *r
	return m.need(r.Parent)
}

func (m *Model) span(r *structure.Span) error {
	if len(r.Usages) == 0 || r.Ref.Seq == 0 {
		return backend.ErrInvalid
	}
	if needKey(m.runs, r.Ref.Run) != nil || m.closed[r.Ref.Run] || m.ends[r.Ref.Run]+1 != r.Ref.Seq {
		return backend.ErrConflict
	}
	for i, u := range r.Usages {
		if u.Check() != nil {
			return backend.ErrInvalid
		}
		if u.Kind == structure.PartUsage && (i == 0 || r.Usages[i-1].Kind != structure.MessageUsage && r.Usages[i-1].Kind != structure.PartUsage) {
			return backend.ErrInvalid
		}
		for _, id := range u.Named(nil) {
			if _, ok := m.blocks[*id]; !ok {
				return backend.ErrNotFound
			}
		}
		b, ok := m.blocks[u.Content]
		if !ok {
			return backend.ErrNotFound
		}
		m.logical += uint64(b.Size)
		if len(u.SourceID) > backend.MaxSourceID || u.Lookup != 0 && u.SourceID == "" {
			return backend.ErrInvalid
		}
		home := m.runs[r.Ref.Run].Home
		if u.Lookup == 0 || home.Thread.IsZero() {
			continue
		}
		l := lookup{home, u.SourceID, u.Lookup}
		if _, ok := m.lookups[l]; ok {
			return backend.ErrExists
		}
		m.lookups[l] = r.Ref
	}
	m.ends[r.Ref.Run] = r.Ref.Seq
	m.spans[r.Ref] = Placed{Span: *r, Commit: m.number}
	m.order = append(m.order, r.Ref)
	return optional(m.sets, r.Set)
}

func (m *Model) set(r *structure.SpanSet) error {
	if r.ID.IsZero() {
		return backend.ErrInvalid
	}
	if _, ok := m.sets[r.ID]; ok {
		return backend.ErrExists
	}
	m.sets[r.ID] = *r
	return m.need(r.Parent)
}

func (m *Model) branch(r *structure.Branch) error {
	if r.Name == "" {
		return backend.ErrInvalid
	}
	k := named{r.Thread, r.Name}
	if old, ok := m.branches[k]; ok && old.Context != r.Context {
		return backend.ErrExists
	}
	m.branches[k] = *r
	for k, b := range m.branches {
		if err := oneSource(r.SourceID, k.thread == r.Thread && k.name != r.Name && b.SourceID == r.SourceID); err != nil {
			return err
		}
	}
	return first(needKey(m.threads, r.Thread), needKey(m.views, r.Context))
}

func (m *Model) checkpoint(r *structure.Checkpoint) error {
	if r.Name == "" || r.ID.IsZero() || r.Span.IsZero() {
		return backend.ErrInvalid
	}
	k := named{r.Thread, r.Name}
	if old, ok := m.checkpoints[k]; ok && old.ID != r.ID {
		return backend.ErrExists
	}
	m.checkpoints[k] = *r
	for k, c := range m.checkpoints {
		if err := oneSource(r.SourceID, k.thread == r.Thread && k.name != r.Name && c.SourceID == r.SourceID); err != nil {
			return err
		}
	}
	return first(needKey(m.threads, r.Thread), m.need(r.Span))
}

// oneSource refuses a source id that is too long or in use by another name of the thread.
func oneSource(id string, another bool) error {
	switch {
	case len(id) > backend.MaxSourceID:
		return backend.ErrInvalid
	case id != "" && another:
		return backend.ErrExists
	}
	return nil
}

func (m *Model) summary(r *structure.Summary) error {
	if r.ID.IsZero() {
		return backend.ErrInvalid
	}
	m.summaries = append(m.summaries, *r)
	return first(needKey(m.views, r.Context), needKey(m.blocks, r.Content), m.need(r.From, r.To))
}

func (m *Model) deletion(d *structure.Deletion) error {
	switch d.Subject {
	case structure.KindThread:
		if err := needKey(m.threads, d.Thread); err != nil {
			return err
		}
		m.dropThread(d.Thread)
	case structure.KindContext:
		v, ok := m.views[d.Context]
		if !ok {
			return backend.ErrNotFound
		}
		for _, b := range m.branches {
			if b.Thread == v.Thread && b.Context == d.Context {
				return backend.ErrConflict
			}
		}
		m.dropView(d.Context)
	case structure.KindBranch:
		defer delete(m.branches, named{d.Thread, d.Name})
		return needKey(m.branches, named{d.Thread, d.Name})
	case structure.KindCheckpoint:
		defer delete(m.checkpoints, named{d.Thread, d.Name})
		return needKey(m.checkpoints, named{d.Thread, d.Name})
	case structure.KindSummary:
		i := slices.IndexFunc(m.summaries, func(s structure.Summary) bool { return s.Context == d.Context && s.ID == d.Summary })
		if i < 0 {
			return backend.ErrNotFound
		}
		m.summaries = slices.Delete(m.summaries, i, i+1)
	case structure.KindBlock:
		m.erased[d.Content] = true
		return needKey(m.blocks, d.Content)
	default:
		return backend.ErrInvalid
	}
	return nil
}

func (m *Model) dropThread(id structure.ThreadID) {
	delete(m.threads, id)
	m.dropValues(structure.Owner{Scope: structure.ThreadScope, Thread: id})
	maps.DeleteFunc(m.branches, func(k named, _ structure.Branch) bool { return k.thread == id })
	maps.DeleteFunc(m.checkpoints, func(k named, _ structure.Checkpoint) bool { return k.thread == id })
	for _, v := range m.views {
		if v.Thread == id {
			m.dropView(v.ID)
		}
	}
}

func (m *Model) dropView(id structure.ContextID) {
	v := m.views[id]
	delete(m.views, id)
	if m.hasChild(id) {
		m.remnants[id] = *v.Remnant()
	} else {
		m.release(v.Parent)
	}
	m.dropValues(structure.Owner{Scope: structure.ContextScope, Context: id})
	m.summaries = slices.DeleteFunc(m.summaries, func(s structure.Summary) bool { return s.Context == id })
	m.reflog = slices.DeleteFunc(m.reflog, func(r structure.Reflog) bool { return r.Context == id })
}

func (m *Model) hasChild(id structure.ContextID) bool {
	for _, v := range m.views {
		if v.Parent == id {
			return true
		}
	}
	for _, r := range m.remnants {
		if r.Parent == id {
			return true
		}
	}
	return false
}

// release deletes a remnant without children, and then its parent.
func (m *Model) release(id structure.ContextID) {
	if r, ok := m.remnants[id]; ok && !m.hasChild(id) {
		delete(m.remnants, id)
		m.release(r.Parent)
	}
}

func (m *Model) remnant(r *structure.Remnant) error {
	if r.ID.IsZero() {
		return backend.ErrInvalid
	}
	was, known := m.remnants[r.ID]
	switch {
	case needKey(m.views, r.ID) == nil || known && was.Parent != r.Parent:
		return backend.ErrExists
	case !known && optional(m.views, r.Parent) != nil && optional(m.remnants, r.Parent) != nil:
		return backend.ErrNotFound
	}
	m.remnants[r.ID] = *r
	m.stated = append(m.stated, r.ID)
	return nil
}

// requireUsed refuses remnants without children that the commit states.
func (m *Model) requireUsed() error {
	for _, id := range m.stated {
		if needKey(m.remnants, id) == nil && !m.hasChild(id) {
			return backend.ErrInvalid
		}
	}
	return nil
}
