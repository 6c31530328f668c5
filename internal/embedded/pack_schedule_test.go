package embedded

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// fillTo stores incompressible content until segments have so many bytes.
func fillTo(t *testing.T, e *Engine, random *rand.ChaCha8, bytes int) {
	t.Helper()
	const each = content.InlineLimit
	body := make([]byte, each)
	for done := 0; done < bytes; done += each {
		random.Read(body)
		b := &structure.Block{Block: content.Block{ID: content.Sum(body), Type: content.TypeText, Size: each}, Body: body}
		_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{b}}, backend.Options{Durability: backend.Normal})
		require.NoError(t, err)
	}
}

func newRandom(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// enough is the size at which packing starts in these tests.
const enough = 64 << 10

// waitUntilPacked returns when less than that is unpacked.
func waitUntilPacked(t *testing.T, e *Engine) {
	t.Helper()
	require.Eventually(t, func() bool { return e.schedule.waiting() < enough }, 5*time.Minute, time.Millisecond)
}

// Segments that were sealed but not packed before a store was closed are packed after it
// is opened, without any write.
func TestLeftoverSegmentsArePacked(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(background, dir, Options{SegmentSize: 16 << 10, NoPacking: true, packBytes: enough})
	require.NoError(t, err)
	fillTo(t, e, newRandom(1), enough+32<<10)
	require.NoError(t, e.Close())

	synctest.Test(t, func(t *testing.T) { // packing may not begin before it is looked at
		e, err := Open(background, dir, Options{SegmentSize: 16 << 10, packBytes: enough})
		require.NoError(t, err)
		require.GreaterOrEqual(t, e.schedule.waiting(), int64(enough))
		waitUntilPacked(t, e)
		require.NoError(t, e.Close())
	})
}

// Segments of a store that is being written wait until it is quiet. Closing does not wait for them.
func TestSegmentsOfABusyStoreWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const some = quietBytes + 256<<10
		o := Options{SegmentSize: 128 << 10, packBytes: quietBytes, packQuiet: time.Hour}
		e, err := Open(background, t.TempDir(), o)
		require.NoError(t, err)
		random := newRandom(3)
		waits := func() {
			t.Helper()
			synctest.Wait() // all goroutines wait, so nothing is being packed
			require.GreaterOrEqual(t, e.schedule.waiting(), o.packBytes)
		}
		fillTo(t, e, random, some)
		waits()
		time.Sleep(o.packQuiet - time.Second)
		fillTo(t, e, random, some)
		time.Sleep(2 * time.Second)
		waits() // it was written since it was looked at
		time.Sleep(o.packQuiet)
		synctest.Wait()
		require.Less(t, e.schedule.waiting(), o.packBytes)
		fillTo(t, e, random, some)
		waits()
		require.NoError(t, e.Close())
	})
}

// Many segments are packed at once, and so are those that an earlier process left.
func TestManyOrOldSegmentsDoNotWait(t *testing.T) {
	for _, size := range []int{enough + 32<<10, bulkFactor*enough + 32<<10} {
		dir := t.TempDir()
		e, err := Open(background, dir, Options{SegmentSize: 16 << 10, NoPacking: true, packBytes: enough})
		require.NoError(t, err)
		fillTo(t, e, newRandom(4), size)
		require.NoError(t, e.Close())
		synctest.Test(t, func(t *testing.T) {
			e, err := Open(background, dir, Options{SegmentSize: 16 << 10, packBytes: enough, packQuiet: time.Hour})
			require.NoError(t, err)
			if size < bulkFactor*enough {
				time.Sleep(packAfter)
			} else {
				e.schedule.segmentSealed()
			}
			synctest.Wait()
			require.Less(t, e.schedule.waiting(), int64(enough))
			require.NoError(t, e.Close())
		})
	}
}

// heldFS blocks the creation of the first pack until it is released.
type heldFS struct {
	vfs.FS
	once  *sync.Once
	begun chan struct{}
	letGo chan struct{}
}

func (h heldFS) Create(name string) (vfs.File, error) {
	if strings.HasSuffix(name, ".tmp") {
		h.once.Do(func() {
			close(h.begun)
			<-h.letGo
		})
	}
	return h.FS.Create(name)
}

// Segments that are sealed during packing are packed afterwards, without further writes.
func TestSegmentsSealedDuringPackingArePacked(t *testing.T) {
	held := heldFS{FS: vfs.OS(), once: new(sync.Once), begun: make(chan struct{}), letGo: make(chan struct{})}
	e, err := Open(background, t.TempDir(), Options{SegmentSize: 16 << 10, FS: held, packBytes: enough})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	random := newRandom(2)
	fillTo(t, e, random, enough+32<<10)
	<-held.begun
	fillTo(t, e, random, enough+32<<10)
	close(held.letGo)
	waitUntilPacked(t, e)
}
