package bench

import (
	"context"
	"errors"
	"time"
)

const (
	nameServed = "lineage-postgres"
	nameRows   = "one-row-inserts"

	workServedRead  = "read on Postgres"
	workServedCold  = "connect and read on Postgres"
	workServedBytes = "bytes per message on Postgres, vacuumed"

	servedRead = 10_000
)

// servedShape is a number of processes, each with so many writers, which add so many messages a round.
type servedShape struct{ processes, writers, each int }

var (
	servedLone  = servedShape{1, 1, 100}
	servedMany  = servedShape{1, 64, 50}
	servedApart = servedShape{4, 16, 50}
)

// serverDelays are added to everything that is sent to the server.
var serverDelays = []time.Duration{0, time.Millisecond}

func workServed(shape servedShape, delay time.Duration) string {
	name := "commits on Postgres, one writer"
	switch {
	case shape.processes > 1:
		name = "commits on Postgres, " + count(shape.processes) + " processes of " + count(shape.writers) + " writers"
	case shape.writers > 1:
		name = "commits on Postgres, " + count(shape.writers) + " writers"
	}
	return name + delayed(delay)
}

func delayed(delay time.Duration) string {
	if delay == 0 {
		return ""
	}
	return ", " + delay.String() + " later"
}

// served measures this store on a Postgres server.
func (r *run) served(ctx context.Context) error {
	if r.postgres == "" {
		r.skip(Skipped{Workload: "served", System: namePostgres, Why: r.noPostgres})
		return nil
	}
	for _, measure := range []func(context.Context) error{r.servedCommits, r.servedReads} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// servedCommits compares a message per commit with a row per transaction, both synced.
func (r *run) servedCommits(ctx context.Context) (err error) {
	o, err := r.open(ctx, servedSystem(r.postgres, full))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	rows, err := r.schemaOf(ctx, nameRows, rowsTable)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.drop()) }()
	in := map[string]*schema{nameServed: o.store.(*servedStore).schema, nameRows: rows}
	names := []string{nameServed, nameRows}
	c := servedComparison{run: r, names: names, in: in, written: make(map[string]int)}
	return c.compareAll(ctx)
}

// schemaOf returns a new schema for a system, with its tables.
func (r *run) schemaOf(ctx context.Context, system string, statements ...string) (*schema, error) {
	dir, err := r.directory(system)
	if err != nil {
		return nil, err
	}
	made, err := newSchema(ctx, r.postgres, dir)
	if err != nil {
		return nil, err
	}
	if err := made.exec(ctx, statements...); err != nil {
		return nil, errors.Join(err, made.drop())
	}
	return made, nil
}

// servedComparison compares writers of some systems on a server.
type servedComparison struct {
	*run
	prefix  string // of the names of workloads
	names   []string
	in      map[string]*schema // by system
	written map[string]int     // messages, by system
	number  int                // of the last process
}

// compareAll compares all shapes, with and without a delay, and then the bytes of what was written.
func (c *servedComparison) compareAll(ctx context.Context) error {
	for _, delay := range serverDelays {
		for _, shape := range []servedShape{servedLone, servedMany, servedApart} {
			if err := c.compare(ctx, shape, delay); err != nil {
				return err
			}
		}
	}
	for _, name := range c.names {
		if err := c.servedBytes(ctx, c.prefix+workServedBytes, c.in[name], name, c.written[name]); err != nil {
			return err
		}
	}
	return nil
}

// compare compares processes of a shape, behind a delay to the server.
func (c *servedComparison) compare(ctx context.Context, shape servedShape, delay time.Duration) error {
	var all []contender
	for _, name := range c.names {
		group := &processGroup{}
		defer group.end()
		for range shape.processes {
			c.number++
			if err := group.begin(ctx, processWork{name, full, c.number, shape.writers, c.config.MessageBytes, serverPlace(c.in[name], delay)}); err != nil {
				return err
			}
		}
		all = append(all, contender{system: name, durability: full, elsewhere: true, size: c.in[name].wal, round: func(context.Context) (int, error) {
			n := shape.processes * shape.writers * shape.each
			c.written[name] += n
			return n, group.extend(shape.each)
		}})
	}
	return c.run.compare(ctx, subject{workload: c.prefix + workServed(shape, delay), unit: unitPerSec, rate: true}, all)
}

// servedBytes measures what messages take on the server.
func (r *run) servedBytes(ctx context.Context, workload string, in *schema, system string, messages int) error {
	if err := in.exec(ctx, `VACUUM`); err != nil {
		return err
	}
	size, err := in.size()
	r.fact(Row{Workload: workload, System: system, Size: messages, Unit: unitPerItem, Value: float64(size) / float64(messages)})
	return err
}

// servedReads compares reading a history with the recursive query, on open connections and on new ones:
// this store then reads its log again.
func (r *run) servedReads(ctx context.Context) (err error) {
	var warm, cold []contender
	for _, s := range []system{servedSystem(r.postgres, normal), postgresSystem(r.postgres, normal)} {
		o, err := r.open(ctx, s)
		if err != nil {
			return err
		}
		defer o.close() //nolint:errcheck // discarded
		b, err := r.servedHistory(ctx, s, o)
		if err != nil {
			return err
		}
		warm, cold = append(warm, reading(b, 0, 5, b.length)), append(cold, readingAgain(s, b))
	}
	if err := r.compare(ctx, subject{workload: workServedRead, size: servedRead}, warm); err != nil {
		return err
	}
	return r.compare(ctx, subject{workload: workServedCold, size: servedRead}, cold)
}

// servedHistory loads a history, and measures what it takes on the server.
func (r *run) servedHistory(ctx context.Context, s system, o *opened) (b *base, err error) {
	b = &base{opened: o, length: servedRead}
	if b.history, err = o.store.start(ctx); err != nil {
		return nil, err
	}
	if err := loadInParts(ctx, b.history, newMessages(&r.config, streamBase), b.length); err != nil {
		return nil, err
	}
	var in *schema
	switch st := o.store.(type) {
	case *servedStore:
		in = st.schema
	case *sqlStore:
		in = st.schema
	}
	return b, r.servedBytes(ctx, workServedBytes, in, s.name+", loaded", b.length)
}

// readingAgain is the contender that reads a history on new connections.
func readingAgain(s system, b *base) contender {
	read := reading(b, 0, 1, b.length)
	again := b.opened.store.(reopener)
	return contender{
		system: s.name, durability: s.durability, elsewhere: true,
		before: func(context.Context) error { return again.shut() },
		round: func(ctx context.Context) (int, error) {
			if err := again.openAgain(ctx); err != nil {
				return 0, err
			}
			if h, ok := b.history.(*lineageHistory); ok {
				found, err := h.store.store.Context(ctx, h.context.ID())
				if err != nil {
					return 0, err
				}
				h.context = found
			}
			return read.round(ctx)
		},
	}
}
