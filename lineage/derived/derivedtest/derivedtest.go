// Package derivedtest is the conformance suite for derived data: whichever handles update it, wherever they are
// interrupted, and whatever happens to the store meanwhile, the result equals data that is derived in one pass.
package derivedtest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
)

// Data is derived data at one place.
type Data interface {
	// Open opens a handle on the data, for a store, with the smallest possible windows and transactions. written is
	// called after each transaction, except possibly the last of a pass.
	Open(t require.TestingT, store *lineage.Store, written func()) Handle
	// Rows returns the data that depends on the state of the store, in a fixed order.
	Rows(t require.TestingT) []string
	// Number returns the number of the last commit in the data.
	Number(t require.TestingT) int
}

// Handle updates derived data.
type Handle interface {
	Update(ctx context.Context) error
	Close() error
}

// Pruned is data that can be pruned.
type Pruned interface {
	Data
	// Prune brings the data up to date and removes what the store no longer has.
	Prune(t require.TestingT, store *lineage.Store)
	// Whole returns all of the data, also what nothing sees, in a fixed order.
	Whole(t require.TestingT) []string
}

// Config describes the derived data.
type Config struct {
	// New returns a place for new data, which may be Pruned.
	New func(t testing.TB) Data
	// Rebuilds is set if data of another store or history is rebuilt. Otherwise it is refused.
	Rebuilds bool
	// Checks is the number of random histories.
	Checks int
}

// Run runs all tests.
func Run(t *testing.T, c Config) {
	t.Run("Interleaved", c.testInterleaved)
	t.Run("OtherHistories", c.testOtherHistories)
}

// testInterleaved runs two handles. Each may run between a snapshot and its use, or between any two transactions of
// the other. The store changes there too, and updates are interrupted.
func (c *Config) testInterleaved(t *testing.T) {
	defer campaign.Checks(c.Checks)()
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		m, data, at := &Machine{r, store}, c.New(t), 0
		pruned, prunes := data.(Pruned)
		var handles [2]Handle
		var hooks [2]func()
		running := [2]bool{}
		interrupt := func() {}
		var update func(i int)
		between := func(i int) {
			switch rapid.IntRange(0, 6).Draw(r, "between") {
			case 0, 1:
				m.Change()
			case 2:
				if !running[1-i] {
					update(1 - i)
				}
			case 3:
				interrupt()
			case 4:
				if prunes {
					pruned.Prune(r, store)
				}
			}
			now := data.Number(r)
			require.GreaterOrEqual(r, now, at, "the data goes back")
			at = now
		}
		update = func(i int) {
			running[i] = true
			defer func() { running[i] = false }()
			ctx, cancel := context.WithCancel(bg)
			was := interrupt
			interrupt = cancel
			defer func() { interrupt = was; cancel() }()
			hooks[i]()
			if err := handles[i].Update(ctx); err != nil {
				require.ErrorIs(r, err, context.Canceled)
			}
		}
		for i := range handles {
			l, late := NewLate(store)
			hooks[i] = func() { l.Snapshotted, l.Asked = func() { between(i) }, func() { between(i) } }
			handles[i] = data.Open(r, late, func() { between(i) })
			defer func() { require.NoError(r, handles[i].Close()) }()
		}
		for range rapid.IntRange(1, 10).Draw(r, "rounds") {
			for range rapid.IntRange(0, 6).Draw(r, "changes") {
				m.Change()
			}
			update(rapid.IntRange(0, 1).Draw(r, "handle"))
		}
		last := data.Open(r, store, func() {})
		defer func() { require.NoError(r, last.Close()) }()
		require.NoError(r, last.Update(bg))
		require.Equal(r, c.rowsOf(t, r, store), data.Rows(r))
		if prunes {
			m.must(m.collect())
			pruned.Prune(r, store)
			require.Equal(r, c.wholeOf(t, r, store), pruned.Whole(r))
			require.NoError(r, last.Update(bg))
			require.Equal(r, c.wholeOf(t, r, store), pruned.Whole(r))
		}
	})
}

// wholeOf is rowsOf for all of the data.
func (c *Config) wholeOf(t testing.TB, r require.TestingT, store *lineage.Store) []string {
	data := c.New(t).(Pruned)
	h := data.Open(r, store, func() {})
	require.NoError(r, h.Update(bg))
	require.NoError(r, h.Close())
	return data.Whole(r)
}

// rowsOf returns the rows of data that is derived in one pass.
func (c *Config) rowsOf(t testing.TB, r require.TestingT, store *lineage.Store) []string {
	data := c.New(t)
	h := data.Open(r, store, func() {})
	require.NoError(r, h.Update(bg))
	require.NoError(r, h.Close())
	return data.Rows(r)
}

// testOtherHistories updates data with another store, and with a backup that was continued differently: to a shorter,
// equal or longer history than the data has seen. The data is complete, or was interrupted.
func (c *Config) testOtherHistories(t *testing.T) {
	for _, complete := range []bool{true, false} {
		dir := t.TempDir()
		open := func(name string) *lineage.Store {
			store, err := lineage.Open(bg, filepath.Join(dir, name), lineage.Options{Durability: lineage.Normal})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			return store
		}
		store, data := open("store"), c.New(t)
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ann"})
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		say := func(in *lineage.Store, text string) {
			c, err := in.Context(bg, main.ID())
			require.NoError(t, err)
			_, err = c.Extend(bg, lineage.User(text))
			require.NoError(t, err)
		}
		say(store, "both have it")
		ctx, interrupt := context.WithCancel(bg)
		defer interrupt()
		written := func() {}
		h := data.Open(t, store, func() { written() })
		defer func() { require.NoError(t, h.Close()) }()
		require.NoError(t, h.Update(ctx))
		_, err = store.Backup(bg, filepath.Join(dir, "backup"), lineage.BackupOptions{})
		require.NoError(t, err)
		for range 3 {
			say(store, "only the original has it")
		}
		if complete {
			require.NoError(t, h.Update(ctx))
		} else {
			written = interrupt
			require.ErrorIs(t, h.Update(ctx), context.Canceled)
			written = func() {}
		}
		_, err = lineage.Restore(bg, filepath.Join(dir, "backup"), filepath.Join(dir, "restored"), lineage.RestoreOptions{})
		require.NoError(t, err)
		restored, other := open("restored"), open("other")
		for range 5 {
			was := data.Rows(t)
			for _, reopened := range []*lineage.Store{other, restored} {
				o := data.Open(t, reopened, func() {})
				err := o.Update(bg)
				require.NoError(t, o.Close())
				if c.Rebuilds {
					require.NoError(t, err)
					require.Equal(t, c.rowsOf(t, t, reopened), data.Rows(t))
					continue
				}
				want := lineage.ErrDiverged
				if reopened == other {
					want = derived.ErrOtherStore
				}
				require.ErrorIs(t, err, want)
				require.Equal(t, was, data.Rows(t), "nothing was changed")
			}
			say(restored, "only the copy has it")
		}
		require.NoError(t, h.Update(bg))
		require.Equal(t, c.rowsOf(t, t, store), data.Rows(t))
	}
}
