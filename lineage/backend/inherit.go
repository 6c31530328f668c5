package backend

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// ContextValues reads the values that are in force in a context: its own, and for keys of
// which it has none the values of its parent as they were when its base was said, and so
// on upwards. Deleting a value of a context also hides what the context would inherit.
//
// It is not safe for concurrent use. The reader should be a snapshot, because there are
// several reads.
type ContextValues struct {
	ctx    context.Context
	reader Reader
	runs   structure.RunLookup
	// levels are the context and those of its ancestors that were needed so far.
	levels []valueLevel
	next   valueLevel // above them; of no context when there are no more
	seen   map[structure.ContextID]struct{}
}

// valueLevel is a context whose values are read as they are, or as of a position.
type valueLevel struct {
	context structure.ContextID
	asOf    bool
	at      structure.SpanRef
}

// NewContextValues reads the values that are in force in a context now.
func NewContextValues(ctx context.Context, r Reader, id structure.ContextID) *ContextValues {
	return &ContextValues{
		ctx: ctx, reader: r, runs: Runs(ctx, r), next: valueLevel{context: id}, seen: make(map[structure.ContextID]struct{}),
	}
}

// NewContextValuesAt reads the values that were in force in a context when a span of its
// history was said: those that a fork at the span would inherit. Values that a Collector
// took are missing.
func NewContextValuesAt(ctx context.Context, r Reader, id structure.ContextID, span structure.SpanRef) *ContextValues {
	v := NewContextValues(ctx, r, id)
	v.next.asOf, v.next.at = true, span
	return v
}

// climb adds the next level and reports whether there is one. A context whose parent was
// deleted inherits nothing.
func (v *ContextValues) climb() (bool, error) {
	level := v.next
	if level.context.IsZero() {
		return false, nil
	}
	c, err := v.reader.Context(v.ctx, level.context)
	if errors.Is(err, ErrNotFound) && len(v.levels) > 0 {
		v.next = valueLevel{}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	up := valueLevel{context: c.Parent, asOf: true, at: c.Base}
	if level.asOf && !c.Parent.IsZero() {
		if up.at, err = structure.InheritedAt(level.at, c.Base, v.runs); err != nil {
			return false, err
		}
	}
	// A deleted context can be made again as a child of its child.
	if v.seen[level.context] = struct{}{}; has(v.seen, c.Parent) {
		up = valueLevel{}
	}
	v.levels, v.next = append(v.levels, level), up
	return true, nil
}

func has(seen map[structure.ContextID]struct{}, id structure.ContextID) bool {
	_, ok := seen[id]
	return ok
}

func (l valueLevel) owner() structure.Owner {
	return structure.Owner{Scope: structure.ContextScope, Context: l.context}
}

// inForce returns what a level says of a key, if it says anything.
func (v *ContextValues) inForce(l valueLevel, key string) (Value, bool, error) {
	of := structure.ValueKey{Owner: l.owner(), Key: key}
	if !l.asOf {
		is, err := v.reader.Value(v.ctx, of)
		if errors.Is(err, ErrNotFound) {
			return Value{}, false, nil
		}
		return is, err == nil, err
	}
	for was, err := range v.reader.ValueHistory(v.ctx, of) {
		before := false
		if err == nil {
			before, err = was.SetBefore(l.at, v.runs)
		}
		if err != nil || before {
			return was, err == nil, err
		}
	}
	return Value{}, false, nil
}

// Value returns the value of a key. It is ErrNotFound if there is none or it was deleted.
// The owner in its key is the context that it was set in.
func (v *ContextValues) Value(key string) (Value, error) {
	for i := 0; ; i++ {
		if i == len(v.levels) {
			if more, err := v.climb(); err != nil {
				return Value{}, err
			} else if !more {
				break
			}
		}
		is, ok, err := v.inForce(v.levels[i], key)
		if err != nil {
			return Value{}, err
		}
		if ok && is.Deleted() {
			break
		}
		if ok {
			return is, nil
		}
	}
	return Value{}, &SubjectError{Subject: "value", ID: fmt.Sprintf("%.80q", key), Err: ErrNotFound}
}

// All yields the values whose keys begin with a prefix, in the order of their keys, those
// behind a given key. It keeps the keys in memory.
func (v *ContextValues) All(prefix, after string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		from, err := v.keys(prefix, after)
		if err != nil {
			yield(Value{}, err)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(from)) {
			is, ok, err := v.inForce(v.levels[from[key]], key)
			if err == nil && (!ok || is.Deleted()) {
				continue
			}
			if !yield(is, err) || err != nil {
				return
			}
		}
	}
}

// keys returns for each key the lowest level that says something of it.
func (v *ContextValues) keys(prefix, after string) (map[string]int, error) {
	from := make(map[string]int)
	for i := 0; ; i++ {
		if i == len(v.levels) {
			if more, err := v.climb(); err != nil || !more {
				return from, err
			}
		}
		level := v.levels[i]
		for is, err := range v.reader.Values(v.ctx, level.owner(), prefix, after) {
			if err != nil {
				return nil, err
			}
			if _, known := from[is.Key]; known {
				continue
			}
			ok := true
			if level.asOf {
				if _, ok, err = v.inForce(level, is.Key); err != nil {
					return nil, err
				}
			}
			if ok {
				from[is.Key] = i
			}
		}
	}
}
