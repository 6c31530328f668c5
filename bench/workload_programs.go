package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/pgcluster"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/postgres"
	"github.com/lineage-store/lineage/structure"
)

const (
	workPrograms = "short programs on Postgres"

	nameDirect = nameServed
	namePooled = nameServed + ", PgBouncer"

	programEvery = 300 * time.Millisecond // 200 a minute
	residents    = 4
	residentRest = 50 * time.Millisecond // between its messages
	programReads = 20
	programAdds  = 2
	threadLength = 1_000
)

// programWork is what a process of this workload does: a short program opens a store, reads, adds and ends; one that
// stays adds messages until its input ends.
type programWork struct {
	Place, Store, Context string
	Stays                 bool
	Number, Size          int
}

// programResult is what a process found out, in nanoseconds.
type programResult struct {
	Open, Read, Add, Close time.Duration
	Extends                []time.Duration // of a process that stays
	Trips, Connections     int64
	Memory                 uint64 // the largest resident
}

// programVariable makes a program that calls Process a process of this workload.
const programVariable = "LINEAGE_BENCH_PROGRAM"

// programs measures many processes that come and go in one large store, besides some that stay.
func (r *run) programs(ctx context.Context) (err error) {
	if r.config.Postgres != PrivatePostgres {
		r.skip(Skipped{Workload: "programs", System: namePostgres, Why: "it needs a private server, with PgBouncer"})
		return nil
	}
	server, err := pgcluster.Start(pgcluster.Options{Dir: r.dir, Settings: []string{"max_connections=200", "shared_buffers=256MB", "max_wal_size=2GB"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := server.StartPooler(); err != nil {
		return err
	}
	contexts, err := r.loadThreads(ctx, server.DSN("postgres"))
	if err != nil {
		return err
	}
	for name, place := range map[string]string{nameDirect: server.DSN("postgres"), namePooled: server.PooledDSN("postgres")} {
		if err := r.programsAt(ctx, name, place, server.DSN("postgres"), contexts); err != nil {
			return err
		}
	}
	return nil
}

// loadThreads fills a store with threads of as many messages each, and returns their contexts.
func (r *run) loadThreads(ctx context.Context, place string) (contexts []string, err error) {
	engine, err := postgres.Open(ctx, place, postgres.Options{Store: "bench", Durability: lineage.Normal, Unsafe: true})
	if err != nil {
		return nil, err
	}
	s := lineage.New(engine)
	defer func() { err = errors.Join(err, s.Close()) }()
	all := newMessages(&r.config, streamStore)
	for left := r.config.StoreMessages; left > 0; left -= threadLength {
		thread, err := s.CreateThread(ctx, lineage.ThreadOptions{Title: fmt.Sprint("thread ", len(contexts))})
		if err != nil {
			return nil, err
		}
		c, err := thread.Active(ctx)
		if err != nil {
			return nil, err
		}
		var items []lineage.Item
		for _, m := range all.some(min(left, threadLength)) {
			items = append(items, lineage.User(string(m)))
		}
		if _, err := c.Extend(ctx, items...); err != nil {
			return nil, err
		}
		contexts = append(contexts, c.ID().String())
		if r.config.Progress != nil && len(contexts)%100 == 0 {
			r.config.Progress(fmt.Sprintf("loading %s: %d threads", workPrograms, len(contexts)))
		}
	}
	return contexts, nil
}

// programsAt runs the processes on a server.
func (r *run) programsAt(ctx context.Context, name, place, direct string, contexts []string) (err error) {
	at := func(i int) string { return contexts[(i*7919)%len(contexts)] }
	var stay []*program
	defer func() {
		for _, p := range stay {
			_, failed := p.end()
			err = errors.Join(err, failed)
		}
	}()
	for i := range residents {
		p, err := startProgram(ctx, programWork{place, "bench", at(i), true, 1_000_000 + i, r.config.MessageBytes})
		if err != nil {
			return err
		}
		stay = append(stay, p)
	}
	watching, stop := context.WithCancel(ctx)
	connections := make(chan int64, 1)
	go func() { connections <- mostConnections(watching, direct) }()

	all, failed := runPrograms(ctx, max(r.config.Programs, 1), func(i int) programWork {
		return programWork{place, "bench", at(residents + i), false, i, r.config.MessageBytes}
	})
	stop()
	most := <-connections
	var extends []time.Duration
	var memory uint64
	for _, p := range stay {
		result, err := p.end()
		if err != nil {
			return err
		}
		extends, memory = append(extends, result.Extends...), max(memory, result.Memory)
	}
	stay = nil
	if failed != nil {
		return failed
	}
	r.programRows(name, all, extends)
	var trips, conns int64
	var largest uint64
	for _, p := range all {
		trips, conns, largest = max(trips, p.Trips), max(conns, p.Connections), max(largest, p.Memory)
	}
	fact := func(what, unit string, value float64) {
		r.fact(Row{Workload: workPrograms + ": " + what, System: name, Durability: full, Size: r.config.StoreMessages, Unit: unit, Value: value})
	}
	fact("largest memory of one", unitBytes, float64(largest))
	fact("largest memory of one that stays", unitBytes, float64(memory))
	fact("most messages to the server of one, connecting included", unitCount, float64(trips))
	fact("most connections of one", unitCount, float64(conns))
	fact("most connections of the server", unitCount, float64(most))
	return nil
}

// runPrograms runs short programs, one every programEvery, and waits for all of them.
func runPrograms(ctx context.Context, n int, workOf func(i int) programWork) ([]programResult, error) {
	all := make([]programResult, n)
	failed := make([]error, n)
	var going sync.WaitGroup
	for i := range n {
		going.Go(func() {
			p, err := startProgram(ctx, workOf(i))
			if err == nil {
				all[i], err = p.end()
			}
			failed[i] = err
		})
		time.Sleep(programEvery)
	}
	going.Wait()
	return all, errors.Join(failed...)
}

// programRows adds the times of the programs' steps, and of messages of programs that stay, to the report.
func (r *run) programRows(name string, all []programResult, extends []time.Duration) {
	times := func(what string, all []time.Duration) {
		slices.Sort(all)
		of := func(share float64) float64 { return float64(all[min(int(share*float64(len(all))), len(all)-1)]) }
		r.report.Rows = append(r.report.Rows, Row{
			Workload: workPrograms + ": " + what, System: name, Durability: full, Size: r.config.StoreMessages, Unit: unitNanos,
			Value: of(0.5), Low: of(0.25), High: of(0.75), Rounds: 1, Operations: len(all),
		}, Row{
			Workload: workPrograms + ": " + what + ", slowest of a hundred", System: name, Durability: full, Size: r.config.StoreMessages, Unit: unitNanos,
			Value: of(0.99), Low: of(0.99), High: of(1), Rounds: 1, Operations: len(all),
		})
	}
	pick := func(of func(programResult) time.Duration) (picked []time.Duration) {
		for _, p := range all {
			picked = append(picked, of(p))
		}
		return picked
	}
	times("open", pick(func(p programResult) time.Duration { return p.Open }))
	times("read 20", pick(func(p programResult) time.Duration { return p.Read }))
	times("add 2", pick(func(p programResult) time.Duration { return p.Add }))
	times("close", pick(func(p programResult) time.Duration { return p.Close }))
	times("one message of a process that stays", extends)
}

// mostConnections returns the largest number of clients that the server had until the context ended.
func mostConnections(ctx context.Context, place string) (most int64) {
	conn, err := pgx.Connect(ctx, place)
	if err != nil {
		return 0
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only looked
	for ctx.Err() == nil {
		var n int64
		if conn.QueryRow(ctx, `SELECT count(*) - 1 FROM pg_stat_activity WHERE backend_type = 'client backend'`).Scan(&n) == nil {
			most = max(most, n)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return most
}

// program is a running process of the workload.
type program struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProgram(ctx context.Context, w programWork) (*program, error) {
	work, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), programVariable+"="+string(work))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &program{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// end waits until the process ends, and returns its result.
func (p *program) end() (result programResult, err error) {
	_ = p.in.Close()
	err = json.NewDecoder(p.out).Decode(&result)
	if failed := p.Wait(); failed != nil {
		err = failed
	}
	return result, err
}

// beProgram does the work of a process, and prints the result.
func beProgram(ctx context.Context, work string) error {
	var w programWork
	if err := json.Unmarshal([]byte(work), &w); err != nil {
		return err
	}
	var trips, connections atomic.Int64
	var result programResult
	lap := time.Now()
	next := func(d *time.Duration) { *d, lap = time.Since(lap), time.Now() }

	pool, err := countingPool(ctx, w.Place, &trips, &connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	engine, err := postgres.New(ctx, pool, postgres.Options{Store: w.Store, MustExist: true, Unsafe: true})
	if err != nil {
		return err
	}
	s := lineage.New(engine)
	next(&result.Open)
	id, err := structure.ParseID[lineage.ContextID](w.Context)
	if err != nil {
		return err
	}
	c, err := s.Context(ctx, id)
	if err != nil {
		return err
	}
	read := 0
	for _, err := range c.Entries(ctx, lineage.Window{Last: programReads}) {
		if err != nil {
			return err
		}
		read++
	}
	if read != programReads {
		return fmt.Errorf("%d messages instead of %d", read, programReads)
	}
	next(&result.Read)
	all := newMessages(&Config{MessageBytes: w.Size, Seed: 2}, uint64(w.Number))
	add := func() error {
		_, err := c.Extend(ctx, lineage.User(string(all.one())))
		return err
	}
	if w.Stays {
		result.Extends, err = addUntilInputEnds(add)
	}
	for i := 0; i < programAdds && !w.Stays && err == nil; i++ {
		err = add()
	}
	if err != nil {
		return err
	}
	next(&result.Add)
	if err := s.Close(); err != nil {
		return err
	}
	next(&result.Close)
	result.Trips, result.Connections, result.Memory = trips.Load(), connections.Load(), mostResident()
	return json.NewEncoder(os.Stdout).Encode(result)
}

// countingPool returns a pool that counts its connections, and what they send.
func countingPool(ctx context.Context, place string, trips, connections *atomic.Int64) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(place)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		conn, err := dial(ctx, network, address)
		return &tripCounter{conn, trips}, err
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// addUntilInputEnds adds messages until the input of the process ends, and returns how long each took.
func addUntilInputEnds(add func() error) (extends []time.Duration, err error) {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for {
		begun := time.Now()
		if err := add(); err != nil {
			return nil, err
		}
		extends = append(extends, time.Since(begun))
		select {
		case <-ended:
			return extends, nil
		case <-time.After(residentRest):
		}
	}
}

// tripCounter counts what is sent.
type tripCounter struct {
	net.Conn
	trips *atomic.Int64
}

func (c *tripCounter) Write(b []byte) (int, error) {
	c.trips.Add(1)
	return c.Conn.Write(b)
}
