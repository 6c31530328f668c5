package embedded

import (
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

// Whoever comes while a sync runs waits for its end with all others that do, and has
// nothing written before: one sync is for all of them.
func TestCommitsGatherDuringASync(t *testing.T) {
	const writers = 16
	var syncs atomic.Int64
	var gated atomic.Bool
	entered, gate := make(chan struct{}), make(chan struct{})
	e, err := Open(background, t.TempDir(), &Options{FS: gatedFS{vfs.OS(), func() {
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
		talkers[i] = &talker{context: structure.NewID[structure.ContextID](), run: structure.NewID[structure.RunID]()}
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
		e.line.mu.Lock()
		defer e.line.mu.Unlock()
		return e.line.gathering != nil && len(e.line.gathering.waiting) == writers
	}, time.Minute, time.Millisecond, "all gather")
	require.Equal(t, head+1, e.index.Number(), "nothing is written while the sync runs")
	close(gate)
	said.Wait()
	require.Equal(t, head+1+writers, e.index.Number())
	require.Equal(t, before+2, syncs.Load(), "one for the first, one for all others")
	require.Equal(t, e.index.Number(), e.journal.Durable())
}
