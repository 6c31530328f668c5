package salvage

import "github.com/lineage-store/lineage/structure"

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
