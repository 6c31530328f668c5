package lineage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Value is a named value: a small JSON document.
type Value struct {
	Key string
	// JSON is the value, byte for byte; nil if it was deleted.
	JSON []byte
	// Context is the context that set it: an ancestor for an inherited value, zero for other
	// owners.
	Context ContextID
	SetAt   time.Time
	// Commit is the number of the commit that set it.
	Commit uint64
}

// The scopes of values.
const (
	StoreScope       = structure.StoreScope
	ApplicationScope = structure.ApplicationScope
	UserScope        = structure.UserScope
	ThreadScope      = structure.ThreadScope
	ContextScope     = structure.ContextScope
)

// Values are the named values of one owner: the store, an application, a user, a thread or a context. Like messages,
// they change in commits, are seen by watchers, are collected and are part of bundles. Values of a thread or context
// are deleted with it.
//
// A context inherits the values that its parent had at the span from which the context was forked. It does not matter
// whether a value was set before or after the fork: what the parent sets while it still points to that span is
// inherited too, and what it sets after moving on is not. Setting or deleting a value in one context does not affect
// the other. Moving a context back does not move its values. Nothing is inherited from a deleted context.
type Values struct {
	store *Store
	owner structure.Owner
	// If asOf is set, the values are read that were current at the span at.
	asOf bool
	at   SpanRef
}

// Values returns the values of an owner. Those of a context include inherited ones. The scope of a
// thread or context may be omitted.
func (s *Store) Values(owner Owner) *Values {
	switch {
	case owner.Scope != 0:
	case !owner.Thread.IsZero():
		owner.Scope = ThreadScope
	case !owner.Context.IsZero():
		owner.Scope = ContextScope
	}
	return &Values{store: s, owner: owner}
}

// At returns the values of a context as of a span of its history. These are the values that a fork at the span
// inherits. They cannot be set. A collection deletes old values that nothing inherits.
func (v *Values) At(span SpanRef) *Values {
	return &Values{store: v.store, owner: v.owner, asOf: true, at: span}
}

func (v *Values) key(key string) structure.ValueKey {
	return structure.ValueKey{Owner: v.owner, Key: key}
}

func (v *Values) missing(key string) error {
	return subjectError("value", v.key(key).Name(), ErrNotFound, "")
}

// Get returns a value.
func (v *Values) Get(ctx context.Context, key string) (Value, error) {
	stored, err := v.read(ctx, key)
	if isNotFound(err) || err == nil && stored.Deleted() {
		return Value{}, v.missing(key)
	}
	if err != nil {
		return Value{}, err
	}
	return v.value(ctx, &stored)
}

func (v *Values) read(ctx context.Context, key string) (stored backend.Value, err error) {
	if v.owner.Scope != ContextScope {
		return v.store.engine.Value(ctx, v.key(key))
	}
	return backend.AtOnce(ctx, v.store.engine, func(from backend.Snapshot) (backend.Value, error) { return v.inherited(ctx, from).Value(key) })
}

// inherited returns the values in force in a context.
func (v *Values) inherited(ctx context.Context, from backend.Reader) *backend.ContextValues {
	if v.asOf {
		return backend.NewContextValuesAt(ctx, from, v.owner.Context, v.at)
	}
	return backend.NewContextValues(ctx, from, v.owner.Context)
}

// value returns a value with its JSON, which may be in a block.
func (v *Values) value(ctx context.Context, stored *backend.Value) (Value, error) {
	value := Value{Key: stored.Key, JSON: stored.JSON, Context: stored.Owner.Context, SetAt: stored.At, Commit: stored.Commit}
	if stored.Content.IsZero() {
		return value, nil
	}
	body, err := v.store.Body(ctx, stored.Content)
	if err == nil {
		value.JSON, err = io.ReadAll(body)
	}
	if err != nil {
		return Value{}, fmt.Errorf("value %s: %w", stored.ValueKey.Name(), err)
	}
	return value, nil
}

// All yields the values whose keys have a prefix, ordered by key. It is refused inside a
// transaction.
func (v *Values) All(ctx context.Context, prefix string) iter.Seq2[Value, error] {
	return v.AllAfter(ctx, prefix, "")
}

// AllAfter is like All, for the values after a key.
func (v *Values) AllAfter(ctx context.Context, prefix, after string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		after := after // where to continue when the snapshot expires
		all := func(values iter.Seq2[backend.Value, error]) error {
			for stored, err := range values {
				if err != nil {
					return err
				}
				if stored.Deleted() {
					continue
				}
				value, err := v.value(ctx, &stored)
				if err != nil {
					return err
				}
				if !yield(value, nil) {
					return nil
				}
				after = stored.Key
			}
			return nil
		}
		var err error
		if v.owner.Scope == ContextScope {
			_, err = backend.AtOnce(ctx, v.store.engine, func(from backend.Snapshot) (struct{}, error) {
				return struct{}{}, all(v.inherited(ctx, from).All(prefix, after))
			})
		} else {
			err = all(v.store.engine.Values(ctx, v.owner, prefix, after))
		}
		if err != nil {
			yield(Value{}, err)
		}
	}
}

// History yields the values that the owner itself has set under a key, newest first, including deletions. They are
// kept as long as the reflog. If before is not zero, only values set by earlier commits are read.
func (v *Values) History(ctx context.Context, key string, before uint64) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		for stored, err := range v.store.engine.ValueHistory(ctx, v.key(key)) {
			if err == nil && before > 0 && stored.Commit >= before {
				continue
			}
			var value Value
			if err == nil {
				value, err = v.value(ctx, &stored)
			}
			if !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// Set sets a value, which must be JSON. Keys are text of up to 512 bytes.
func (v *Values) Set(ctx context.Context, key string, value []byte) error {
	if !json.Valid(value) {
		return subjectError("value", v.key(key).Name(), ErrInvalid, "not JSON")
	}
	return v.set(ctx, key, func(ctx context.Context, b *write.Batch) (inline []byte, in ContentID, err error) {
		if len(value) <= structure.MaxInlineValue {
			return value, ContentID{}, nil
		}
		block, err := v.store.writer.Upload(ctx, content.Block{Type: content.TypeJSON, CreatedAt: b.Time()}, bytes.NewReader(value))
		if err != nil {
			return nil, ContentID{}, err
		}
		b.Adopt(block)
		return nil, block.ID, nil
	})
}

// Delete deletes a value. In a context it also hides an inherited one.
func (v *Values) Delete(ctx context.Context, key string) error {
	return v.set(ctx, key, func(ctx context.Context, _ *write.Batch) ([]byte, ContentID, error) {
		stored, err := v.read(ctx, key)
		if isNotFound(err) || err == nil && stored.Deleted() {
			return nil, ContentID{}, v.missing(key)
		}
		return nil, ContentID{}, err
	})
}

// DeleteRange deletes values in the order of their keys: up to most of them, in one commit. Their keys come after
// the key after and, if before is not empty, precede before. DeleteRange returns the key to continue after, empty if
// no value is left, and the number of deleted values. It is for owners other than contexts.
func (v *Values) DeleteRange(ctx context.Context, after, before string, most int) (next string, deleted int, err error) {
	if v.owner.Scope == ContextScope {
		return "", 0, subjectError("values of", v.owner.Context.String(), ErrInvalid, "values of a context are deleted one by one")
	}
	var keys []string
	for stored, err := range v.store.engine.Values(ctx, v.owner, "", after) {
		if err != nil {
			return after, 0, err
		}
		if before != "" && stored.Key >= before {
			break
		}
		if stored.Deleted() {
			continue
		}
		if len(keys) == most {
			next = keys[most-1]
			break
		}
		keys = append(keys, stored.Key)
	}
	if len(keys) == 0 {
		return "", 0, nil
	}
	err = v.store.Update(ctx, func(ctx context.Context, tx *Tx) error {
		deleted = 0
		for _, key := range keys {
			err := tx.Values(v.owner).Delete(ctx, key)
			if err == nil {
				deleted++
			} else if !isNotFound(err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return after, 0, err
	}
	return next, deleted, nil
}

func (v *Values) set(ctx context.Context, key string, fill func(context.Context, *write.Batch) ([]byte, ContentID, error)) error {
	if v.asOf {
		return subjectError("value", v.key(key).Name(), ErrInvalid, "values of the past cannot be set")
	}
	if v.owner.Scope == ContextScope {
		defer v.store.writer.Lock(v.owner.Context).Unlock()
	}
	return v.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		var incarnation uint64
		var seen SpanRef
		switch v.owner.Scope {
		case ThreadScope:
			thread, err := v.store.engine.Thread(ctx, v.owner.Thread)
			if err != nil {
				return err
			}
			incarnation = thread.Incarnation
		case ContextScope:
			c, err := v.store.engine.Context(ctx, v.owner.Context)
			if err != nil {
				return err
			}
			seen = c.Tip
			b.Expect(c.ID, seen)
		}
		inline, in, err := fill(ctx, b)
		if err == nil {
			b.Value(v.key(key), incarnation, inline, in, seen)
		}
		return err
	})
}
