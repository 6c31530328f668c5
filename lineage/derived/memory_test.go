package derived_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// memory is derived data in memory: a row for each thread, context, content and owner of values, and for each span
// that was added.
type memory struct {
	mu   sync.Mutex
	mark derived.Mark
	rows map[string]string
}

// transaction is a copy that replaces the data if nobody else has.
type transaction struct {
	mark derived.Mark
	rows map[string]string
}

// handle is one of several users of the data.
type handle struct {
	*memory
	t     require.TestingT
	limit int
	// at is called between any two steps. Its error ends the process.
	at func(step string) error
}

func (h *handle) step(name string) error {
	if h.at == nil {
		return nil
	}
	return h.at(name)
}

func (h *handle) Mark(context.Context) (derived.Mark, error) {
	err := h.step("mark")
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mark, err
}

func (h *handle) begin() (*transaction, derived.Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &transaction{h.mark, maps.Clone(h.rows)}, h.mark
}

func (h *handle) commit(tx *transaction, was derived.Mark) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mark != was {
		return false
	}
	require.GreaterOrEqual(h.t, tx.mark.At.Number, was.At.Number)
	require.GreaterOrEqual(h.t, tx.mark.Seen.Number, was.Seen.Number)
	require.LessOrEqual(h.t, tx.mark.At.Number, tx.mark.Seen.Number)
	require.Equal(h.t, was.Version+1, tx.mark.Version)
	h.mark, h.rows = tx.mark, tx.rows
	return true
}

// Write runs the function again if another transaction was committed meanwhile.
func (h *handle) Write(ctx context.Context, do func(tx *transaction) error) error {
	for ctx.Err() == nil {
		if err := h.step("begin"); err != nil {
			return err
		}
		tx, was := h.begin()
		if err := do(tx); err != nil {
			return err
		}
		if err := h.step("commit"); err != nil {
			return err
		}
		if h.commit(tx, was) {
			return h.step("committed")
		}
	}
	return ctx.Err()
}

func (h *handle) Swap(_ context.Context, tx *transaction, was, now derived.Mark) (bool, error) {
	if tx.mark != was {
		return false, nil
	}
	tx.mark = now
	return true, h.step("swapped")
}

// put returns a change of rows.
func put(key, row string) func(*transaction) error {
	return func(tx *transaction) error {
		if tx.rows == nil {
			tx.rows = make(map[string]string)
		}
		if tx.rows[key] = row; row == "" {
			delete(tx.rows, key)
		}
		return nil
	}
}

// Apply writes each kind of subject in a transaction.
func (h *handle) Apply(ctx context.Context, w *derived.Window[*transaction]) error {
	if err := h.step("apply"); err != nil {
		return err
	}
	if w.Prune {
		return h.prune(ctx, w)
	}
	if h.limit > 0 {
		require.Less(h.t, len(w.Changes.Threads)+len(w.Changes.Contexts)+len(w.Changes.Runs), h.limit+10)
	}
	var all []func(*transaction) error
	wrote := false
	flush := func() error {
		some := all
		all = nil
		err := w.Write(ctx, func(tx *transaction) error {
			if w.Fresh && w.From.Number == 0 && !wrote {
				require.Empty(h.t, tx.rows)
			}
			for _, change := range some {
				if err := change(tx); err != nil {
					return err
				}
			}
			return nil
		})
		wrote = true
		return err
	}
	add := func(key, row string, err error) error {
		if errors.Is(err, lineage.ErrNotFound) {
			err = nil
		}
		all = append(all, put(key, row))
		return err
	}
	threads := maps.Clone(w.Changes.Threads)
	for _, names := range []map[derived.Name]bool{w.Changes.Branches, w.Changes.Checkpoints} {
		for name := range names {
			threads[name.Thread] = w.Changes.Threads[name.Thread]
		}
	}
	for id, change := range threads {
		if change.Deleted {
			all = append(all, deleteContexts(id))
		}
		if err := add(threadRow(ctx, w.State, id)); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for id := range w.Changes.Contexts {
		if err := add(contextRow(ctx, w.State, id)); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for _, c := range w.Commits {
		for _, r := range c.Records {
			if s, ok := r.(*structure.Span); ok {
				all = append(all, put("span "+s.Ref.String(), s.Usages[0].Content.String()))
				run := w.Changes.Runs[s.Ref.Run]
				require.LessOrEqual(h.t, run.First, s.Ref.Seq)
				require.GreaterOrEqual(h.t, run.Last, s.Ref.Seq)
			}
		}
	}
	for _, id := range slices.AppendSeq(w.Changes.Stored, maps.Keys(w.Changes.Erased)) {
		if err := add(contentRow(ctx, w.State, id)); err != nil {
			return err
		}
	}
	for owner := range w.Changes.Values {
		if err := add(valuesRow(ctx, w.State, owner)); err != nil {
			return err
		}
	}
	last := all
	return w.Finish(ctx, func(tx *transaction) error {
		for _, change := range last {
			if err := change(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// prune deletes spans and content that the state does not have.
func (h *handle) prune(ctx context.Context, w *derived.Window[*transaction]) error {
	require.Zero(h.t, w.From.Number-w.To.Number)
	return w.Finish(ctx, func(tx *transaction) (err error) {
		maps.DeleteFunc(tx.rows, func(key, _ string) bool {
			name, isSpan := strings.CutPrefix(key, "span ")
			id, isContent := strings.CutPrefix(key, "content ")
			switch {
			case isSpan:
				ref, parseErr := structure.ParseSpanRef(name)
				last, lastErr := w.State.Last(ctx, ref.Run)
				if !errors.Is(lastErr, lineage.ErrNotFound) {
					err = errors.Join(err, parseErr, lastErr)
				}
				return last.Seq < ref.Seq
			case isContent:
				parsed, parseErr := content.ParseID(id)
				has, hasErr := w.State.Has(ctx, []content.ID{parsed})
				err = errors.Join(err, parseErr, hasErr)
				return hasErr == nil && !has[0]
			}
			return false
		})
		return err
	})
}

// deleteContexts deletes the rows of the contexts of a thread.
func deleteContexts(thread structure.ThreadID) func(*transaction) error {
	return func(tx *transaction) error {
		maps.DeleteFunc(tx.rows, func(key, row string) bool {
			return strings.HasPrefix(key, "context ") && strings.HasPrefix(row, thread.String()+" ")
		})
		return nil
	}
}

func threadRow(ctx context.Context, state backend.Reader, id structure.ThreadID) (key, row string, err error) {
	key = "thread " + id.String()
	t, err := state.Thread(ctx, id)
	if err != nil {
		return key, "", err
	}
	row = fmt.Sprint(t.UserID, t.Keeps, t.Incarnation)
	for b, err := range state.Branches(ctx, id, "", "") {
		if err != nil {
			return key, "", err
		}
		row += " " + b.Name + "=" + b.Context.String()
	}
	for c, err := range state.Checkpoints(ctx, id, "") {
		if err != nil {
			return key, "", err
		}
		row += " " + c.Name + "@" + c.Span.String()
	}
	return key, row, nil
}

func contextRow(ctx context.Context, state backend.Reader, id structure.ContextID) (key, row string, err error) {
	key = "context " + id.String()
	c, err := state.Context(ctx, id)
	if err != nil {
		return key, "", err
	}
	row = fmt.Sprint(c.Thread, c.Parent, c.Tip)
	for s, err := range state.Summaries(ctx, id) {
		if err != nil {
			return key, "", err
		}
		row += " " + s.ID.String()
	}
	return key, row, nil
}

func contentRow(ctx context.Context, state backend.Reader, id content.ID) (key, row string, err error) {
	has, err := state.Has(ctx, []content.ID{id})
	if err == nil && has[0] {
		row = "stored"
	}
	return "content " + id.String(), row, err
}

func valuesRow(ctx context.Context, state backend.Reader, owner structure.Owner) (key, row string, err error) {
	for v, err := range state.Values(ctx, owner, "", "") {
		if err != nil {
			return "", "", err
		}
		if !v.Deleted() {
			row += fmt.Sprintf(" %s=%s", v.Key, v.JSON)
		}
	}
	return "values " + owner.String(), row, nil
}

// requireDerived compares the data with what follows from the state of the store. Rows of what a collection removed
// may be there: spans that no context sees, and content that nothing uses.
func requireDerived(t require.TestingT, store *lineage.Store, rows map[string]string) {
	view := store.View()
	want := make(map[string]string)
	add := func(key, row string, err error) {
		require.NoError(t, err)
		if want[key] = row; row == "" {
			delete(want, key)
		}
	}
	owners := []structure.Owner{{Scope: structure.StoreScope}}
	for th, err := range view.Threads(bg, structure.ThreadID{}) {
		require.NoError(t, err)
		add(threadRow(bg, view, th.ID))
	}
	for c, err := range view.Contexts(bg, structure.ThreadID{}, structure.ContextID{}) {
		require.NoError(t, err)
		add(contextRow(bg, view, c.ID))
		for step, err := range view.Path(bg, c.Tip, structure.Window{}, backend.PathOptions{}) {
			require.NoError(t, err)
			for _, u := range step.Span.Usages {
				want["span "+step.Span.Ref.String()] = u.Content.String()
				add(contentRow(bg, view, u.Content))
			}
		}
	}
	for _, owner := range owners {
		add(valuesRow(bg, view, owner))
	}
	got := maps.Clone(rows)
	maps.DeleteFunc(got, func(key, row string) bool {
		_, ok := want[key]
		return !ok && unused(key, row)
	})
	require.Equal(t, lines(want), lines(got))
}

// unused reports whether a row may be of what a collection removed.
func unused(key, row string) bool { return strings.HasPrefix(key, "span") || row == "stored" }

func lines(rows map[string]string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, key+": "+rows[key])
	}
	return all
}
