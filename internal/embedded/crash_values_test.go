package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// value writes a value, or deletes one.
func (a *author) value(s *state, in *backend.Context) []structure.Record {
	v := &structure.Value{At: a.now()}
	if a.IntN(2) == 0 { // it is older than any reflog that is kept
		v.At = v.At.Add(-365 * 24 * time.Hour)
	}
	v.Key = oneOf(a, []string{"k", "kl", "l"})
	switch a.IntN(8) {
	case 0:
		v.Owner = structure.Owner{Scope: structure.StoreScope}
	case 1:
		v.Owner = structure.Owner{Scope: structure.UserScope, Name: oneOf(a, []string{"a", "ab"})}
	case 2:
		v.Owner = structure.Owner{Scope: structure.ThreadScope, Thread: in.Thread}
		v.Incarnation = s.threads[in.Thread].Incarnation
	default:
		v.Owner = structure.Owner{Scope: structure.ContextScope, Context: in.ID}
		if v.Seen = in.Tip; a.IntN(4) == 0 && len(s.order) > 0 {
			v.Seen = oneOf(a, s.order)
		}
	}
	switch a.IntN(6) {
	case 0:
		return []structure.Record{v}
	case 1, 2:
		id, records := a.content(s)
		v.Content = id
		return append(records, v)
	}
	v.JSON = []byte(fmt.Sprintf("%q", a.name("value")))
	a.things++
	if a.IntN(4) > 0 {
		return []structure.Record{v}
	}
	replaced := *v // in the same commit
	replaced.JSON = []byte(fmt.Sprintf("%q", a.name("replaced value")))
	return []structure.Record{&replaced, v}
}

func (s *state) value(v *structure.Value) {
	history := slices.DeleteFunc(slices.Clone(s.values[v.ValueKey]), func(was backend.Value) bool { return was.Commit == s.number })
	s.values[v.ValueKey] = append(history, backend.Value{Value: *v, Commit: s.number})
}

func (s *state) dropValues(owner structure.Owner) {
	maps.DeleteFunc(s.values, func(k structure.ValueKey, _ []backend.Value) bool { return k.Owner == owner })
}

// before reports whether a span is in the history before another, or the empty position.
func (s *state) before(a, b structure.SpanRef) bool {
	return a.IsZero() || a != b && slices.ContainsFunc(s.history(b), func(p placed) bool { return p.span.Ref == a })
}

// inForce calls found with each value that says something of a key in a context, the nearest
// first: its own, and those that it would inherit.
func (s *state) inForce(id structure.ContextID, found func(v backend.Value)) {
	var at *structure.SpanRef
	for c := s.contexts[id]; c != nil; c = s.contexts[c.Parent] {
		for key, history := range s.values {
			if key.Owner.Context != c.ID {
				continue
			}
			for _, was := range slices.Backward(history) {
				if at == nil || s.before(was.Seen, *at) {
					found(was)
					break
				}
			}
		}
		if base := c.Base; at == nil || *at == base || !s.before(*at, base) {
			at = &base
		}
	}
}

// collectValues takes out what was replaced and nobody needs.
func (s *state) collectValues(now time.Time, keepReflog time.Duration) {
	type version struct {
		key    structure.ValueKey
		commit uint64
	}
	live := map[version]bool{}
	for key, history := range s.values {
		live[version{key, history[len(history)-1].Commit}] = true
		for _, v := range slices.Backward(history) {
			live[version{key, v.Commit}] = true
			if v.At.Before(now.Add(-keepReflog)) {
				break
			}
		}
	}
	for id := range s.contexts {
		s.inForce(id, func(v backend.Value) { live[version{v.ValueKey, v.Commit}] = true })
	}
	left := map[structure.ValueKey][]backend.Value{}
	for key, history := range s.values {
		for _, v := range history {
			if live[version{key, v.Commit}] {
				left[key] = append(left[key], v)
			}
		}
	}
	s.values = left
}

// collectSeen leaves spans that are dead without a place.
func (s *state) collectSeen(dead func(structure.SpanRef) bool) {
	for _, history := range s.values {
		for i := range history {
			if dead(history[i].Seen) {
				history[i].Seen = structure.CollectedSpan
			}
		}
	}
}

func (s *state) valueContent(used map[content.ID]bool) {
	for _, history := range s.values {
		for _, v := range history {
			used[v.Content] = true
		}
	}
}

func (a answers) askValues(ctx context.Context, e *Engine, s *state) {
	for key := range s.values {
		all(a, fmt.Sprint("history of ", key), e.ValueHistory(ctx, key))
		all(a, fmt.Sprint("values of ", key.Owner), e.Values(ctx, key.Owner, "", ""))
	}
	for id := range s.contexts {
		all(a, fmt.Sprint("values in force in ", id), backend.NewContextValues(ctx, e, id).All("", ""))
	}
}

func (a answers) expectValues(s, asked *state) {
	for key := range asked.values {
		history := append([]backend.Value{}, s.values[key]...)
		slices.Reverse(history)
		a.say(fmt.Sprint("history of ", key), history, nil)
		latest := []backend.Value{}
		for _, k := range []string{"k", "kl", "l"} {
			if history := s.values[structure.ValueKey{Owner: key.Owner, Key: k}]; len(history) > 0 {
				latest = append(latest, history[len(history)-1])
			}
		}
		a.say(fmt.Sprint("values of ", key.Owner), latest, nil)
	}
	for id := range asked.contexts {
		question := fmt.Sprint("values in force in ", id)
		if s.contexts[id] == nil {
			a[question] = none
			continue
		}
		nearest := map[string]backend.Value{}
		s.inForce(id, func(v backend.Value) {
			if _, ok := nearest[v.Key]; !ok {
				nearest[v.Key] = v
			}
		})
		values := []backend.Value{}
		for _, key := range slices.Sorted(maps.Keys(nearest)) {
			if v := nearest[key]; !v.Deleted() {
				values = append(values, v)
			}
		}
		a.say(question, values, nil)
	}
}
