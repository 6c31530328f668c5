package backend

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// ContextValues reads the values in force in a context: its own, and for other keys the values of its parent as of
// its base, and so on for further ancestors. A deleted value of a context also hides the inherited one.
//
// It is not safe for concurrent use. The reader should be a snapshot, because there are several reads.
type ContextValues struct {
	ctx    context.Context
	reader Reader
	runs   structure.RunLookup
	// levels are the context and the ancestors needed so far.
	levels []valueLevel
	next   valueLevel // the next ancestor; zero if there is none
	seen   map[structure.ContextID]struct{}
}

// valueLevel is a context whose values are read as they are now, or as of a position.
type valueLevel struct {
	context structure.ContextID
	asOf    bool
	at      structure.SpanRef
}

// NewContextValues reads the values currently in force in a context.
func NewContextValues(ctx context.Context, r Reader, id structure.ContextID) *ContextValues {
	return &ContextValues{
		ctx: ctx, reader: r, runs: Runs(ctx, r), next: valueLevel{context: id}, seen: make(map[structure.ContextID]struct{}),
	}
}

// NewContextValuesAt reads the values that were in force in a context at a span of its
// history: those that a fork at the span would inherit. Values deleted by a Collector are
// missing.
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
	// A deleted context may be created again as a child of its child.
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

// inForce returns the value of a key at a level, if any.
func (v *ContextValues) inForce(l valueLevel, key string) (Value, bool, error) {
	valueKey := structure.ValueKey{Owner: l.owner(), Key: key}
	if !l.asOf {
		value, err := v.reader.Value(v.ctx, valueKey)
		if errors.Is(err, ErrNotFound) {
			return Value{}, false, nil
		}
		return value, err == nil, err
	}
	for was, err := range v.reader.ValueHistory(v.ctx, valueKey) {
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
// The owner in its key is the context in which it was set.
func (v *ContextValues) Value(key string) (Value, error) {
	for i := 0; ; i++ {
		if i == len(v.levels) {
			if more, err := v.climb(); err != nil {
				return Value{}, err
			} else if !more {
				break
			}
		}
		value, ok, err := v.inForce(v.levels[i], key)
		if err != nil {
			return Value{}, err
		}
		if ok && value.Deleted() {
			break
		}
		if ok {
			return value, nil
		}
	}
	return Value{}, &SubjectError{Subject: "value", ID: fmt.Sprintf("%.80q", key), Err: ErrNotFound}
}

// All yields the values whose keys start with a prefix and sort after a given key, in the
// order of their keys. It reads all levels at once, and of each as much as its values need.
func (v *ContextValues) All(prefix, after string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		for more := true; more; {
			var err error
			if more, err = v.climb(); err != nil {
				yield(Value{}, err)
				return
			}
		}
		records := make([]levelRecords, len(v.levels))
		for i, level := range v.levels {
			next, stop := iter.Pull2(v.reader.Values(v.ctx, level.owner(), prefix, after))
			defer stop()
			records[i].next = next
			records[i].advance()
		}
		for {
			key, err := leastKey(records)
			if err != nil {
				yield(Value{}, err)
				return
			}
			if key == "" {
				return
			}
			value, ok, err := v.takeLowest(records, key)
			if err != nil {
				yield(Value{}, err)
				return
			}
			if ok && !value.Deleted() && !yield(value, nil) {
				return
			}
		}
	}
}

// takeLowest returns the value of a key at the lowest level at which it is in force, if any, and moves the records of all
// levels past the key.
func (v *ContextValues) takeLowest(records []levelRecords, key string) (value Value, ok bool, err error) {
	for i := range records {
		if !records[i].has(key) {
			continue
		}
		if !ok {
			if value, ok, err = v.inForce(v.levels[i], key); err != nil {
				return Value{}, false, err
			}
		}
		records[i].advance()
	}
	return value, ok, nil
}

// levelRecords reads the records of a level in the order of their keys.
type levelRecords struct {
	next  func() (Value, error, bool)
	key   string // of the record; empty at the end
	wrong error
}

func (r *levelRecords) advance() {
	value, err, _ := r.next()
	r.key, r.wrong = value.Key, err
}

func (r *levelRecords) has(key string) bool { return r.key == key }

// leastKey returns the least key of the next records, which is empty if there are none.
func leastKey(records []levelRecords) (least string, err error) {
	for i := range records {
		r := &records[i]
		if r.wrong != nil {
			return "", r.wrong
		}
		if r.key != "" && (least == "" || r.key < least) {
			least = r.key
		}
	}
	return least, nil
}
