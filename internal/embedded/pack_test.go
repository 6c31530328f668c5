package embedded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// packing is an engine that packs everything now and then, so that the suite reads from
// packs.
type packing struct {
	*Engine
	due   func() bool
	dense bool
}

// packsDue returns a function that decides after each commit whether to pack: every so
// many commits, and less often after many, except in a campaign.
func packsDue(every int) func() bool {
	var mu sync.Mutex
	commits, since := 0, 0
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		commits, since = commits+1, since+1
		if since < every || !campaign.Runs() && since < commits/8 {
			return false
		}
		since = 0
		return true
	}
}

func (p *packing) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	r, err := p.Engine.Apply(ctx, c, o)
	if err != nil || !p.due() {
		return r, err
	}
	if _, err := p.Engine.Pack(context.WithoutCancel(ctx), backend.PackOptions{All: true, Dense: p.dense}); err != nil {
		return r, fmt.Errorf("pack: %w", err)
	}
	return r, nil
}

//test:norace
func TestConformancePacked(t *testing.T) {
	campaign.Long(t)
	for _, variant := range []struct {
		name   string
		every  int
		dense  bool
		reopen bool
	}{
		{"every other commit", 2, false, false},
		{"reopened", 3, true, true},
	} {
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			backendtest.Run(t, backendtest.Config{Reopen: variant.reopen, New: func(t testing.TB) backendtest.OpenFunc {
				dir, due := t.TempDir(), packsDue(variant.every)
				return func(ctx context.Context) (backend.Engine, error) {
					e, err := Open(ctx, dir, Options{Durability: backend.Normal})
					if err != nil {
						return nil, err
					}
					return &packing{Engine: e, due: due, dense: variant.dense}, nil
				}
			}})
		})
	}
}

func openPacked(t *testing.T, dir string, commits int) *Engine {
	t.Helper()
	e, err := Open(background, dir, Options{SegmentSize: 4 << 10, Durability: backend.Normal})
	require.NoError(t, err)
	for i := range commits {
		_, err := e.Apply(background, message(uint64(i+1)), backend.Options{})
		require.NoError(t, err)
	}
	return e
}

func requireSound(t *testing.T, e *Engine) {
	t.Helper()
	for f, err := range e.Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		t.Errorf("%+v", f)
	}
}

// A snapshot and writers continue while packing replaces their files.
func TestPackWhileReadingAndWriting(t *testing.T) {
	e := openPacked(t, t.TempDir(), 200)
	defer e.Close()
	s, err := e.Snapshot(background)
	require.NoError(t, err)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				body := fmt.Sprintf("message %d of writer %d", i, w)
				_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{
					structure.NewBlock("text/plain", content.BlockOrigin{}, time.Now(), []byte(body)),
				}}, backend.Options{})
				require.NoError(t, err)
				n := 0
				for c, err := range e.Feed(background, backend.Cursor{}) {
					require.NoError(t, err)
					n++
					require.EqualValues(t, n, c.Number)
				}
			}
		}()
	}
	for i := range 5 {
		_, err := e.Pack(background, backend.PackOptions{All: true, Dense: i%2 == 0})
		require.NoError(t, err)
	}
	close(stop)
	wg.Wait()
	head, err := s.Head(background)
	require.NoError(t, err)
	require.EqualValues(t, 200, head.Number)
	require.NoError(t, s.Close())
	requireSound(t, e)
}

// A packed store without its index has the same data.
func TestPackedIndexIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 100)
	want := feedOf(t, e)
	_, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	require.Equal(t, want, feedOf(t, e))
	require.NoError(t, e.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, indexFile)))
	e, err = Open(background, dir, Options{})
	require.NoError(t, err)
	defer e.Close()
	require.Equal(t, want, feedOf(t, e))
	requireSound(t, e)
}

// TestDenseAfterFast makes packs dense that are not, one by one and several at once. Dense packs stay
// as they are.
func TestDenseAfterFast(t *testing.T) {
	for _, packs := range []int{1, 3} {
		dir := t.TempDir()
		e := openPacked(t, dir, 100)
		for i := range packs {
			_, err := e.Apply(background, message(uint64(101+i)), backend.Options{})
			require.NoError(t, err)
			require.NoError(t, e.journal.Seal())
			_, err = e.Pack(background, backend.PackOptions{}) // does not merge packs
			require.NoError(t, err)
		}
		want := feedOf(t, e)
		fast := 0
		for _, f := range e.journal.Segments() {
			if f.Packed {
				fast++
				require.False(t, f.Dense)
			}
		}
		require.Equal(t, packs, fast)
		for i, commits := range []int{len(want), 0} {
			report, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
			require.NoError(t, err)
			require.EqualValues(t, commits, report.Commits, "time %d", i+1)
		}
		for _, f := range e.journal.Segments() {
			require.True(t, f.Dense || !f.Packed, f.Name)
		}
		require.Equal(t, want, feedOf(t, e))
		requireSound(t, e)
		require.NoError(t, e.Close())
		e, err := Open(background, dir, Options{})
		require.NoError(t, err)
		require.Equal(t, want, feedOf(t, e))
		requireSound(t, e)
		require.NoError(t, e.Close())
	}
}

func feedOf(t *testing.T, e *Engine) (out [][]byte) {
	t.Helper()
	for c, err := range e.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		var enc structure.Encoder
		b, _, err := enc.Encode(c)
		require.NoError(t, err)
		out = append(out, bytes.Clone(b))
	}
	return out
}

// onePack creates a store whose messages are all in one pack, closes it, and returns the
// pack's name and content.
func onePack(t *testing.T, dir string, messages int) (name string, whole []byte) {
	t.Helper()
	e := openPacked(t, dir, messages)
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	names, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	whole, err = os.ReadFile(names[0])
	require.NoError(t, err)
	return names[0], whole
}

// Damage to any byte of a pack is found and reported with its position.
//
//test:norace
func TestPackDamage(t *testing.T) {
	dir := t.TempDir()
	name, whole := onePack(t, dir, 40)
	for at := 0; at < len(whole); at += 1 + len(whole)/97 {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		require.NoError(t, os.WriteFile(name, b, 0o600))
		e, err := Open(background, dir, Options{ReadOnly: true})
		if err != nil {
			require.True(t, errors.Is(err, backend.ErrCorrupt) || at >= 8 && at < 12, "byte %d: %v", at, err)
			continue
		}
		found := false
		for f, err := range e.Verify(background, backend.VerifyOptions{}) {
			require.NoError(t, err)
			found = found || f.File == name
		}
		require.True(t, found, "byte %d", at)
		require.NoError(t, e.Close())
	}
}

// A small dense store has no index while it is closed, and gets one when something is
// added.
func TestSpareIndex(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 50)
	want := feedOf(t, e)
	_, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	for range 2 {
		require.NoFileExists(t, filepath.Join(dir, indexFile))
		e, err = Open(background, dir, Options{Durability: backend.Normal})
		require.NoError(t, err)
		require.Equal(t, want, feedOf(t, e))
		requireSound(t, e)
		require.NoError(t, e.Close())
	}
	e, err = Open(background, dir, Options{Durability: backend.Normal})
	require.NoError(t, err)
	_, err = e.Apply(background, message(51), backend.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.FileExists(t, filepath.Join(dir, indexFile))
	e, err = Open(background, dir, Options{})
	require.NoError(t, err)
	require.Len(t, feedOf(t, e), 51)
	requireSound(t, e)
	require.NoError(t, e.Close())
}

// The index that a small dense store gets when something is added is compressed when it is closed.
func TestRebuiltIndexIsCompact(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 3000)
	_, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	var sizes [2]int64
	for i := range sizes {
		e, err = Open(background, dir, Options{Durability: backend.Normal})
		require.NoError(t, err)
		_, err = e.Apply(background, message(3001+uint64(i)), backend.Options{})
		require.NoError(t, err)
		if i > 0 {
			require.NoError(t, e.compactIndex(background))
		}
		requireSound(t, e)
		require.NoError(t, e.Close())
		info, err := os.Stat(filepath.Join(dir, indexFile))
		require.NoError(t, err)
		sizes[i] = info.Size()
	}
	require.LessOrEqual(t, sizes[0], sizes[1])
}

// packVariable names the store that the test binary adds to and packs until it is
// killed.
const packVariable = "EMBEDDED_TEST_PACK"

func packForEver(dir string) int {
	e, err := Open(background, dir, Options{SegmentSize: 4 << 10, Durability: backend.Normal, fullPack: 64 << 10})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for i := e.journal.Last() + 1; ; i++ {
		if _, err := e.Apply(background, message(i), backend.Options{}); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(i)
		if i%20 == 0 {
			if _, err := e.Pack(background, backend.PackOptions{All: i%60 == 0, Dense: i%40 == 0}); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
}

// A process that is killed during packing loses no acknowledged commit.
func TestKillWhilePacking(t *testing.T) {
	dir := t.TempDir()
	for round := range 8 {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), packVariable+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		last := uint64(0)
		for n := 0; n < 30+17*round && lines.Scan(); n++ {
			last, err = strconv.ParseUint(lines.Text(), 10, 64)
			require.NoError(t, err, lines.Text())
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
				last = n
			}
		}
		_ = cmd.Wait()
		e, err := Open(background, dir, Options{SegmentSize: 4 << 10})
		require.NoError(t, err)
		require.GreaterOrEqual(t, uint64(len(feedOf(t, e))), last)
		requireSound(t, e)
		require.NoError(t, e.Close())
	}
}
