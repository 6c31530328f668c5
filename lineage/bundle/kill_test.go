package bundle_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/bundle"
)

const importerDir = "LINEAGE_BUNDLE_IMPORTER"

// importUntilKilled is the child process of TestKilled. It reports its progress and waits until
// that was read.
func importUntilKilled(dir string) int {
	err := func() error {
		f, err := os.Open(filepath.Join(dir, "bundle"))
		if err != nil {
			return err
		}
		s, err := lineage.Open(bg, filepath.Join(dir, "store"), lineage.Options{Durability: lineage.Normal})
		if err != nil {
			return err
		}
		_, err = bundle.Import(bg, s, f, bundle.ImportOptions{Progress: func(done, total int64) {
			fmt.Println(done, total)
			_, _ = os.Stdin.Read(make([]byte, 1))
		}})
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKilled kills a process while it imports, at any time, and imports again.
func TestKilled(t *testing.T) {
	a, noise := newStore(t), rand.NewChaCha8([32]byte{1})
	for i := range 12 {
		_, c := newThread(t, a, fmt.Sprint("thread ", i))
		for k := range 40 {
			body := make([]byte, 8<<10) // so that there are several frames
			_, _ = noise.Read(body)
			_, err := c.Extend(bg, lineage.Item{Role: "user", Body: body}, lineage.User(fmt.Sprint("small ", i, k)))
			require.NoError(t, err)
			if k%10 == 0 {
				fork, err := c.Fork(bg, lineage.ForkOptions{})
				require.NoError(t, err)
				say(t, fork, fmt.Sprint("fork ", i, k))
			}
		}
	}
	b := writeBundle(t, a, bundle.WriteOptions{})
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bundle"), b, 0o600))
	parts := 0
	for try := 0; try < 40 && parts < 4; try++ {
		store := filepath.Join(dir, "store")
		require.NoError(t, os.RemoveAll(store))
		at := int64(len(b)) + rand.Int64N(int64(len(b)))
		killImporter(t, dir, at, try%2 == 1)
		s := open(t, store, nil)
		if n := len(digests(t, s)); n > 0 && n < len(digests(t, a)) {
			parts++
		}
		requireSound(t, s)
		bring(t, s, b)
		requireSame(t, a, s)
		require.True(t, bytes.Equal(b, writeBundle(t, s, bundle.WriteOptions{})))
		bringAgain(t, s, b)
		requireSound(t, s)
		require.NoError(t, s.Close())
	}
	require.NotZero(t, parts, "no import was killed half way")
}

// killImporter imports in another process, which it kills at some progress, or a little later.
func killImporter(t *testing.T, dir string, at int64, later bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), importerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var done, total int64
		_, err := fmt.Sscan(lines.Text(), &done, &total)
		require.NoError(t, err, strconv.Quote(lines.Text()))
		if done < at || later {
			_, _ = in.Write([]byte{0})
		}
		if done >= at {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
}
