//go:build unix

package main

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
)

// largeBody is more than the frames that are kept, and far more than a chunk.
const largeBody = 64 << 20

// sizeOf returns the size of all files of a store.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	}))
	return size
}

// A large body that comes through a pipe goes in and out whole. When the process is killed while it comes, nothing that was
// said before is lost, and what came of it is collected.
func TestKilledWhileALargeBodyComes(t *testing.T) {
	body := make([]byte, largeBody)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(body)
	dir, pipe := newStore(t), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	do := func(args ...string) result {
		t.Helper()
		r := runLine(t.Context(), append(args, "--store", dir)...)
		require.Zero(t, r.code, r.err)
		return r
	}
	do("append", "said before", "--role", "user")
	empty := sizeOf(t, dir)
	send := func(n int) *exec.Cmd {
		c := command(t, "lineage", "append", "--file", pipe, "--type", "application/octet-stream", "--store", dir)
		require.NoError(t, c.Start())
		in, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = in.Write(body[:n]) // all but what a pipe holds was read
		require.NoError(t, err)
		if n < len(body) {
			require.NoError(t, c.Process.Kill())
		}
		require.NoError(t, in.Close())
		return c
	}
	choose := rand.New(random)
	killed := []int{1 << 20, choose.IntN(largeBody)}
	if !testing.Short() {
		killed = append(killed, 1, choose.IntN(largeBody), largeBody-1)
	}
	for _, n := range killed {
		require.Equal(t, -1, ended(t, send(n)), "killed after %d bytes", n)
		store, err := lineage.Open(t.Context(), dir, lineage.Options{MustExist: true})
		require.NoError(t, err)
		for finding, err := range store.Verify(t.Context(), lineage.VerifyOptions{Deep: true}) {
			require.NoError(t, err)
			require.FailNow(t, finding.String())
		}
		require.NoError(t, store.Close())
		require.Equal(t, "said before", strings.TrimSpace(do("cat", "@").out))
		do("gc", "--yes", "--keep-unused", "0s")
		require.Less(t, sizeOf(t, dir), empty+64<<10, "after %d bytes", n)
	}
	require.Zero(t, ended(t, send(largeBody)))
	hash := sha256.New()
	out := command(t, "lineage", "cat", "@", "--store", dir)
	out.Stdout = hash
	require.NoError(t, out.Run())
	require.Equal(t, sha256.Sum256(body), [32]byte(hash.Sum(nil)))
}

// A text that is too large is refused by edit, and not cut.
func TestEditRefusesWhatIsTooLarge(t *testing.T) {
	campaign.Long(t)
	dir, large := newStore(t), filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, app.MaxInput+1))
	got := runLine(t.Context(), "edit", ":1", "--file", large, "--store", dir)
	require.Equal(t, app.ExitFailure, got.code)
	require.Contains(t, got.err, "more than 256.0 MiB")
}
