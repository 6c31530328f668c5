package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// run is a running benchmark.
type run struct {
	config Config
	dir    string
	report Report
	// extendBytes and forkBytes are the bytes that an extend and a fork add to the journal.
	extendBytes, forkBytes int64
	dirs                   int
	// postgres is the server to measure, noPostgres the reason if there is none.
	postgres, noPostgres string
}

// Random streams of messages, one per use.
const (
	streamCalibrate = iota
	streamBase
	streamExtend
	streamStore
	streamImport
	streamCold
	streamOrder
	streamFirst
)

// workload is a kind of work, measured for all systems and sizes.
type workload struct {
	name string
	what string
	run  func(*run, context.Context) error
}

func workloads() []workload {
	return []workload{
		{"history", "extend, fork, read, window and edit at each length of history; the first extend and fork after the others worked by themselves", (*run).histories},
		{"sustained", "extends and forks without a pause, until the background has done its share", (*run).sustained},
		{"length", "fork a history of a million messages against the shortest, in turn", (*run).lengths},
		{"writers", "64 writers at once against one", (*run).writers},
		{"processes", "one store used by many processes: owner and guests, 8 processes at once, taking over from an owner that was killed", (*run).processes},
		{"served", "a store on a Postgres server: writers against one-row inserts, a step against a checkpoint row, reading against the documented schema, bytes", (*run).served},
		{"forms", "the forms that the store on a Postgres server was chosen from, as prototypes: typed rows, index entries, a log with a tail in memory", (*run).forms},
		{"programs", "short programs and some that stay on a large store on a Postgres server, directly and behind PgBouncer: time, memory, connections, round trips", (*run).programs},
		{"commands", "the program on a large store on a Postgres server: time and memory of commands, among them those that read all", (*run).commands},
		{"fanout", "100 subagents, each with the whole history, that say something", (*run).fanout},
		{"deep", "1,000 forks of forks", (*run).deep},
		{"wide", "forks of one place, among few and among many", (*run).wide},
		{"names", "operations on one branch or thread among few and among many; import of a conversation with as many branches", (*run).names},
		{"forkbytes", "what forks of a history take on disk", (*run).forkStorage},
		{"store", "extend, fork and window in a large store against a small one; opening and verifying it; bytes beside content", (*run).stores},
		{"import", "importing conversations, against inserting them", (*run).imports},
		{"dedupe", "what archives take on disk, and reading a message of them that nothing is cached of", (*run).dedupe},
		{"search", "full-text search in a long conversation", (*run).search},
	}
}

// Workloads returns the names of the workloads.
func Workloads() []string {
	var names []string
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

// Describe returns what a workload measures.
func Describe(name string) string {
	for _, w := range workloads() {
		if w.name == name {
			return w.what
		}
	}
	return ""
}

// Run runs the configured measurements. After an error or cancellation, the report has what was
// measured until then.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.setDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.checkRoom(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, "lineage-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &run{config: c, dir: dir}
	stop := r.startPostgres()
	defer stop()
	r.report.Environment = environment(&c)
	began := time.Now()
	for _, w := range workloads() {
		if !c.wants(w.name) {
			continue
		}
		if err = w.run(r, ctx); err != nil {
			err = fmt.Errorf("workload %s: %w", w.name, err)
			break
		}
	}
	r.report.Environment.Seconds = math.Round(time.Since(began).Seconds())
	r.report.Growth = growth(r.report.Rows)
	r.report.Goals = goals(&r.report)
	return &r.report, err
}

// skip reports a skipped measurement once.
func (r *run) skip(s Skipped) {
	if !slices.Contains(r.report.Skipped, s) {
		r.report.Skipped = append(r.report.Skipped, s)
	}
}

func (r *run) wantsSystem(name string) bool {
	return len(r.config.Systems) == 0 || slices.Contains(r.config.Systems, name)
}

// directory creates a directory for a store.
func (r *run) directory(name string) (string, error) {
	r.dirs++
	dir := filepath.Join(r.dir, fmt.Sprintf("%s-%d", name, r.dirs))
	return dir, os.MkdirAll(dir, 0o700)
}

// opened is an open store of a system.
type opened struct {
	system
	store store
	dir   string
}

func (r *run) open(ctx context.Context, s system) (*opened, error) {
	dir, err := r.directory(s.name)
	if err != nil {
		return nil, err
	}
	st, err := s.open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.name, err)
	}
	return &opened{s, st, dir}, nil
}

// close closes the store and removes its files.
func (o *opened) close() error {
	return errors.Join(o.store.close(), os.RemoveAll(o.dir))
}

// growth fits the growth of costs with the size, for every workload and system with rows of several
// sizes.
func growth(rows []Row) []Growth {
	type line struct{ workload, system, durability string }
	var order []line
	sizes, costs := map[line][]float64{}, map[line][]float64{}
	for _, row := range rows {
		l := line{row.Workload, row.System, row.Durability}
		if row.Size == 0 || row.Unit != unitNanos {
			continue
		}
		if sizes[l] == nil {
			order = append(order, l)
		}
		sizes[l], costs[l] = append(sizes[l], float64(row.Size)), append(costs[l], row.Value)
	}
	var all []Growth
	for _, l := range order {
		if e, ok := exponent(sizes[l], costs[l]); ok {
			all = append(all, Growth{l.workload, l.system, l.durability, int(slices.Min(sizes[l])), int(slices.Max(sizes[l])), e})
		}
	}
	return all
}
