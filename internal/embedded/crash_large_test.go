package embedded

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// largeVariable is the size of the body that TestCrashLargeBodyProcess stores.
const largeVariable = "EMBEDDED_TEST_LARGE"

// maxHeap limits the memory for storing a large body of any size.
const maxHeap = 64 << 20

// A body much larger than the memory limit can be stored and read.
//
//test:norace
func TestCrashLargeBody(t *testing.T) {
	campaign.Long(t)
	size := int64(128 << 20)
	if campaign.Runs() {
		size = 1 << 30
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashLargeBodyProcess$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprint(largeVariable, "=", size), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "peak heap")
	t.Logf("%s", out)
}

// TestCrashLargeBodyProcess runs in a child process of TestCrashLargeBody, so that
// the memory of other tests does not count.
func TestCrashLargeBodyProcess(t *testing.T) {
	text := os.Getenv(largeVariable)
	if text == "" {
		t.Skip("TestCrashLargeBody runs it in a child process")
	}
	size, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxHeap * 3 / 4))
	peak := sampleHeap()
	ctx, dir := context.Background(), t.TempDir()
	o := Options{Durability: backend.Normal, OverlayBytes: 4 << 20}
	e, err := Open(ctx, dir, o)
	require.NoError(t, err)
	id := storeLarge(t, e, size)
	require.NoError(t, e.Close())

	e, err = Open(ctx, dir, o)
	require.NoError(t, err)
	found, err := e.Blocks(ctx, []content.ID{id})
	require.NoError(t, err)
	require.Equal(t, size, found[0].Size)
	n, err := io.Copy(io.Discard, content.VerifyReader(content.OpenTree(ctx, found[0].Tree, e.Chunks), id))
	require.NoError(t, err)
	require.Equal(t, size, n)
	require.NoError(t, e.Close())
	most := peak()
	require.Less(t, most, uint64(maxHeap))
	fmt.Printf("%d MiB: peak heap %d MiB, %s\n", size>>20, most>>20, highWaterMark())
}

// storeLarge stores a body that is generated while it is read, with one mebibyte
// of chunks per commit.
func storeLarge(t *testing.T, e *Engine, size int64) content.ID {
	ctx := context.Background()
	var chunks []structure.Record
	held := 0
	flush := func(more ...structure.Record) error {
		_, err := e.Apply(ctx, &structure.Commit{Records: append(chunks, more...)}, backend.Options{})
		chunks, held = chunks[:0], 0
		return err
	}
	put := func(key content.Key, chunk []byte) error {
		chunks = append(chunks, &structure.Chunk{Key: key, Bytes: bytes.Clone(chunk)})
		if held += len(chunk); held < 1<<20 {
			return nil
		}
		return flush()
	}
	body := io.LimitReader(rand.NewChaCha8([32]byte{7}), size)
	id, root, err := content.Cut(ctx, body, put)
	require.NoError(t, err)
	require.Equal(t, size, root.Size)
	run := structure.NewID[structure.RunID]()
	require.NoError(t, flush(
		&structure.Block{Block: content.Block{ID: id, Type: content.TypeBinary, Size: size, CreatedAt: time.Now()}, Tree: root},
		&structure.Run{ID: run},
		&structure.Span{Ref: structure.SpanRef{Run: run, Seq: 1}, Usages: []structure.Usage{
			{Kind: structure.AssetUsage, Content: id, Filename: "large.bin", CreatedAt: time.Now()},
		}},
	))
	return id
}

// sampleHeap samples the heap size until the returned function is called, which
// returns the maximum.
func sampleHeap() func() uint64 {
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			most.Store(max(most.Load(), stats.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return most.Load()
	}
}

// highWaterMark returns the peak memory of the process as reported by the system,
// if it reports one.
func highWaterMark() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "no figure of the system's"
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	return "no figure of the system's"
}
