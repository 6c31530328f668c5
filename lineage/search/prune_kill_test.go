package search_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
)

// A process is killed at any moment while it prunes the index. Whoever opens the store next finds no collected text in a file,
// and what a search then finds is right.
func TestKilledWhilePruning(t *testing.T) {
	const worker, pruning, pruned = "LINEAGE_PRUNING_WORKER", "pruning", "pruned"
	if dir := os.Getenv(worker); dir != "" {
		prune := func(ctx context.Context, dir string, e backend.Engine) error {
			fmt.Println(pruning)
			begun := time.Now()
			err := search.Prune(ctx, dir, e)
			fmt.Println(pruned, time.Since(begun).Microseconds(), err)
			return err
		}
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: prune})
		require.NoError(t, err)
		collect(t, store)
		time.Sleep(time.Minute)
	}
	original := t.TempDir()
	store, x := open(t, original)
	stays, _ := newMain(t, store, lineage.User("an ant that stays"), lineage.User("a bee"))
	deleted, c := newMain(t, store, lineage.User("an ant that goes"))
	for i := range 300 {
		_, err := c.Extend(bg, lineage.User(secret(i)))
		require.NoError(t, err)
	}
	require.NotEmpty(t, found(t, x, "ant"))
	require.NoError(t, deleted.Delete(bg))
	require.NoError(t, x.Close())
	require.NoError(t, store.Close())

	// run collects a copy of the store, and is killed some time after it begins to prune the index, or after it has done so.
	run := func(dir string, after time.Duration) (took time.Duration) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhilePruning$", "-test.count=1")
		cmd.Env = append(os.Environ(), worker+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		defer cmd.Wait()
		defer cmd.Process.Kill()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var micros int64
			if lines.Text() == pruning && after >= 0 {
				time.Sleep(after)
				return after
			}
			if n, _ := fmt.Sscanf(lines.Text(), pruned+" %d <nil>", &micros); n == 1 {
				return time.Duration(micros) * time.Microsecond
			}
		}
		require.Fail(t, "the index was not pruned")
		return 0
	}
	copied := func() string {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(original)))
		return dir
	}
	took := run(copied(), -1)
	const kills = 12
	for i := range kills + 1 {
		dir := copied()
		after := took * time.Duration(i) / kills
		if i == kills {
			after = -1
		}
		run(dir, after)
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Wait: time.Minute, Prune: search.Prune})
		require.NoError(t, err)
		requireNoSecret(t, dir)
		x, err := search.Open(bg, store, dir, search.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"an <mark>ant</mark> that stays"}, found(t, x, "ant"))
		require.Empty(t, found(t, x, "aq26voynich0"))
		requireRebuilt(t, store, dir)
		collect(t, store)
		requireNoSecret(t, dir)
		require.NotEmpty(t, found(t, x, "bee"))
		_, err = store.Thread(bg, stays.ID())
		require.NoError(t, err)
		require.NoError(t, x.Close())
		require.NoError(t, store.Close())
	}
}
