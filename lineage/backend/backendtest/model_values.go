package backendtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// value applies a value.
func (m *Model) value(r *structure.Value) error {
	if r.Check() != nil || r.JSON != nil && !isJSON(r.JSON) {
		return backend.ErrInvalid
	}
	if !r.Content.IsZero() {
		if err := needKey(m.blocks, r.Content); err != nil {
			return err
		}
	}
	switch r.Owner.Scope {
	case structure.ThreadScope:
		if err := needKey(m.threads, r.Owner.Thread); err != nil {
			return err
		}
		if !m.live(r.Home()) {
			return backend.ErrConflict
		}
	case structure.ContextScope:
		if r.Seen != structure.CollectedSpan {
			if err := m.need(r.Seen); err != nil {
				return err
			}
		}
		if err := needKey(m.views, r.Owner.Context); err != nil {
			return err
		}
	}
	history := slices.Clone(m.named[r.ValueKey])
	history = slices.DeleteFunc(history, func(v backend.Value) bool { return v.Commit == m.number })
	m.named[r.ValueKey] = append(history, backend.Value{Value: *r, Commit: m.number})
	return nil
}

func (m *Model) dropValues(owner structure.Owner) {
	maps.DeleteFunc(m.named, func(k structure.ValueKey, _ []backend.Value) bool { return k.Owner == owner })
}

// expectedValues checks the expected values of a commit.
func (m *Model) expectedValues(o backend.Options) error {
	for _, expect := range o.Values {
		history := m.named[expect.Key]
		switch {
		case len(history) == 0 && expect.Commit != 0:
			return backend.ErrNotFound
		case len(history) > 0 && expect.Commit == 0:
			return backend.ErrExists
		case len(history) > 0 && history[len(history)-1].Commit != expect.Commit:
			return backend.ErrConflict
		}
	}
	return nil
}

// latest lists the current values of an owner, by key.
func (m *Model) latest(owner structure.Owner) []backend.Value {
	out := []backend.Value{}
	for k, history := range m.named {
		if k.Owner == owner {
			out = append(out, history[len(history)-1])
		}
	}
	sortValues(out)
	return out
}

func sortValues(all []backend.Value) {
	slices.SortFunc(all, func(a, b backend.Value) int { return cmp.Compare(a.Key, b.Key) })
}

// inForce returns the effective values of a context, as of a position unless at is nil.
func (m *Model) inForce(id structure.ContextID, at *structure.SpanRef) any {
	if _, ok := m.views[id]; !ok {
		return backend.ErrNotFound.Error()
	}
	found := map[string]backend.Value{}
	m.eachInForce(id, at, func(v backend.Value) {
		if _, lower := found[v.Key]; !lower {
			found[v.Key] = v
		}
	})
	out := []backend.Value{}
	for _, v := range found {
		if !v.Deleted() {
			out = append(out, v)
		}
	}
	sortValues(out)
	return out
}

// eachInForce calls found for each record of a context's values, own or inherited, as of
// a position, the nearest first.
func (m *Model) eachInForce(id structure.ContextID, at *structure.SpanRef, found func(backend.Value)) {
	seen := map[structure.ContextID]bool{}
	for v, ok := m.views[id]; ok && !seen[v.ID]; v, ok = m.views[v.Parent] {
		seen[v.ID] = true
		for key, history := range m.named {
			if key.Owner != (structure.Owner{Scope: structure.ContextScope, Context: v.ID}) {
				continue
			}
			for _, was := range slices.Backward(history) {
				if at == nil || m.strictlyBefore(was.Seen, *at) {
					found(was)
					break
				}
			}
		}
		if base := v.Base; at == nil || *at == base || !m.strictlyBefore(*at, base) {
			at = &base
		}
	}
}

// strictlyBefore reports whether a is the empty position or an ancestor of b.
func (m *Model) strictlyBefore(a, b structure.SpanRef) bool {
	return a.IsZero() || a != b && slices.ContainsFunc(m.history(b), func(p Placed) bool { return p.Span.Ref == a })
}

func (m *Model) valueFacts(f Facts, seen *Census) {
	for _, key := range seen.values.list() {
		f[fmt.Sprintf("value %q of %s", key.Key, exactly(key.Owner))] = backend.ErrNotFound.Error()
		history := slices.Clone(m.named[key])
		slices.Reverse(history)
		if len(history) > 0 {
			f[fmt.Sprintf("value %q of %s", key.Key, exactly(key.Owner))] = history[0]
		}
		f[fmt.Sprintf("history of %q of %s", key.Key, exactly(key.Owner))] = append([]backend.Value{}, history...)
		for _, other := range some(seen.values.list()) {
			for _, prefix := range prefixes(key.Key) {
				f[fmt.Sprintf("values %q… of %s after %q", prefix, exactly(key.Owner), other.Key)] = filter(m.latest(key.Owner), func(v backend.Value) bool {
					return strings.HasPrefix(v.Key, prefix) && v.Key > other.Key
				})
			}
		}
		f[fmt.Sprint("values of ", exactly(key.Owner))] = m.latest(key.Owner)
	}
	for _, scope := range scopes {
		for _, after := range append(some(seen.owners.list()), "") {
			f[fmt.Sprintf("%vs with values after %q", scope, after)] = m.owners(scope, after)
		}
	}
	for _, id := range seen.contexts.list() {
		f[fmt.Sprint("values in force in ", id)] = m.inForce(id, nil)
		for _, at := range append(some(seen.spans.list()), structure.SpanRef{}) {
			if _, ok := m.spans[at]; ok || at.IsZero() {
				f[fmt.Sprintf("values in force in %v at %v", id, at)] = m.inForce(id, &at)
			}
		}
	}
}

func (m *Model) owners(scope structure.Scope, after string) []string {
	named := map[string]bool{}
	for k := range m.named {
		if k.Owner.Scope == scope && k.Owner.Name > after {
			named[k.Owner.Name] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(named))...)
}
