package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/problem"
)

// operation is a change. It looks up what it changes through w, inside the transaction, and returns what it made.
type operation interface {
	do(ctx context.Context, w *within) (made, error)
}

// alone is implemented by operations that can also run without a transaction, in one commit.
type alone interface{ alone() }

// made is what an operation made. It contains only ids and no text. It is stored for repeated requests, and must not
// preserve what is erased or deleted later.
type made struct {
	Thread     string `json:"thread,omitempty"`
	Context    string `json:"context,omitempty"`
	Branch     bool   `json:"branch,omitempty"`     // the answer is the branch that the context is
	Checkpoint string `json:"checkpoint,omitempty"` // the id of a checkpoint of the thread
	Summary    string `json:"summary,omitempty"`
	// Contexts are alternatives.
	Contexts []string          `json:"contexts,omitempty"`
	Appended *records.Appended `json:"appended,omitempty"`
	Moved    *records.Moved    `json:"moved,omitempty"`
	Merged   *records.Merged   `json:"merged,omitempty"`
	Sent     *records.Sent     `json:"sent,omitempty"`
	Value    *valueOf          `json:"value,omitempty"`
	// branch is the name of the branch that was extended or moved. It is set if the answer is made immediately.
	branch *string
	// Found is set if nothing was created because it existed already.
	Found bool `json:"found,omitempty"`
}

const (
	// keysOf is the application whose values are the keys of applied requests.
	keysOf = "lineage/idempotency"
	// maxKey is the maximum size of a key in bytes.
	maxKey = 255
	day    = 24 * time.Hour
)

// applied is the value of a key: a hash of the request that used it, and what the request made.
type applied struct {
	Request string `json:"request"`
	Made    []made `json:"made"`
}

// commit applies operations as one commit. With a key they are applied once, even if others apply them at the same
// time.
func (a *API) commit(c *call, all []operation) (done []made, _ error) {
	ctx := c.r.Context()
	keys := c.r.Header.Values("Idempotency-Key")
	if len(keys) > 1 || len(keys) == 1 && (keys[0] == "" || len(keys[0]) > maxKey) {
		return nil, fmt.Errorf("key: %w: a request has one of 1 to %d bytes", lineage.ErrInvalid, maxKey)
	}
	if len(keys) == 0 && len(all) == 1 {
		if _, is := all[0].(alone); is {
			w := &within{store: a.o.Store, caller: c.caller, handles: &a.handles}
			m, err := all[0].do(ctx, w)
			return []made{m}, err
		}
	}
	if len(keys) == 0 {
		err := a.o.Store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
			done, err = apply(ctx, tx.Store, c, all)
			return err
		})
		return done, err
	}
	name, request := c.keyName(keys[0]), c.request()
	today := a.o.now().UTC()
	a.keys.sweep(ctx, a, today)
	replayed := false
	err := a.o.Store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		values := tx.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: keysOf})
		// The clocks of two servers may differ, and midnight may be near.
		for _, at := range []time.Time{today, today.Add(-day), today.Add(day)} {
			v, err := values.Get(ctx, keyOf(at, name))
			if errors.Is(err, lineage.ErrNotFound) {
				continue
			}
			var was applied
			if err == nil {
				err = json.Unmarshal(v.JSON, &was)
			}
			if err != nil {
				return fmt.Errorf("key %s: %w", name, err)
			}
			if was.Request != request {
				return problem.New(http.StatusUnprocessableEntity, "key used", "the key was used for another request")
			}
			done, replayed = was.Made, true
			return nil
		}
		replayed = false
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

// position returns a name for the position that an operation made: its last message, else the context.
func (m *made) position() (string, error) {
	switch {
	case m.Appended != nil:
		return m.Appended.Tip, nil
	case m.Sent != nil:
		return m.Sent.ID, nil
	case m.Moved != nil:
		return m.Moved.Context, nil
	case m.Context != "":
		return m.Context, nil
	}
	return "", fmt.Errorf("%w: the operation made no position", lineage.ErrInvalid)
}

// context returns the context that an operation made or changed.
func (m *made) context() (string, error) {
	switch {
	case m.Appended != nil:
		return m.Appended.Context, nil
	case m.Moved != nil:
		return m.Moved.Context, nil
	case m.Context != "":
		return m.Context, nil
	}
	return "", fmt.Errorf("%w: the operation made no context", lineage.ErrInvalid)
}

// apply runs operations one after another.
func apply(ctx context.Context, store *lineage.Store, c *call, all []operation) ([]made, error) {
	w := &within{store: store, caller: c.caller, outside: c.a.o.Store, outer: c.r.Context(), made: make([]made, 0, len(all))}
	for i, op := range all {
		m, err := op.do(ctx, w)
		if err != nil && len(all) > 1 {
			err = fmt.Errorf("operation %d: %w", i, err)
		}
		if err != nil {
			return nil, err
		}
		w.made = append(w.made, m)
	}
	return w.made, nil
}

// keyOf returns the name of a key's value, for a key that was used on a day.
func keyOf(at time.Time, name string) string { return at.Format(time.DateOnly) + "/" + name }

// keyName returns a name for a key of a caller. Two callers may use the same key.
func (c *call) keyName(key string) string {
	return sum(c.caller.ID, key)
}

// request returns a hash of the request.
func (c *call) request() string {
	return sum(c.r.Method, c.r.URL.EscapedPath(), c.r.URL.Query().Encode(), c.r.Header.Get("If-Match"), string(c.body))
}

// sum hashes texts. Their lengths are included, so that they cannot run into each other.
func sum(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// keeper deletes keys of past days.
type keeper struct {
	mu    sync.Mutex
	swept string // the last day on which it finished
	after string // the last deleted key; earlier ones are not examined again
}

// maxSwept limits the keys that are deleted at once.
const maxSwept = 1000

// sweep deletes old keys, once a day. After a failure, the next request tries again.
func (k *keeper) sweep(ctx context.Context, a *API, today time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := today.Format(time.DateOnly)
	if k.swept == now {
		return
	}
	first := today.Add(-day).Format(time.DateOnly) // the first day that is still looked up
	owner := lineage.Owner{Scope: lineage.ApplicationScope, Name: keysOf}
	next, _, err := a.o.Store.Values(owner).DeleteRange(ctx, k.after, first, maxSwept) // keys are ordered by day
	switch {
	case err != nil:
	case next != "":
		k.after = next
	default:
		k.after, k.swept = first, now
	}
}

// record returns the current record of what an operation made, nil for nothing. A caller may repeat a request. If the
// caller may not see the thing any more, the error is ErrNotFound.
func (w *within) record(ctx context.Context, m *made) (records.Record, error) {
	switch {
	case m.Appended != nil:
		r := *m.Appended
		if m.branch != nil {
			r.Branch = *m.branch
			return &r, nil
		}
		var err error
		r.Branch, err = w.branchName(ctx, r.Context)
		return &r, err
	case m.Moved != nil:
		r := *m.Moved
		var err error
		r.Branch, err = w.branchName(ctx, r.Context)
		return &r, err
	case m.Merged != nil:
		return m.Merged, w.maySee(ctx, m.Merged.Target, m.Merged.Source)
	case m.Sent != nil:
		return m.Sent, w.maySee(ctx, m.Sent.From, m.Sent.To)
	case m.Value != nil:
		return w.valueRecord(ctx, m.Value)
	case m.Checkpoint != "":
		return w.checkpointRecord(ctx, m)
	case m.Summary != "":
		return w.summaryRecord(ctx, m)
	case m.Branch:
		return w.branchRecord(ctx, m)
	case m.Context != "":
		c, err := w.contextByID(ctx, m.Context)
		if err != nil {
			return nil, err
		}
		return records.OfContext(ctx, w.store, c.Context)
	case m.Thread != "":
		t, err := w.thread(ctx, m.Thread)
		if err != nil {
			return nil, err
		}
		return w.threadRecord(ctx, t)
	}
	return nil, nil
}

// branchName returns the current branch name of a context, empty for none.
func (w *within) branchName(ctx context.Context, id string) (string, error) {
	in, err := w.contextByID(ctx, id)
	if isGone(err) && w.caller.Scope.All() {
		return "", nil // deleted since
	}
	if err != nil {
		return "", err
	}
	return in.Branch, nil
}

// maySee returns ErrNotFound if the caller may not see one of these contexts.
func (w *within) maySee(ctx context.Context, contexts ...string) error {
	for _, id := range contexts {
		if _, err := w.branchName(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// sendMade answers with what an operation made.
func (c *call) sendMade(status int, m *made) error {
	if m.Contexts != nil {
		l, err := c.offered(c.r.Context(), m)
		if err != nil {
			return err
		}
		return c.send(status, l)
	}
	r, err := c.record(c.r.Context(), m)
	if err != nil {
		return err
	}
	if r == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if m.Found {
		status = http.StatusOK
	}
	if m.Appended != nil {
		c.w.Header().Set("Lineage-Tip", m.Appended.Tip)
	}
	return c.send(status, r)
}

// isGone reports whether an error says that something does not exist any more.
func isGone(err error) bool { return errors.Is(err, lineage.ErrNotFound) }
