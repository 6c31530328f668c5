package live

import (
	"errors"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// An id can belong to several contexts, one after another: one that was deleted, and one that was created later. Only
// the records of the last one are live.
//
// A deleted context is live as a remnant while it has descendants. All its records become remnants, so what is left
// does not depend on how it was deleted. Until the file with its first records is rewritten, replay finds a
// context that later records state as a remnant.

// remnants marks the remnants above a context.
func (m *Marker) remnants(id structure.ContextID) error {
	for !id.IsZero() && !has(m.Live.remnants, id) {
		r, err := read.Record[*structure.Remnant](m.view.Index, keys.Of(keys.TableRemnant, id[:]), structure.KindRemnant, id.String())
		if errors.Is(err, backend.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		m.Live.remnants[id] = creation{} // the scan finds the commit
		m.Revived = m.Revived || m.scanned
		id = r.Parent
	}
	return nil
}

// stated records a record of a context or, with left, of a remnant. A record after a deletion, and a context after a
// remnant, belong to a new context with the same id.
func (m *Marker) stated(number uint64, id structure.ContextID, thread structure.ThreadID, left bool) {
	beginnings := m.Live.contexts
	if !has(beginnings, id) {
		if beginnings = m.Live.remnants; !has(beginnings, id) {
			return
		}
	}
	l, known := m.lives[id]
	if !known || l.deleted || l.left && !left {
		beginnings[id] = creation{number, known && l.last == number}
		l = life{}
	}
	if l.last, l.left = number, left; !left && l.thread != thread {
		l.thread = thread
		m.members[thread] = append(m.members[thread], id)
	}
	m.lives[id] = l
}

// ended records that a context was deleted.
func (m *Marker) ended(number uint64, id structure.ContextID) {
	if l, ok := m.lives[id]; ok {
		l.last, l.deleted = number, true
		m.lives[id] = l
	}
}

// endedAll records that the contexts of a thread were deleted.
func (m *Marker) endedAll(number uint64, thread structure.ThreadID) {
	for _, id := range m.members[thread] {
		if l := m.lives[id]; !l.left && l.thread == thread {
			m.ended(number, id)
		}
	}
	delete(m.members, thread)
}

// context reports whether record i is about a live context, and not about an earlier one with the
// same id.
func (l *Set) context(id structure.ContextID, c *structure.Commit, i int) bool {
	return isOf(l.contexts, id, c, i)
}

// remnant reports whether record i is about a remnant that is kept, as context does.
func (l *Set) remnant(id structure.ContextID, c *structure.Commit, i int) bool {
	return isOf(l.remnants, id, c, i)
}

func isOf(live map[structure.ContextID]creation, id structure.ContextID, c *structure.Commit, i int) bool {
	since, ok := live[id]
	if !ok || c.Number != since.commit || !since.shared {
		return ok && c.Number >= since.commit
	}
	return i >= lastBeginning(c, id)
}

// lastBeginning returns the record of a commit that creates the last context with an id.
func lastBeginning(c *structure.Commit, id structure.ContextID) (at int) {
	var thread structure.ThreadID
	free := true
	for i, r := range c.Records {
		switch r := r.(type) {
		case *structure.Deletion:
			free = free || r.Subject == structure.KindContext && r.Context == id || r.Subject == structure.KindThread && r.Thread == thread
		case *structure.Context:
			if r.ID == id && free {
				at, free = i, false
			}
			if r.ID == id {
				thread = r.Thread
			}
		case *structure.Remnant:
			if r.ID == id && free {
				at, free = i, false
			}
		}
	}
	return at
}
