package salvage

import (
	"errors"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// homeNamed returns the home named in a run or value, or zero.
func homeNamed(r structure.Record) structure.Home {
	switch r := r.(type) {
	case *structure.Run:
		return r.Home
	case *structure.Value:
		return r.Home()
	}
	return structure.Home{}
}

// meet records the homes named in the current commit. A recreated thread gets the incarnation that was named last.
func (m *Mender) meet() error {
	for _, r := range m.records {
		home := homeNamed(r)
		if home.Thread.IsZero() {
			continue
		}
		m.homes[home.Thread] = home.Incarnation
		if !m.lost[home.Thread] {
			continue
		}
		t, err := m.to.Thread(m.ctx, home.Thread)
		if errors.Is(err, backend.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if t.Incarnation != home.Incarnation {
			t.Incarnation = home.Incarnation
			if err := m.apply(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetEarlier deletes a thread whose id is created again in this commit, if the commit
// that deleted it is lost: the new thread must not inherit its contents.
func (m *Mender) forgetEarlier() error {
	for _, r := range m.records {
		t, ok := r.(*structure.Thread)
		if !ok {
			continue
		}
		was, err := m.to.Thread(m.ctx, t.ID)
		switch {
		case errors.Is(err, backend.ErrNotFound):
			continue
		case err != nil:
			return err
		case was.Incarnation == t.Incarnation || m.lost[t.ID]:
			delete(m.lost, t.ID)
			continue
		}
		if err := m.put(func(b *write.Batch) { b.DeleteThread(t.ID) }); err != nil {
			return err
		}
	}
	return nil
}
