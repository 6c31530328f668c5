package write

import (
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Value implements backend.Reader.
func (s *Stage) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	for v, err := range s.ValueHistory(ctx, key) {
		return v, err
	}
	return backend.Value{}, missing("value", key.Name())
}

// ValueHistory implements backend.Reader. The value becomes an expectation, because each addition to its
// history changes it.
func (s *Stage) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return func(yield func(backend.Value, error) bool) {
		if err := s.alive(); err != nil {
			yield(backend.Value{}, err)
			return
		}
		for _, v := range slices.Backward(s.values[key]) {
			if !s.lapsed(&v) && !yield(v, nil) {
				return
			}
		}
		if s.first(key) {
			v, err := s.Reader.Value(ctx, key)
			if err != nil && !isNotFound(err) {
				yield(backend.Value{}, err)
				return
			}
			s.batch.Values = append(s.batch.Values, backend.ExpectValue{Key: key, Commit: v.Commit})
		}
		for v, err := range s.Reader.ValueHistory(ctx, key) {
			if err == nil && s.lapsed(&v) {
				return
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// lapsed reports whether the transaction deleted the owner of a value.
func (s *Stage) lapsed(v *backend.Value) bool {
	switch v.Owner.Scope {
	case structure.ThreadScope:
		return s.isOver(v.Home())
	case structure.ContextScope:
		c, changed := s.contexts[v.Owner.Context]
		return changed && c == nil
	}
	return false
}
