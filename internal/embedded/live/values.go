package live

import (
	"crypto/sha256"
	"errors"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// These records of a value are live: the latest; those younger than KeepReflog and the one before them; and, for
// values of a context, those that a fork inherits, or would inherit if it and the contexts in between had no such
// value.

// hashValue returns the hash under which the live set stores a value record.
func hashValue(key []byte) uint64 {
	sum := sha256.Sum256(key)
	return Hash(sum[:])
}

func (l *Set) Value(key structure.ValueKey, commit uint64) bool {
	return l.values.has(hashValue(keys.Value(key, commit)))
}

// keepValue marks the value record under an index key.
func (m *Marker) keepValue(key []byte, v *structure.Value) error {
	m.Live.values.add(hashValue(key))
	if v.Content.IsZero() {
		return nil
	}
	return m.content(v.Content)
}

// values marks value records, the latest of each value first.
func (m *Marker) values() error {
	var history []byte // key prefix of the current value
	settled := false   // the remaining records of the value were replaced long ago
	for e, err := range m.view.Entries(m.ctx, keys.Of(keys.TableValue)) {
		if err != nil {
			return err
		}
		m.inherits = m.inherits || structure.Scope(e.Key[1]) == structure.ContextScope
		if prefix := e.Key[:len(e.Key)-8]; string(prefix) != string(history) {
			history, settled = append(history[:0], prefix...), false
		}
		if settled {
			continue
		}
		v, err := read.ReadValue(e)
		if err != nil {
			return err
		}
		settled = v.At.Before(m.before(m.opt.KeepReflog))
		if err := m.keepValue(e.Key, &v.Value); err != nil {
			return err
		}
	}
	return nil
}

// inherit marks the values that a context inherits from its ancestors.
func (m *Marker) inherit(c *structure.Context) error {
	if !m.inherits {
		return nil
	}
	for from := (inherited{c.Parent, c.Base}); !from.context.IsZero() && !has(m.inherited, from); {
		m.inherited[from] = struct{}{}
		above, err := read.Context(m.view.Index, from.context)
		if errors.Is(err, backend.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = m.inForce(from)
		}
		if err != nil {
			return err
		}
		from.context = above.Parent
		if from.at, err = structure.InheritedAt(from.at, above.Base, m.run); err != nil {
			return err
		}
	}
	return nil
}

// inForce marks the values that are in force in a context as of a position.
func (m *Marker) inForce(from inherited) error {
	var history []byte
	found := false
	for e, err := range m.view.Entries(m.ctx, keys.Owner(structure.Owner{Scope: structure.ContextScope, Context: from.context})) {
		if err != nil {
			return err
		}
		if prefix := e.Key[:len(e.Key)-8]; string(prefix) != string(history) {
			history, found = append(history[:0], prefix...), false
		}
		if found {
			continue
		}
		if found, err = m.keepInForce(e, from.at); err != nil {
			return err
		}
	}
	return nil
}

func (m *Marker) keepInForce(e index.Entry, at structure.SpanRef) (bool, error) {
	v, err := read.ReadValue(e)
	if err != nil {
		return false, err
	}
	before, err := v.SetBefore(at, m.run)
	if err != nil || !before {
		return false, err
	}
	if m.following && !m.Live.values.has(hashValue(e.Key)) {
		m.Revived = true
	}
	return true, m.keepValue(e.Key, &v.Value)
}

// run looks up a run, with a cache.
func (m *Marker) run(id structure.RunID) (structure.RunInfo, error) {
	if run, ok := m.runs[id]; ok {
		return run, nil
	}
	run, err := read.Run(m.view.Index, id)
	if err == nil {
		m.runs[id] = run
	}
	return run, err
}

// valueRecord keeps a value record of a live owner unless it was replaced and is no longer
// needed. If its Seen span is dead, it is replaced by CollectedSpan.
func (l *Set) valueRecord(c *structure.Commit, i int, v *structure.Value) structure.Record {
	lives := l.Value(v.ValueKey, c.Number)
	switch v.Owner.Scope {
	case structure.ThreadScope:
		lives = lives && l.thread(v.Owner.Thread, c, i)
	case structure.ContextScope:
		lives = lives && l.context(v.Owner.Context, c, i)
	}
	switch {
	case !lives:
		return nil
	case l.Span(v.Seen) || v.Seen == structure.CollectedSpan:
		return v
	}
	own := *v
	own.Seen = structure.CollectedSpan
	return &own
}

// replaced finds values of a commit that a later record of the same commit replaces.
// Records are given last to first.
type replaced map[structure.ValueKey]struct{}

func (r *replaced) is(v *structure.Value) bool {
	if has(*r, v.ValueKey) {
		return true
	}
	if *r == nil {
		*r = make(replaced)
	}
	(*r)[v.ValueKey] = struct{}{}
	return false
}
