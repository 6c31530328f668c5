package bench

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
)

func small(t *testing.T) Config {
	return Config{Dir: t.TempDir(), Sizes: []int{10, 60}, Rounds: 2, StoreMessages: 12_000, MessageBytes: 100, Forks: 2_000}
}

// Every system has to do what is measured, or the comparison is of nothing.
func TestSystemsKeepHistories(t *testing.T) {
	ctx := context.Background()
	c := small(t)
	c.Postgres = pgtest.DSN(t)
	c.setDefaults()
	r := &run{config: c, dir: c.Dir}
	for _, s := range r.systems() {
		t.Run(s.name+" "+s.durability, func(t *testing.T) {
			o, err := r.open(ctx, s)
			require.NoError(t, err)
			defer func() { require.NoError(t, o.close()) }()
			h, err := o.store.start(ctx)
			require.NoError(t, err)
			if s.bare {
				require.NoError(t, h.extend(ctx, newMessages(&c, 1).one()))
				return
			}
			m := newMessages(&c, 1)
			require.NoError(t, h.load(ctx, m.some(30)))
			for range 5 {
				require.NoError(t, h.extend(ctx, m.one()))
			}
			fork, err := h.fork(ctx, 0)
			require.NoError(t, err)
			require.NoError(t, fork.extend(ctx, m.one()))
			early, err := h.fork(ctx, 7)
			require.NoError(t, err)
			require.NoError(t, early.extend(ctx, m.one()))
			for _, want := range []struct {
				history history
				last, n int
			}{{h, 0, 35}, {fork, 0, 36}, {early, 0, 8}, {h, 20, 20}, {early, 20, 8}} {
				n, err := want.history.read(ctx, want.last)
				require.NoError(t, err)
				require.Equal(t, want.n, n)
			}
			size, err := o.store.size()
			require.NoError(t, err)
			require.Positive(t, size)
			if again, ok := o.store.(reopener); ok {
				require.NoError(t, again.shut())
				require.NoError(t, again.openAgain(ctx))
			}
		})
	}
}

func TestRunMeasuresWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	c := small(t)
	archives := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(archives, "two.jsonl"),
		[]byte(strings.Repeat(`{"messages":[{"role":"user","content":"What is a fork?"},{"role":"assistant","content":"A pointer."}]}`+"\n", 2)), 0o600))
	c.Archives = []string{archives}
	report, err := Run(context.Background(), c)
	require.NoError(t, err)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left, "a run cleans up")

	found := map[string]bool{}
	for _, row := range report.Rows {
		found[row.Workload] = true
		require.False(t, math.IsNaN(row.Value), row)
		require.GreaterOrEqual(t, row.High, row.Low, row)
	}
	for _, w := range []string{
		workExtend, workFork, workRead, workWindow, workEdit, workLength, "writers", "fanout", "read through 1,000 forks", "fork among forks",
		workForkBytes, workLargeStore, workOpen, workVerify, workVerifyDeep, workBeside, workPacked, workImport, workDedupe, workSearch, workIndex,
	} {
		require.True(t, found[w], w)
	}
	require.NotEmpty(t, report.Ratios)
	require.NotEmpty(t, report.Growth)
	require.GreaterOrEqual(t, len(report.Goals), 10)

	var table, lines bytes.Buffer
	require.NoError(t, report.WriteTable(&table))
	require.Contains(t, table.String(), "extend, full durability, 64 writers")
	require.NoError(t, report.WriteJSON(&lines))
	again, err := ReadJSON(&lines)
	require.NoError(t, err)
	require.Equal(t, report, again)

	dir := t.TempDir()
	names, err := report.WritePlots(dir)
	require.NoError(t, err)
	require.Contains(t, names, "extend.svg")
	for _, name := range names {
		wellFormed(t, filepath.Join(dir, name))
	}
	for _, change := range Compare(report, report) {
		require.False(t, change.Worse, change)
		require.InDelta(t, 1, change.Factor, 1e-9)
	}
}

func wellFormed(t *testing.T, path string) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, path)
	}
}

func TestRefusedConfigurations(t *testing.T) {
	for _, c := range []Config{{Workloads: []string{"fly"}}, {Systems: []string{"paper"}}, {Sizes: []int{0}}, {MessageBytes: 3}} {
		_, err := Run(context.Background(), c)
		require.ErrorIs(t, err, ErrConfig)
	}
}

func TestCancelledRunReportsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := small(t)
	c.Workloads, c.Systems = []string{"history"}, []string{nameLineage, nameWrite}
	c.Progress = func(what string) {
		if strings.HasPrefix(what, workFork) {
			cancel()
		}
	}
	report, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, report.Rows)
}

func TestStatistics(t *testing.T) {
	require.Equal(t, 3.0, median([]float64{9, 1, 3}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.Equal(t, 1.0, quantile([]float64{1, 2, 3, 4, 5}, 0))
	require.Equal(t, 4.0, quantile([]float64{5, 4, 3, 2, 1}, 0.75))
	require.True(t, math.IsNaN(median(nil)))
	for want, cost := range map[float64]func(n float64) float64{
		0: func(float64) float64 { return 7 },
		1: func(n float64) float64 { return 3 * n },
		2: func(n float64) float64 { return n * n / 5 },
	} {
		sizes := []float64{10, 100, 1000}
		var costs []float64
		for _, n := range sizes {
			costs = append(costs, cost(n))
		}
		e, ok := exponent(sizes, costs)
		require.True(t, ok)
		require.InDelta(t, want, e, 1e-9)
	}
	_, ok := exponent([]float64{10}, []float64{1})
	require.False(t, ok)
}

func TestCompareSeesWhatBecameWorse(t *testing.T) {
	of := func(ratio float64) *Report {
		return &Report{Ratios: []Ratio{{Workload: workExtend, Size: 10, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: ratio, Low: 0.9 * ratio, High: 1.1 * ratio}}}
	}
	for _, x := range []struct {
		now   float64
		worse bool
	}{{4, false}, {4.4, false}, {8, true}, {2, false}} {
		changes := Compare(of(4), of(x.now))
		require.Len(t, changes, 1)
		require.Equal(t, x.worse, changes[0].Worse, x)
	}
	require.Empty(t, Compare(&Report{}, of(4)))
}

func TestGoalsAreJudged(t *testing.T) {
	r := &Report{
		Ratios: []Ratio{
			{Workload: workExtend, Size: 10, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 2},
			{Workload: workExtend, Size: 1000, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 4},
			{Workload: workRead, Size: 100_000, System: nameSQLite, Against: nameLineage, Durability: normal, Ratio: 25},
		},
		Rows: []Row{{Workload: workOpen, System: nameLineage, Size: 10, Value: 5e6}, {Workload: workOpen, System: nameLineage, Size: 20, Value: 120e6}},
	}
	byName := map[string]Goal{}
	for _, g := range goals(r) {
		byName[g.Goal] = g
	}
	require.Len(t, byName, 3)
	extend := byName["extend, normal durability, against one bare write of the same bytes"]
	require.Equal(t, 4.0, extend.Ratio, "the worst counts")
	require.False(t, extend.Reached)
	require.True(t, byName["read a whole history against the recursive query on the documented SQLite schema"].Reached)
	require.InDelta(t, 120, byName["opening the largest store, milliseconds"].Ratio, 1e-9)
}
