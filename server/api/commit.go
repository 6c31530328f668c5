package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/problem"
)

// operation is a change. It looks up what it changes through w, inside the transaction, and returns what it made.
type operation interface {
	do(ctx context.Context, w *within) (made, error)
}

// alone is implemented by operations that can also run without a transaction, in one commit.
type alone interface{ alone() }

// commit applies operations as one commit. With a key they are applied once, even if others apply them at the same
// time.
func (a *API) commit(c *call, all []operation) (done []made, _ error) {
	ctx := c.r.Context()
	keys := c.r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) > 1 || len(keys) == 1 && (keys[0] == "" || len(keys[0]) > maxKey):
		return nil, fmt.Errorf("key: %w: a request has one of 1 to %d bytes", lineage.ErrInvalid, maxKey)
	case len(keys) == 1:
		return a.commitOnce(ctx, c, all, keys[0])
	}
	if len(all) == 1 {
		if _, ok := all[0].(alone); ok {
			m, err := all[0].do(ctx, &c.within)
			return []made{m}, err
		}
	}
	err := a.o.Store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		done, err = apply(ctx, tx.Store, c, all)
		return err
	})
	return done, err
}

// commitOnce applies operations unless a request with the key has applied them. Then it returns what that one made.
func (a *API) commitOnce(ctx context.Context, c *call, all []operation, key string) (done []made, _ error) {
	name, request := c.keyName(key), c.request()
	today := a.o.now().UTC()
	a.keys.sweep(ctx, a.o.Store, today)
	replayed := false
	err := a.o.Store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		values := tx.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: keysOf})
		earlier, err := appliedBefore(ctx, values, name, today)
		if err != nil {
			return fmt.Errorf("key %s: %w", name, err)
		}
		if replayed = earlier != nil; replayed {
			if earlier.Request != request {
				return problem.New(http.StatusUnprocessableEntity, "key used", "the key was used for another request")
			}
			done = earlier.Made
			return nil
		}
		if done, err = apply(ctx, tx.Store, c, all); err != nil {
			return err
		}
		value, err := json.Marshal(applied{request, done})
		if err != nil {
			return err
		}
		return values.Set(ctx, keyOf(today, name), value)
	})
	if replayed && err == nil {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	return done, err
}

// operationError is the error of one of several operations.
type operationError struct {
	number int
	err    error
}

func (e *operationError) place() string { return fmt.Sprintf("operation %d: ", e.number) }

// Error implements error.
func (e *operationError) Error() string { return e.place() + e.err.Error() }

func (e *operationError) Unwrap() error { return e.err }

// appliedBefore returns what a request with a key applied, nil if there was none. The clocks of two servers may differ, and
// midnight may be near.
func appliedBefore(ctx context.Context, values *lineage.Values, name string, today time.Time) (*applied, error) {
	for _, at := range []time.Time{today, today.Add(-day), today.Add(day)} {
		v, err := values.Get(ctx, keyOf(at, name))
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		earlier := &applied{}
		return earlier, json.Unmarshal(v.JSON, earlier)
	}
	return nil, nil
}

// apply runs operations one after another.
func apply(ctx context.Context, store *lineage.Store, c *call, all []operation) ([]made, error) {
	w := &within{store: store, caller: c.caller, outside: c.a.o.Store, outer: c.r.Context(), made: make([]made, 0, len(all))}
	for i, op := range all {
		m, err := op.do(ctx, w)
		if err != nil && len(all) > 1 {
			err = &operationError{i, err}
		}
		if err != nil {
			return nil, err
		}
		w.made = append(w.made, m)
	}
	return w.made, nil
}

// keyName returns a name for a key of a caller. Two callers may use the same key.
func (c *call) keyName(key string) string {
	return sum(c.caller.ID, key)
}

// request returns a hash of the request.
func (c *call) request() string {
	return sum(c.r.Method, c.r.URL.EscapedPath(), c.r.URL.Query().Encode(), c.r.Header.Get("If-Match"), string(c.body))
}
