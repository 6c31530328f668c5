package embedded

import (
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A reader that sees the number of a commit sees its changes to contexts.
func TestReadersSeeContextsOfHead(t *testing.T) {
	commits := uint64(campaign.Rounds(10_000))
	e, err := Open(background, t.TempDir(), Options{Durability: backend.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	k := newTalker()
	require.NoError(t, k.say(e, backend.Normal))
	var talking sync.WaitGroup
	talking.Go(func() {
		for range commits {
			if err := k.say(e, backend.Normal); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer talking.Wait()
	for seen := uint64(0); seen < commits && !t.Failed(); {
		head, err := e.Head(background)
		require.NoError(t, err)
		n := head.Number
		if n == seen {
			runtime.Gosched()
			continue
		}
		seen = n
		c, err := e.Context(background, k.context)
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.Moved, n)
	}
}

// onListFS calls the function that do points to at the first List.
type onListFS struct {
	vfs.FS
	do *func()
}

func (l onListFS) List(dir string) ([]string, error) {
	if do := *l.do; do != nil {
		*l.do = nil
		do()
	}
	return l.FS.List(dir)
}

// Ids that another engine of this process stored while the store was being opened are
// not taken for new ones.
func TestIDsStoredWhileOpeningAreKnown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	first, err := Open(background, dir, Options{})
	require.NoError(t, err)
	var k talker
	do := func() {
		k = *newTalker()
		require.NoError(t, k.say(first, backend.Full))
		require.NoError(t, first.Close())
	}
	e, err := Open(background, dir, Options{FS: onListFS{vfs.OS(), &do}})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Run{ID: k.run}}}, backend.Options{})
	require.ErrorIs(t, err, backend.ErrExists)
	c, err := e.Context(background, k.context)
	require.NoError(t, err)
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{&c.Context}}, backend.Options{})
	require.NoError(t, err)
	stats, err := e.Stats(background)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Contexts)
}

// A context that is deleted during a read is returned in its last state or not at all.
func TestContextReadWhileDeleted(t *testing.T) {
	e, err := Open(background, t.TempDir(), Options{Durability: backend.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for range 3_000 {
		k := newTalker()
		require.NoError(t, k.say(e, backend.Normal))
		require.NoError(t, k.say(e, backend.Normal))
		e.write.Lock()
		e.cache.Forget() // so that it is looked up
		e.write.Unlock()
		var deleting sync.WaitGroup
		deleting.Go(func() {
			_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{
				&structure.Deletion{Subject: structure.KindContext, Context: k.context},
			}}, backend.Options{})
			if err != nil {
				t.Error(err)
			}
		})
		c, err := e.Context(background, k.context)
		if err == nil {
			require.Equal(t, structure.SpanRef{Run: k.run, Seq: 2}, c.Tip)
		} else {
			require.ErrorIs(t, err, backend.ErrNotFound)
		}
		deleting.Wait()
	}
}
