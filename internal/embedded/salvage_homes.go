package embedded

import (
	"errors"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// homeNamed returns the home that a run or value names, zero if there is none.
func homeNamed(r structure.Record) structure.Home {
	switch r := r.(type) {
	case *structure.Run:
		return r.Home
	case *structure.Value:
		return r.Home()
	}
	return structure.Home{}
}

// meet notes which homes the records of the commit name. A thread that was made up becomes
// the home that is named last.
func (m *mender) meet() error {
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

// forgetEarlier deletes threads that were made again under their ids, when the commit
// that deleted them is gone: what they had is not the new one's.
func (m *mender) forgetEarlier() error {
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
