package live

import (
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/structure"
)

// Roots marks everything that can be reached by a name or an id.
func (m *Marker) Roots() error {
	m.Live.Until = m.view.Index.State().Number
	if err := m.values(); err != nil {
		return err
	}
	for _, table := range []struct {
		letter byte
		mark   func(index.Entry) error
	}{
		{keys.TableThread, m.threadRoot}, {keys.TableContext, m.contextRoot}, {keys.TableCheckpoint, m.checkpointRoot},
		{keys.TableSummary, m.summaryRoot}, {keys.TableReflog, m.reflogRoot}, {keys.TableErased, m.erasedRoot},
	} {
		for e, err := range m.view.Entries(m.ctx, keys.Of(table.letter)) {
			if err == nil {
				err = table.mark(e)
			}
			if err != nil {
				return err
			}
		}
	}
	return m.alternatives()
}

func (m *Marker) contextRoot(e index.Entry) error {
	c, err := read.Context(m.view.Index, structure.ContextID(e.Key[1:]))
	if err != nil {
		return err
	}
	m.Live.contexts[c.ID] = creation{} // the scan finds the commit
	if err := m.remnants(c.Parent); err != nil {
		return err
	}
	if err := m.inherit(&c.Context); err != nil {
		return err
	}
	if !c.Set.IsZero() {
		if err := m.set(c.Set); err != nil {
			return err
		}
	}
	if err := m.span(c.Base); err != nil {
		return err
	}
	return m.span(c.Tip)
}
