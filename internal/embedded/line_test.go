package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// gatedFS calls onSync before each Sync of a file.
type gatedFS struct {
	vfs.FS
	onSync func()
}

type gatedFile struct {
	vfs.File
	onSync func()
}

func (g gatedFS) Create(name string) (vfs.File, error) {
	f, err := g.FS.Create(name)
	return gatedFile{f, g.onSync}, err
}

func (g gatedFile) Sync() error {
	g.onSync()
	return g.File.Sync()
}

// Commits that arrive during a sync are written together after it, and share one sync.
func TestCommitsGatherDuringASync(t *testing.T) {
	const writers = 16
	var syncs atomic.Int64
	var gated atomic.Bool
	entered, gate := make(chan struct{}), make(chan struct{})
	e, err := Open(background, t.TempDir(), Options{FS: gatedFS{vfs.OS(), func() {
		syncs.Add(1)
		if gated.CompareAndSwap(true, false) {
			close(entered)
			<-gate
		}
	}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	talkers := make([]*talker, 1+writers)
	for i := range talkers {
		talkers[i] = newTalker()
		require.NoError(t, talkers[i].say(e, backend.Full))
	}

	before, head := syncs.Load(), e.index.Number()
	gated.Store(true)
	var said sync.WaitGroup
	say := func(k *talker) {
		said.Go(func() {
			if err := k.say(e, backend.Full); err != nil {
				t.Error(err)
			}
		})
	}
	say(talkers[0])
	<-entered
	for _, k := range talkers[1:] {
		say(k)
	}
	require.Eventually(t, func() bool {
		e.queue.mu.Lock()
		defer e.queue.mu.Unlock()
		return e.queue.gathering != nil && len(e.queue.gathering.waiting) == writers
	}, 2*time.Minute, time.Millisecond, "all gather")
	require.Equal(t, head+1, e.index.Number(), "nothing is written during the sync")
	close(gate)
	said.Wait()
	require.Equal(t, head+1+writers, e.index.Number())
	require.Equal(t, before+2, syncs.Load(), "one for the first, one for all others")
	require.Equal(t, e.index.Number(), e.journal.Durable())
}

// panicking is a context whose Err works a given number of times and then panics.
type panicking struct {
	context.Context
	looks atomic.Int32
}

func (p *panicking) Err() error {
	if p.looks.Add(-1) < 0 {
		panic("called once too often")
	}
	return nil
}

// A panic in a commit under the lock is raised in the caller of that commit. No other
// commit blocks: later ones get an error. The store can be read and closed, and has all
// acknowledged commits when it is opened again.
func TestPanicInACommit(t *testing.T) {
	for _, durability := range []backend.Durability{backend.Normal, backend.Full} {
		t.Run(fmt.Sprint(durability), func(t *testing.T) {
			dir := t.TempDir()
			e, err := Open(background, dir, Options{})
			require.NoError(t, err)
			talkers := make([]*talker, 8)
			for i := range talkers {
				talkers[i] = newTalker()
				require.NoError(t, talkers[i].say(e, durability))
			}
			var stop atomic.Bool
			var writers sync.WaitGroup
			for i := range talkers {
				writers.Go(func() {
					for !stop.Load() {
						if err := talkers[i].say(e, durability); err != nil {
							if !errors.Is(err, backend.ErrReadOnly) {
								t.Error(err)
							}
							return
						}
					}
				})
			}
			many := &structure.Commit{}
			for range 2_000 {
				many.Records = append(many.Records, &structure.Thread{ID: structure.NewID[structure.ThreadID]()})
			}
			ctx := &panicking{Context: background}
			ctx.looks.Store(1)
			func() {
				defer func() {
					p, ok := recover().(*panicked)
					require.True(t, ok)
					require.ErrorContains(t, p, "called once too often")
					require.ErrorContains(t, p, "(*Judge).Judge", "the stack is kept")
				}()
				_, _ = e.Apply(ctx, many, backend.Options{Durability: durability})
			}()
			writers.Wait() // each ends with an error
			stop.Store(true)
			require.ErrorIs(t, talkers[0].say(e, durability), backend.ErrReadOnly)
			for i := range talkers {
				_, err := e.Context(background, talkers[i].context)
				require.NoError(t, err)
			}
			require.NoError(t, e.Close())

			e, err = Open(background, dir, Options{})
			require.NoError(t, err)
			defer e.Close()
			for i := range talkers {
				c, err := e.Context(background, talkers[i].context)
				require.NoError(t, err)
				require.GreaterOrEqual(t, c.Tip.Seq, talkers[i].said)
				talkers[i].said = c.Tip.Seq
				require.NoError(t, talkers[i].say(e, durability))
			}
			requireSound(t, e)
		})
	}
}
