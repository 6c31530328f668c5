package postgres

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// load is writers that know what they were told of each commit: a thread of its own.
type load struct {
	engines []*Engine
	done    atomic.Int64 // commits that were acknowledged
	mu      sync.Mutex
	full    map[string]bool // acknowledged
	normal  map[string]bool
	unknown map[string]bool
}

// writers is how many write at the same time.
const writers = 6

func newLoad(engines ...*Engine) *load {
	return &load{engines: engines, full: make(map[string]bool), normal: make(map[string]bool), unknown: make(map[string]bool)}
}

// write makes so many commits in each writer, a third of normal durability.
func (l *load) write(commits int) {
	parallel(writers, func(i int) {
		for range commits {
			l.writeOne(i)
		}
	})
}

// writeUntil makes commits until a channel is closed.
func (l *load) writeUntil(enough <-chan struct{}) {
	parallel(writers, func(i int) {
		for {
			select {
			case <-enough:
				return
			default:
				l.writeOne(i)
			}
		}
	})
}

func (l *load) writeOne(i int) {
	id, commit := threadCommit()
	told, d := l.full, backend.Full
	if i%3 == 0 {
		told, d = l.normal, backend.Normal
	}
	_, err := l.engines[i%len(l.engines)].Apply(background, commit, backend.Options{Durability: d})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		told[id.String()] = true
		l.done.Add(1)
	case errors.Is(err, backend.ErrUncertain):
		l.unknown[id.String()] = true
	}
}

// check counts effects, as a witness sees them: what was acknowledged is there once, unless the
// server stopped and it was of normal durability; what is not known at most once, and what was
// refused not at all. The writers' engines go on without being opened again, and see the same.
func (l *load) check(t *testing.T, witness *Engine, stopped bool) {
	t.Helper()
	require.NotEmpty(t, l.full)
	seen := make(map[string]int)
	for c, err := range witness.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		for _, r := range c.Records {
			seen[fmt.Sprint(subject(r))]++
		}
	}
	for id, n := range seen {
		require.Equal(t, 1, n, "a commit was applied twice")
		require.True(t, l.full[id] || l.normal[id] || l.unknown[id], "a commit that was refused is there")
	}
	for id := range l.full {
		require.Equal(t, 1, seen[id], "an acknowledged commit is gone")
	}
	for id := range l.normal {
		require.True(t, stopped || seen[id] == 1, "an acknowledged commit is gone")
	}
	for _, e := range l.engines {
		id, _ := createThread(t, e, backend.Full)
		l.full[id.String()] = true
	}
	want := history(t, witness)
	for _, e := range l.engines {
		require.Equal(t, want, history(t, e))
	}
	requireSound(t, witness)
}
