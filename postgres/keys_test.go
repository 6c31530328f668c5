package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestLongNames gives checkpoints names of up to 4 KiB that the server cannot compress, many with the same start, and lists
// them in pages. They are collected, made again from the log, and found one by one.
//
//test:norace
func TestLongNames(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	thread := tell(t, e, "said")
	main, err := thread.Active(background)
	require.NoError(t, err)
	tip, err := main.Tip(background)
	require.NoError(t, err)
	start := incompressible(2100)
	var names []string
	batch := []structure.Record{}
	for i := range 90 {
		name := fmt.Sprintf("%03d", i)
		switch i % 3 {
		case 0:
			name = start + name + incompressible(1900)
		case 1:
			name += incompressible(3900)
		}
		names = append(names, name)
		batch = append(batch, &structure.Checkpoint{ID: structure.NewID[structure.CheckpointID](), Thread: thread.ID(), Name: name, Span: tip})
	}
	_, err = e.Apply(background, &structure.Commit{Records: batch}, backend.Options{})
	require.NoError(t, err)
	sorted := func(e *Engine, after string) (got []string) {
		for c, err := range e.Checkpoints(background, thread.ID(), after) {
			require.NoError(t, err)
			got = append(got, c.Name)
		}
		require.IsIncreasing(t, got)
		return got
	}
	check := func(e *Engine) {
		t.Helper()
		all := sorted(e, "")
		require.ElementsMatch(t, names, all)
		for _, i := range []int{0, 31, 32, 60, 88, 89} {
			require.Equal(t, len(all)-1-i, len(sorted(e, all[i])))
			c, err := e.Checkpoint(background, thread.ID(), all[i])
			require.NoError(t, err)
			require.Equal(t, all[i], c.Name)
		}
		_, err := e.Checkpoint(background, thread.ID(), start+"none")
		require.ErrorIs(t, err, backend.ErrNotFound)
		requireSound(t, e)
	}
	check(e)
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindCheckpoint, Thread: thread.ID(), Name: names[0]}}}, backend.Options{})
	require.NoError(t, err)
	names = names[1:]
	require.NoError(t, tell(t, e, secret).Delete(background))
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	all := sorted(e, "")
	require.ElementsMatch(t, names, all)
	requireSound(t, e)
	emptied(t, pool)
	again := handle(t, pool, "s")
	require.Equal(t, all, sorted(again, ""))
	requireSound(t, again)
}

// incompressible returns text that does not compress well.
func incompressible(size int) string {
	var b strings.Builder
	for b.Len() < size {
		id := structure.NewID[structure.ThreadID]()
		sum := keyOf(id.String())
		fmt.Fprintf(&b, "%s", strings.Map(func(r rune) rune {
			if r < 0x80 && r > 0x20 {
				return r
			}
			return 'a' + r%26
		}, string(sum)))
	}
	return b.String()[:size]
}
