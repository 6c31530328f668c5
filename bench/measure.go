package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"time"
)

// contender is one side of a comparison.
type contender struct {
	system     string
	durability string
	// at is the size it is measured at, if sizes are compared; 0 means the size of the subject.
	at int
	// elsewhere is set if another process does the work.
	elsewhere bool
	// first, when not nil, does one operation at the start of a round, which is a row of its own:
	// other contenders have displaced its data from the CPU caches.
	first func(ctx context.Context) error
	// before, when not nil, prepares a round. It is not timed.
	before func(ctx context.Context) error
	// round does the work and returns the number of operations.
	round func(ctx context.Context) (operations int, err error)
	// after, when not nil, completes background work of a round. Its CPU time counts, its duration
	// does not.
	after func(ctx context.Context) error
	// size, when not nil, returns the bytes on disk.
	size func() (int64, error)
}

// side returns the contender's name in ratios.
func (c *contender) side() string {
	if c.at == 0 {
		return c.system
	}
	return c.system + ", " + count(c.at)
}

// subject is the topic of a comparison.
type subject struct {
	workload string
	size     int
	archive  string
	unit     string
	// rate makes the value operations per second instead of time per operation.
	rate bool
	// rounds, when not 0, overrides the configured number.
	rounds int
	warm   bool // no warm-up round
}

// slow is the number of rounds for slow measurements.
func slow(rounds int) int { return min(rounds, max(3, rounds/2)) }

// Units of rows.
const (
	unitNanos   = "ns/op"
	unitPerSec  = "op/s"
	unitBytes   = "bytes"
	unitPerItem = "bytes/message"
	unitRatio   = "ratio"
	unitCount   = "count"
)

// sample is a round of a contender.
type sample struct {
	wall, cpu   float64 // nanoseconds of one operation
	first       float64 // of the first operation, if measured separately
	allocs, mem float64
	grown       float64 // bytes on disk
	ops         int
}

// compare measures the contenders interleaved, and adds their rows and pairwise ratios to the
// report.
func (r *run) compare(ctx context.Context, s subject, contenders []contender) error {
	rounds := r.config.Rounds
	if s.rounds > 0 {
		rounds = s.rounds
	}
	samples := make([][]sample, len(contenders))
	order := rand.New(rand.NewPCG(r.config.Seed, streamOrder))
	start := 0
	if s.warm {
		start = 1
	}
	for round := start; round <= rounds; round++ { // round 0 warms up
		for _, i := range order.Perm(len(contenders)) { // side effects of one contender must not always hit the same one
			c := &contenders[i]
			r.config.Progress(fmt.Sprintf("%s, %s, size %d, round %d of %d", s.workload, c.side(), s.size, round, rounds))
			if err := ctx.Err(); err != nil {
				return err
			}
			one, err := sampleRound(ctx, c)
			if err != nil {
				return fmt.Errorf("%s of %s at %d: %w", s.workload, c.side(), s.size, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], one)
			}
		}
	}
	r.add(s, contenders, samples)
	s.workload += afterOthers
	contenders, samples = firsts(contenders, samples)
	r.add(s, contenders, samples)
	return nil
}

// add adds the rows of contenders and their ratios.
func (r *run) add(s subject, contenders []contender, samples [][]sample) {
	for i := range contenders {
		r.report.Rows = append(r.report.Rows, rowOf(s, &contenders[i], samples[i]))
	}
	for i := range contenders {
		for k := range contenders {
			if i != k && contenders[i].durability == contenders[k].durability {
				r.report.Ratios = append(r.report.Ratios, ratioOf(s, &contenders[i], &contenders[k], samples[i], samples[k]))
			}
		}
	}
}

// afterOthers is the suffix of rows for the first operation of each round.
const afterOthers = ", first after others"

// firsts returns the contenders with separate first operations, and their samples.
func firsts(contenders []contender, samples [][]sample) (measured []contender, of [][]sample) {
	for i, c := range contenders {
		if c.first == nil {
			continue
		}
		ones := make([]sample, len(samples[i]))
		for k, s := range samples[i] {
			ones[k] = sample{wall: s.first, ops: 1}
		}
		measured, of = append(measured, c), append(of, ones)
	}
	return measured, of
}

func sampleRound(ctx context.Context, c *contender) (sample, error) {
	var first time.Duration
	if c.first != nil {
		began := time.Now()
		if err := c.first(ctx); err != nil {
			return sample{}, err
		}
		first = time.Since(began)
	}
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return sample{}, err
		}
	}
	size := c.size
	if size == nil {
		size = func() (int64, error) { return 0, nil }
	}
	bytes, err := size()
	if err != nil {
		return sample{}, err
	}
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	cpu := processTime()
	start := time.Now()
	n, err := c.round(ctx)
	wall := time.Since(start)
	if err == nil && c.after != nil {
		err = c.after(ctx)
	}
	cpu = processTime() - cpu
	runtime.ReadMemStats(&m1)
	if err != nil {
		return sample{}, err
	}
	if n == 0 {
		return sample{}, fmt.Errorf("%s did nothing", c.system)
	}
	grown, err := size()
	if err != nil {
		return sample{}, err
	}
	each := float64(n)
	return sample{
		wall: float64(wall.Nanoseconds()) / each, first: float64(first.Nanoseconds()), cpu: float64(cpu.Nanoseconds()) / each,
		allocs: float64(m1.Mallocs-m0.Mallocs) / each, mem: float64(m1.TotalAlloc-m0.TotalAlloc) / each, grown: float64(grown-bytes) / each, ops: n,
	}, nil
}

func rowOf(s subject, c *contender, samples []sample) Row {
	var wall, cpu, allocs, mem []float64
	var grown float64
	for _, one := range samples {
		value := one.wall
		if s.rate {
			value = 1e9 / one.wall
		}
		wall, cpu = append(wall, value), append(cpu, one.cpu)
		allocs, mem = append(allocs, one.allocs), append(mem, one.mem)
		grown += one.grown / float64(len(samples)) // files grow in steps: the median is useless
	}
	row := Row{
		Workload: s.workload, System: c.system, Durability: c.durability, Size: s.size, Archive: s.archive, Unit: unitNanos,
		Value: median(wall), Low: quantile(wall, 0.25), High: quantile(wall, 0.75),
		CPUNanos: median(cpu), Allocations: math.Round(median(allocs)*10) / 10, AllocBytes: math.Round(median(mem)), WrittenBytes: grown,
		Rounds: len(samples), Operations: samples[0].ops,
	}
	if c.elsewhere {
		row.CPUNanos, row.Allocations, row.AllocBytes = 0, 0, 0 // they would measure the request
	}
	if s.unit != "" {
		row.Unit = s.unit
	}
	if c.at != 0 {
		row.Size = c.at
	}
	row.Noisy = row.High-row.Low > noisyAt*row.Value
	return row
}

// ratioOf compares the cost of an operation of a with that of b.
func ratioOf(s subject, a, b *contender, as, bs []sample) Ratio {
	ratios := make([]float64, len(as))
	for i := range as {
		ratios[i] = as[i].wall / bs[i].wall
	}
	return Ratio{
		Workload: s.workload, Size: s.size, Archive: s.archive, System: a.side(), Against: b.side(), Durability: a.durability,
		Ratio: median(ratios), Low: quantile(ratios, 0.25), High: quantile(ratios, 0.75),
	}
}
