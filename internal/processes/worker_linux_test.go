package processes_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/sharing"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/postgres"
)

// workVariable makes the test binary a worker: its JSON is a task.
const workVariable = "PROCESSES_TEST_WORKER"

// task says what a worker does.
type task struct {
	Dir, Name string
	// DSN, when not empty, names a server that has the store. The directory is then for its search index.
	DSN    string
	Seed   uint64
	Shared []lineage.ContextID
	// Point is where the worker kills itself, when it comes there for the nth time.
	Point string
	Nth   int64
}

// The points at which a worker kills itself, beside those of its parent.
const (
	beforeAppend = "before an append" // and after the answers to all earlier ones
	afterAppend  = "after an append, before its answer"
	whenLocked   = "between lock and listen"
	unlocking    = "between unlink and unlock"
)

var points = []string{beforeAppend, afterAppend, afterAppend, afterAppend, whenLocked, unlocking}

// report is a line that a worker writes: when an operation begins, and when it has ended.
type report struct {
	ID      string
	Op      string
	Context int // the place of a shared context, else -1
	Begin   int64
	End     int64 `json:",omitempty"`
	Limit   int64 `json:",omitempty"` // its deadline, as a duration
	// Expected and Tip are messages of the shared context: the one that the operation follows,
	// and the last one that was met instead.
	Expected, Tip string `json:",omitempty"`
	Outcome       string `json:",omitempty"`
	Error         string `json:",omitempty"`
}

// Outcomes of operations.
const (
	done    = "done"
	refused = "refused" // nothing was done, because of what is there
	noRoom  = "no room" // nothing was done
	unknown = "unknown"
	wrong   = "wrong"
)

// boot returns a time on which all processes of the machine agree.
func boot() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// worker is a process that uses a store until its input ends.
type worker struct {
	task
	store *lineage.Store
	rand  *rand.Rand
	out   *bufio.Writer
	own   *lineage.Context // into which it merges
	n     int
}

// beWorker runs a worker, if this process is one.
func beWorker() {
	is := os.Getenv(workVariable)
	if is == "" {
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	w := &worker{out: bufio.NewWriter(os.Stdout)}
	err := json.Unmarshal([]byte(is), &w.task)
	if err == nil {
		err = w.run()
	}
	if err != nil {
		w.say(&report{Op: "worker", Context: -1, Outcome: wrong, Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

func (w *worker) say(r *report) {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = w.out.Write(append(b, '\n'))
	}
	if err := errors.Join(err, w.out.Flush()); err != nil {
		os.Exit(1) // its parent is gone
	}
}

// come kills the process if it has come to its point.
func (w *worker) come(point string) {
	if w.Point == point && atomic.AddInt64(&w.Nth, -1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (w *worker) run() error {
	w.rand = rand.New(rand.NewPCG(w.Seed, 0))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var engine backend.Engine
	for engine == nil {
		var err error
		if engine, err = w.open(); err != nil && !isFull(err) {
			return err
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // until there is room
		}
	}
	w.store = lineage.New(engine)
	for ctx.Err() == nil {
		w.step()
	}
	if err := w.store.Close(); err != nil && !isFull(err) {
		return err
	}
	return nil
}

// isFull reports whether the disk was full, also for another process.
func isFull(err error) bool { return strings.Contains(err.Error(), syscall.ENOSPC.Error()) }

// onServer opens a store on a server that may lose what it has when its machine stops.
func onServer(ctx context.Context, dsn string) (backend.Engine, error) {
	return postgres.Open(ctx, dsn, postgres.Options{Store: "shared", Unsafe: true})
}

func (w *worker) open() (backend.Engine, error) {
	if w.DSN != "" {
		return onServer(context.Background(), w.DSN)
	}
	o := sharing.Options{Options: embedded.Options{Durability: backend.Normal, SegmentSize: 256 << 10, OverlayBytes: 64 << 10, FS: files{vfs.OS(), w}}}
	o.Wait = loaded // an owner may be stopped while it has no socket
	o.Locked = func() error { w.come(whenLocked); return nil }
	o.Unlocking = func() { w.come(unlocking) }
	return sharing.Open(context.Background(), w.Dir, o)
}

// step does one operation.
func (w *worker) step() {
	w.n++
	limit := 20 * time.Second
	if w.rand.IntN(10) == 0 {
		limit = time.Duration(1+w.rand.IntN(100)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r := &report{ID: fmt.Sprintf("%s-%d", w.Name, w.n), Context: -1, Limit: int64(limit)}
	var err error
	switch p := w.rand.IntN(100); {
	case p < 40:
		err = w.extend(ctx, r)
	case p < 60:
		err = w.measured(r, "update", func() error { return w.update(ctx) })
	case p < 70:
		err = w.measured(r, "create", func() error {
			_, err := w.store.CreateThread(ctx, lineage.ThreadOptions{Title: r.ID})
			return err
		})
	case p < 82:
		err = w.measured(r, "merge", func() error { return w.merge(ctx, r.ID) })
	case p < 88:
		err = w.measured(r, "import", func() error { return w.reimport(ctx) })
	case p < 92:
		err = w.measured(r, "collect", func() error {
			_, err := w.store.Collect(ctx, lineage.CollectOptions{KeepReflog: -1})
			return err
		})
	case p < 96:
		err = w.measured(r, "read", func() error { return w.read(ctx) })
	default:
		err = w.measured(r, "search", func() error { return w.search(ctx) })
	}
	r.End, r.Outcome = boot(), outcomeOf(ctx, r.Op, err)
	if err != nil {
		r.Error = err.Error()
	}
	w.say(r)
}

func (w *worker) measured(r *report, op string, do func() error) error {
	r.Op = op
	r.Begin = boot()
	w.say(r)
	return do()
}

// outcomeOf says what an operation's error says of what was done.
func outcomeOf(ctx context.Context, op string, err error) string {
	switch {
	case err == nil:
		return done
	case errors.Is(err, lineage.ErrUncertain):
		return unknown
	case errors.Is(err, lineage.ErrTipMoved):
		return refused
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded): // the owner's clock may be a little ahead
		return unknown // an operation of several commits may have done some of them
	case isFull(err), errors.Is(err, lineage.ErrReadOnly): // the owner gives the store up
		if op == "merge" || op == "import" || op == "collect" {
			return unknown
		}
		return noRoom
	case op == "search": // the file of its index is replaced when others collect
		return refused
	case op == "read":
		if errors.Is(err, lineage.ErrExpired) || errors.Is(err, lineage.ErrNotFound) {
			return refused
		}
	case op == "merge" || op == "import" || op == "collect":
		if errors.Is(err, lineage.ErrExpired) || errors.Is(err, lineage.ErrNotFound) || errors.Is(err, lineage.ErrConflict) {
			return unknown
		}
	}
	return wrong
}

// extend adds a message to a shared context, behind the one that it found there.
func (w *worker) extend(ctx context.Context, r *report) error {
	r.Op, r.Context = "extend", w.rand.IntN(len(w.Shared))
	r.Begin = boot()
	is, err := w.store.Context(ctx, w.Shared[r.Context])
	if err != nil {
		w.say(r)
		return err
	}
	tip, expected, err := w.last(ctx, is)
	if err != nil {
		w.say(r)
		return err
	}
	r.Expected = expected
	r.Begin = boot()
	w.say(r)
	_, err = is.ExtendFrom(ctx, tip, lineage.User(r.ID))
	return err
}

// last returns the last message of a context.
func (w *worker) last(ctx context.Context, is *lineage.Context) (lineage.SpanRef, string, error) {
	all, err := is.Last(ctx, 1)
	if err != nil || len(all) == 0 {
		return lineage.SpanRef{}, "", err
	}
	text, err := w.store.Text(ctx, all[0])
	return all[0].Span, text, err
}

// counted is the key of a value that every update makes greater by one.
const counted = "counted"

func (w *worker) update(ctx context.Context) error {
	return w.store.Update(ctx, func(tx *lineage.Tx) error {
		n := 0
		v, err := tx.Values(lineage.Owner{Scope: lineage.StoreScope}).Get(ctx, counted)
		switch {
		case err == nil:
			n, err = strconv.Atoi(string(v.JSON))
		case errors.Is(err, lineage.ErrNotFound):
			err = nil
		}
		if err != nil {
			return err
		}
		return tx.Values(lineage.Owner{Scope: lineage.StoreScope}).Set(ctx, counted, []byte(strconv.Itoa(n+1)))
	})
}

// merge forks the worker's own context, says something there, merges it and deletes the fork.
func (w *worker) merge(ctx context.Context, id string) error {
	if w.own == nil {
		is, err := w.store.NewContext(ctx, lineage.ContextOptions{})
		if err != nil {
			return err
		}
		w.own = is
	}
	fork, err := w.own.Fork(ctx, lineage.ForkOptions{})
	if err != nil {
		return err
	}
	if _, err := fork.Extend(ctx, lineage.Assistant(id), lineage.Assistant(strings.Repeat(id, 50))); err != nil {
		return err
	}
	if _, err := w.own.Merge(ctx, fork); err != nil {
		return err
	}
	return fork.Delete(ctx)
}

// reimport writes a bundle of the worker's own context and imports it again: the store has all of it.
func (w *worker) reimport(ctx context.Context) error {
	if w.own == nil {
		return nil
	}
	var b bytes.Buffer
	if _, err := bundle.Write(ctx, w.store, &b, bundle.WriteOptions{Contexts: []lineage.ContextID{w.own.ID()}}); err != nil {
		return err
	}
	_, err := bundle.Import(ctx, w.store, &b, bundle.ImportOptions{})
	return err
}

func (w *worker) read(ctx context.Context) error {
	for t, err := range w.store.Threads(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return err
		}
		if t == nil {
			return errors.New("no thread")
		}
	}
	is, err := w.store.Context(ctx, w.Shared[w.rand.IntN(len(w.Shared))])
	if err == nil {
		_, err = is.All(ctx)
	}
	return err
}

func (w *worker) search(ctx context.Context) (err error) {
	x, err := search.Open(ctx, w.store, w.Dir, search.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	_, err = x.Search(ctx, search.Query{Text: w.Name, Limit: 5})
	return err
}

// fullOf returns the name of a file beside a store. The disk counts as full while it is there.
func fullOf(dir string) string { return dir + ".full" }

// files are those of the system, with points at their writes.
type files struct {
	vfs.FS
	w *worker
}

type file struct {
	vfs.File
	w *worker
}

func (f files) wrap(is vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return file{is, f.w}, nil
}

func (f files) OpenRW(name string) (vfs.File, error) { return f.wrap(f.FS.OpenRW(name)) }
func (f files) Create(name string) (vfs.File, error) { return f.wrap(f.FS.Create(name)) }

func (f file) WriteAt(b []byte, at int64) (int, error) {
	f.w.come(beforeAppend)
	if _, err := os.Lstat(fullOf(f.w.Dir)); err == nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, syscall.ENOSPC
	}
	n, err := f.File.WriteAt(b, at)
	f.w.come(afterAppend)
	return n, err
}
