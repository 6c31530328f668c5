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
	"github.com/lineage-store/lineage/lineage/backend"
)

func small(t *testing.T) Config {
	return Config{Dir: t.TempDir(), Sizes: []int{10, 60}, Rounds: 2, StoreMessages: 12_000, MessageBytes: 100, Forks: 2_000, Sustained: 3_000}
}

func TestMain(m *testing.M) {
	Process() // of the workload of many processes
	os.Exit(m.Run())
}

// Every system must do the measured work; otherwise the comparison means nothing.
func TestSystemsKeepHistories(t *testing.T) {
	ctx := context.Background()
	c := small(t)
	c.Postgres = pgtest.DSN(t)
	c.setDefaults()
	r := &run{config: c, dir: c.Dir, postgres: c.Postgres}
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

func TestServed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	c := small(t)
	c.Postgres, c.Workloads = pgtest.DSN(t), []string{"served"}
	report, err := Run(context.Background(), c)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, row := range report.Rows {
		require.Positive(t, row.Value, row)
		found[row.Workload+" "+row.System] = true
	}
	for _, delay := range serverDelays {
		require.True(t, found[workServed(servedLone, delay)+" "+nameServed])
		require.True(t, found[workServed(servedApart, delay)+" "+nameRows])
	}
	for _, name := range []string{nameServed, nameRows, nameServed + ", loaded", namePostgres + ", loaded"} {
		require.True(t, found[workServedBytes+" "+name], name)
	}
	require.True(t, found[workServedRead+" "+namePostgres])
	require.True(t, found[workServedCold+" "+nameServed])
	require.Len(t, report.Goals, 6)
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
		found[row.Workload], found[row.Workload+row.System] = true, true
		require.False(t, math.IsNaN(row.Value), row)
		require.GreaterOrEqual(t, row.High, row.Low, row)
	}
	for _, w := range []string{
		workExtend, workFork, workExtend + afterOthers, workFork + afterOthers, workRead, workWindow, workEdit, workLength, "writers", "fanout", "read through 1,000 forks", workWide,
		workForkBytes, workLargeStore, workOpen, workVerify, workVerifyDeep, workBeside, workBesideEach, workPacked, workPackedBeside, workLargeFork, workLargeWindow, workFill,
		workExtendOn, workForkOn, workNames + "delete a branch", workNamesImport, workImport, workDedupe, workSearch, workIndex,
		workCold + dedupeFast, workCold + dedupePacked, workColdMost + dedupePacked, workColdOpen + dedupeFast,
		workGuestRead + nameGuest, workGuestExtend + nameOwner, workManyProcesses + nameSQLite, workTakeover,
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
	require.Contains(t, names, "archives.svg")
	for _, name := range names {
		wellFormed(t, filepath.Join(dir, name))
	}
	for _, change := range Compare(report, report) {
		require.False(t, change.Worse, change)
		require.InDelta(t, 1, change.Factor, 1e-9)
	}
}

// The run's own server is started, measured and stopped.
func TestPrivatePostgres(t *testing.T) {
	pgtest.DSN(t) // or skip
	c := small(t)
	c.Postgres = PrivatePostgres
	c.Workloads, c.Systems, c.Sizes = []string{"history", "writers"}, []string{nameLineage, namePostgres}, []int{10}
	report, err := Run(context.Background(), c)
	require.NoError(t, err)
	measured := map[string]bool{}
	for _, row := range report.Rows {
		if row.System == namePostgres {
			measured[row.Workload+" "+row.Durability] = true
			require.Zero(t, row.CPUNanos, "the server's processor time is not this process's")
		}
	}
	for _, w := range []string{workExtend, workFork, workRead, workWindow, workEdit} {
		require.True(t, measured[w+" "+normal], w)
		require.True(t, measured[w+" "+full], w)
	}
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestNoPostgresIsReported(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c := small(t)
	c.Postgres = PrivatePostgres
	r := &run{config: c}
	r.config.setDefaults()
	r.startPostgres()()
	if r.postgres != "" {
		t.Skip("there is one outside of the path")
	}
	require.Contains(t, r.noPostgres, "no server could be started")
	r.systems()
	require.Contains(t, r.report.Skipped, Skipped{System: namePostgres, Why: r.noPostgres})
}

func TestAddressesWithSettings(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://h/db":                   "postgres://h/db?a=b",
		"postgres://h/db?sslmode=disable":   "postgres://h/db?sslmode=disable&a=b",
		"host=/run/postgresql dbname=bench": "host=/run/postgresql dbname=bench a=b",
	} {
		require.Equal(t, want, withSetting(address, "a", "b"))
	}
}

func TestArchivesPlot(t *testing.T) {
	of := func(system, archive string, bytes float64) Row {
		return Row{Workload: workDedupe, System: system, Archive: archive, Unit: unitBytes, Value: bytes}
	}
	r := &Report{Rows: []Row{
		of(dedupeRaw, "a & b", 1000), of(dedupePacked, "a & b", 40), of(nameSQLite, "a & b", 2500),
		of(dedupeRaw, "c", 100), of(dedupePacked, "c", 20), of(dedupeZstd, "c", 25), of(dedupeRaw, "empty", 0),
	}}
	p := r.archivesPlot()
	require.Equal(t, []string{"a & b", "c"}, p.archives)
	require.Len(t, p.series, 3)
	require.Equal(t, line{name: dedupePacked, ys: []float64{0.04, 0.2}}, p.series[0])
	require.Equal(t, line{name: dedupeZstd, ys: []float64{0, 0.25}}, p.series[1])
	dir := t.TempDir()
	names, err := r.WritePlots(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"archives.svg"}, names)
	wellFormed(t, filepath.Join(dir, "archives.svg"))
	b, err := os.ReadFile(filepath.Join(dir, "archives.svg"))
	require.NoError(t, err)
	require.Contains(t, string(b), "a &amp; b")
	require.Equal(t, 3+4, strings.Count(string(b), "<circle"))

	require.GreaterOrEqual(t, len(colours), len(Systems()), "two lines of one colour")
	names, err = (&Report{}).WritePlots(t.TempDir())
	require.NoError(t, err)
	require.Empty(t, names)
	for _, x := range []struct {
		low, high float64
		first     float64
		last      float64
	}{{0.04, 2.5, 0.02, 5}, {1, 1, 1, 2}, {0.3, 1, 0.2, 1}, {0.012, 7, 0.01, 10}} {
		ticks := sharesAround(x.low, x.high)
		require.InDelta(t, x.first, ticks[0], 1e-9, x)
		require.InDelta(t, x.last, ticks[len(ticks)-1], 1e-9, x)
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

// The first operation of a round is measured separately and not counted among the others.
func TestFirstOfARound(t *testing.T) {
	c := small(t)
	c.setDefaults()
	r := &run{config: c}
	var done []string
	one := func(name string) contender {
		note := func(what string) { done = append(done, name+what) }
		return contender{
			system: name, durability: normal,
			before: func(context.Context) error { note("before"); return nil },
			round:  func(context.Context) (int, error) { note("round"); return 3, nil },
		}
	}
	with, without := one("a "), one("b ")
	with.first = func(context.Context) error { done = append(done, "a first"); return nil }
	require.NoError(t, r.compare(context.Background(), subject{workload: "w"}, []contender{with}))
	require.Equal(t, []string{"a first", "a before", "a round"}, done[:3])
	require.Len(t, done, 3*(c.Rounds+1))
	require.Len(t, r.report.Rows, 2)
	require.Equal(t, 3, r.report.Rows[0].Operations)
	require.Equal(t, "w"+afterOthers, r.report.Rows[1].Workload)
	require.Equal(t, 1, r.report.Rows[1].Operations)
	require.Equal(t, c.Rounds, r.report.Rows[1].Rounds)

	r.report = Report{}
	require.NoError(t, r.compare(context.Background(), subject{workload: "w"}, []contender{without}))
	require.Len(t, r.report.Rows, 1)

	r.report = Report{}
	with.first = func(context.Context) error { return io.ErrClosedPipe }
	require.ErrorIs(t, r.compare(context.Background(), subject{workload: "w"}, []contender{with}), io.ErrClosedPipe)
}

// Every operation is measured in each store, and its results are deleted again.
func TestNames(t *testing.T) {
	ctx := context.Background()
	c := small(t)
	c.Workloads = []string{"names"}
	report, err := Run(ctx, c)
	require.NoError(t, err)
	r := &run{config: c, dir: t.TempDir()}
	r.config.setDefaults()
	s, err := r.newNamesStore(ctx, fewNames)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()
	names := []string{workNamesImport}
	for _, o := range s.operations() {
		names = append(names, workNames+o.name)
		operation := s.contender(o)
		_, err := sampleRound(ctx, &operation)
		require.NoError(t, err, o.name)
	}
	require.NoError(t, s.clean(ctx))
	branches, err := s.thread.Branches(ctx)
	require.NoError(t, err)
	require.Len(t, branches, fewNames+1)
	threads := 0
	for _, err := range s.store.Threads(ctx, backend.ThreadQuery{}) {
		require.NoError(t, err)
		threads++
	}
	require.Equal(t, fewNames+1, threads)

	sizes, grown := map[string][]int{}, map[string]Growth{}
	for _, row := range report.Rows {
		sizes[row.Workload] = append(sizes[row.Workload], row.Size)
	}
	for _, g := range report.Growth {
		grown[g.Workload] = g
	}
	for _, name := range names {
		require.Equal(t, []int{100, 1_000}, sizes[name], name)
		require.Equal(t, 100, grown[name].From, name)
		require.Equal(t, 1_000, grown[name].To, name)
	}
	require.Len(t, sizes, len(names))
	require.Len(t, report.Goals, 1)
}

func TestNamesGoal(t *testing.T) {
	ratio := func(operation, system, against string, ratio float64) Ratio {
		return Ratio{Workload: workNames + operation, System: nameLineage + ", " + system, Against: nameLineage + ", " + against, Durability: normal, Ratio: ratio}
	}
	r := &Report{Ratios: []Ratio{
		ratio("fork", "1,000", "100", 7), ratio("fork", "100,000", "100", 1.1), ratio("fork", "100", "100,000", 9),
		ratio("delete", "100,000", "1,000", 8), ratio("delete", "100,000", "100", 1.5),
	}}
	all := goals(r)
	require.Len(t, all, 1)
	require.Equal(t, 1.5, all[0].Ratio)
	require.True(t, all[0].Reached)
	require.Equal(t, "delete, 100,000 against 100", all[0].Measured)
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

func TestCompareFindsSlowdowns(t *testing.T) {
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

func TestCompareSeesBytesGrow(t *testing.T) {
	of := func(system, workload string, bytes float64) *Report {
		return &Report{Rows: []Row{{Workload: workload, System: system, Archive: "a", Unit: unitBytes, Value: bytes}}}
	}
	for _, x := range []struct {
		now   float64
		worse bool
	}{{1000, false}, {1040, false}, {1060, true}, {800, false}} {
		changes := Compare(of(dedupePacked, workDedupe, 1000), of(dedupePacked, workDedupe, x.now))
		require.Len(t, changes, 1)
		require.Equal(t, x.worse, changes[0].Worse, x)
		require.InDelta(t, x.now/1000, changes[0].Factor, 1e-9)
		var out bytes.Buffer
		require.NoError(t, WriteChanges(&out, changes))
		require.Equal(t, x.worse, strings.Contains(out.String(), "WORSE"))
	}
	require.Empty(t, Compare(of(dedupeZstd, workDedupe, 1000), of(dedupeZstd, workDedupe, 2000)), "not of this store")
	require.Empty(t, Compare(of(nameLineage, workOpenMemory, 1000), of(nameLineage, workOpenMemory, 2000)), "memory is not on disk")
}

// Rows that Compare uses are found in the report itself.
func TestCompareKnowsEveryRowOnDisk(t *testing.T) {
	r := &Report{Rows: []Row{
		{Workload: workBeside, System: nameLineage, Unit: unitPerItem, Value: 90}, {Workload: workBesideEach, System: nameLineage, Unit: unitPerItem, Value: 90}, {Workload: workPackedBeside, System: nameLineage, Unit: unitPerItem, Value: 50},
		{Workload: workForkBytes, System: nameLineage, Size: 10, Unit: unitBytes, Value: 90}, {Workload: workForkBytes, System: nameLineage, Size: 100, Unit: unitBytes, Value: 90},
		{Workload: workDedupe, System: dedupeFresh, Archive: "a", Unit: unitBytes, Value: 9}, {Workload: workDedupe, System: dedupeFresh, Archive: "b", Unit: unitBytes, Value: 9},
	}}
	require.Len(t, Compare(r, r), len(r.Rows))
}

func TestGoalsAreJudged(t *testing.T) {
	r := &Report{
		Ratios: []Ratio{
			{Workload: workExtend, Size: 10, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 2},
			{Workload: workExtend, Size: 1000, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 4},
			{Workload: workRead, Size: 100_000, System: nameSQLite, Against: nameLineage, Durability: normal, Ratio: 25},
			{Workload: workManyProcesses, System: nameSQLite, Against: nameLineage, Durability: full, Ratio: 2.5},
		},
		Rows: []Row{
			{Workload: workOpen, System: nameLineage, Size: 10, Value: 5e6}, {Workload: workOpen, System: nameLineage, Size: 20, Value: 120e6},
			{Workload: workGuestRead, System: nameOwner, Value: 1}, {Workload: workGuestRead, System: nameGuest, Value: 12}, {Workload: workGuestRead, System: nameRoundTrip, Value: 5},
			{Workload: workTakeoverSlowest, System: nameLineage, Size: 20, Value: 400e6},
		},
	}
	byName := map[string]Goal{}
	for _, g := range goals(r) {
		byName[g.Goal] = g
	}
	require.Len(t, byName, 6)
	guest := byName["read a context as a guest, against the owner and two bare round trips"]
	require.InDelta(t, 12.0/11, guest.Ratio, 1e-9)
	require.False(t, guest.Reached)
	require.False(t, byName["8 processes, full durability, against the same"].Reached)
	require.True(t, byName["taking over the largest store, the slowest time, milliseconds"].Reached)
	extend := byName["extend, normal durability, in bursts, against one bare write of the same bytes"]
	require.Equal(t, 4.0, extend.Ratio, "the worst counts")
	require.False(t, extend.Reached)
	require.True(t, byName["read a whole history against the recursive query on the documented SQLite schema"].Reached)
	require.InDelta(t, 120, byName["opening the largest store, milliseconds"].Ratio, 1e-9)
}

func TestGoalsNotReached(t *testing.T) {
	r := &Report{
		Ratios: []Ratio{
			{Workload: workExtend, Size: 1000, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 5, Low: 2.5, High: 6},
			{Workload: workExtendOn, Size: 200_000, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 9, Low: 8, High: 10},
			{Workload: workFork, Size: 1000, System: nameLineage, Against: nameWrite, Durability: normal, Ratio: 5},
			{Workload: workRead, Size: 100_000, System: nameSQLite, Against: nameLineage, Durability: normal, Ratio: 2},
			{Workload: workWriters, Durability: full, System: nameLineage + oneWriter, Against: nameLineage + manyWriters, Ratio: 10},
		},
		Rows: []Row{
			{Workload: workExtendOn, System: nameLineage, Size: 200_000, CPUNanos: 7000}, {Workload: workExtendOn, System: nameWrite, Size: 200_000, CPUNanos: 700},
			{Workload: workPackedBeside, System: nameLineage, Size: 10, Value: 54},
		},
	}
	var found []Goal
	for _, g := range goals(r) {
		require.False(t, g.Reached, g)
		found = append(found, g)
	}
	require.Len(t, found, 6)
	require.True(t, found[0].Unsure, "the limit is among the rounds")
	require.False(t, found[1].Unsure)
	require.Contains(t, found[1].Measured, "7.00 µs")
	var out bytes.Buffer
	require.NoError(t, (&Report{Goals: found}).WriteGoals(&out))
	require.Contains(t, out.String(), "within the noise")
}
