package salvage

import (
	"cmp"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// value applies a value. A value of another incarnation of its thread is refused.
func (m *Mender) value(v *structure.Value) error {
	if !v.Content.IsZero() {
		if err := m.needContent(v.Content); err != nil {
			return err
		}
	}
	switch v.Owner.Scope {
	case structure.ThreadScope:
		return m.needing(v, m.needThread(v.Owner.Thread))
	case structure.ContextScope:
		if err := m.needContext(v.Owner.Context, structure.ThreadID{}); err != nil {
			return err
		}
		if v.Seen != structure.CollectedSpan {
			return m.needing(v, m.needSpan(v.Seen))
		}
	}
	return m.apply(v)
}

// valuesOf returns all versions of all values of a context, oldest first.
func (m *Mender) valuesOf(id structure.ContextID) (all []backend.Value, err error) {
	for latest, err := range m.to.Values(m.ctx, structure.Owner{Scope: structure.ContextScope, Context: id}, "", "") {
		if err != nil {
			return nil, err
		}
		for v, err := range m.to.ValueHistory(m.ctx, latest.ValueKey) {
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b backend.Value) int { return cmp.Compare(a.Commit, b.Commit) })
	return all, nil
}
