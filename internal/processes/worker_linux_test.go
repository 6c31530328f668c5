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

// workVariable makes the test binary a worker. Its value is a task in JSON.
const workVariable = "PROCESSES_TEST_WORKER"

// task is what a worker does.
type task struct {
	Dir, Name string
	// DSN, when not empty, names the server of the store. Dir is then for the search index.
	DSN    string
	Seed   uint64
	Shared []lineage.ContextID
	// Point is where the worker kills itself, the Nth time that it gets there.
	Point string
	Nth   int64
	// Idle makes it do nothing but own the store. Its point counts once it has read a line.
	Idle bool
}

// Points at which a worker kills itself.
const (
	beforeAppend = "before an append" // and after the answers to all earlier ones
	afterAppend  = "after an append, before its answer"
	whenLocked   = "between lock and listen"
	unlocking    = "between unlink and unlock"
)

var points = []string{beforeAppend, afterAppend, afterAppend, afterAppend, whenLocked, unlocking}

// report is a line that a worker writes when an operation begins, and again when it has ended.
type report struct {
	ID      string
	Op      string
	Context int // the index of a shared context, or -1
	Begin   int64
	End     int64 `json:",omitempty"`
	Limit   int64 `json:",omitempty"` // the time until its deadline
	// Expected is the message of the shared context after which the operation extends it.
	Expected string `json:",omitempty"`
	// Deleted is the context that the operation deletes, and Heir a fork of it.
	Deleted, Heir *lineage.ContextID `json:",omitempty"`
	Outcome       string             `json:",omitempty"`
	Error         string             `json:",omitempty"`
}

// Outcomes of operations.
const (
	done    = "done"
	refused = "refused"   // nothing was done, because of the state of the store
	noSpace = "disk full" // nothing was done
	unknown = "unknown"
	wrong   = "wrong"
)

// boot returns a time that is the same for all processes of the machine.
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
	heirs *lineage.Thread  // of forks of what it deletes
	n     int
}

// beWorker runs a worker, if this process is one.
func beWorker() {
	work := os.Getenv(workVariable)
	if work == "" {
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	w := &worker{out: bufio.NewWriter(os.Stdout)}
	err := json.Unmarshal([]byte(work), &w.task)
	if err == nil {
		err = w.run()
	}
	if err != nil {
		w.report(&report{Op: "worker", Context: -1, Outcome: wrong, Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

func (w *worker) report(r *report) {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = w.out.Write(append(b, '\n'))
	}
	if err := errors.Join(err, w.out.Flush()); err != nil {
		os.Exit(1) // its parent is gone
	}
}

// reach kills the process if this is its point.
func (w *worker) reach(point string) {
	if w.Point == point && atomic.AddInt64(&w.Nth, -1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (w *worker) run() error {
	if w.Idle {
		return w.idle()
	}
	w.rand = rand.New(rand.NewPCG(w.Seed, 0))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	engine, err := w.open()
	for err != nil {
		if !isFull(err) {
			return err
		}
		time.Sleep(10 * time.Millisecond) // until the disk has space
		engine, err = w.open()
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

// idle has the store open until the input ends.
func (w *worker) idle() error {
	nth := w.Nth
	w.Nth = 0
	engine, err := w.open()
	if err != nil {
		return err
	}
	w.report(&report{Op: "open", Context: -1})
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return engine.Close()
	}
	atomic.StoreInt64(&w.Nth, nth)
	w.report(&report{Op: "ready", Context: -1})
	_, _ = io.Copy(io.Discard, os.Stdin)
	return engine.Close()
}

// isFull reports whether the disk was full, for this process or another one.
func isFull(err error) bool { return strings.Contains(err.Error(), syscall.ENOSPC.Error()) }

// onServer opens a store on a server without durability.
func onServer(ctx context.Context, dsn string) (backend.Engine, error) {
	return postgres.Open(ctx, dsn, postgres.Options{Store: "shared", Unsafe: true})
}

func (w *worker) open() (backend.Engine, error) {
	if w.DSN != "" {
		return onServer(context.Background(), w.DSN)
	}
	o := sharing.Options{Options: embedded.Options{Durability: backend.Normal, SegmentSize: 256 << 10, OverlayBytes: 64 << 10, FS: files{vfs.OS(), w}}}
	o.Wait = loaded // an owner may be stopped while it has no socket
	o.Locked = func() error { w.reach(whenLocked); return nil }
	o.Unlocking = func() { w.reach(unlocking) }
	return sharing.Open(context.Background(), w.Dir, o)
}

// step does one operation, chosen at random.
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
	case p < 76:
		err = w.delete(ctx, r)
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
	w.report(r)
}

func (w *worker) measured(r *report, op string, do func() error) error {
	r.Op = op
	r.Begin = boot()
	w.report(r)
	return do()
}

// outcomeOf returns the outcome that the error of an operation means.
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
	case isFull(err), errors.Is(err, lineage.ErrReadOnly): // the disk of the owner is full
		if op == "merge" || op == "import" || op == "collect" || op == "prepare" {
			return unknown
		}
		return noSpace
	case op == "search": // the file of its index is replaced when others collect
		return refused
	case op == "read":
		if errors.Is(err, lineage.ErrExpired) || errors.Is(err, lineage.ErrNotFound) {
			return refused
		}
	case op == "merge" || op == "import" || op == "collect" || op == "prepare":
		if errors.Is(err, lineage.ErrExpired) || errors.Is(err, lineage.ErrNotFound) || errors.Is(err, lineage.ErrConflict) {
			return unknown
		}
	}
	return wrong
}

// extend adds a message to a shared context, after its last message.
func (w *worker) extend(ctx context.Context, r *report) error {
	r.Op, r.Context = "extend", w.rand.IntN(len(w.Shared))
	r.Begin = boot()
	c, err := w.store.Context(ctx, w.Shared[r.Context])
	if err != nil {
		w.report(r)
		return err
	}
	tip, expected, err := w.last(ctx, c)
	if err != nil {
		w.report(r)
		return err
	}
	r.Expected = expected
	r.Begin = boot()
	w.report(r)
	_, err = c.ExtendFrom(ctx, tip, lineage.User(r.ID))
	return err
}

// last returns the last message of a context.
func (w *worker) last(ctx context.Context, c *lineage.Context) (lineage.SpanRef, string, error) {
	all, err := c.Last(ctx, 1)
	if err != nil || len(all) == 0 {
		return lineage.SpanRef{}, "", err
	}
	text, err := w.store.Text(ctx, all[0])
	return all[0].Span, text, err
}

// counted is the key of a value that every update increments.
const counted = "counted"

func (w *worker) update(ctx context.Context) error {
	return w.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
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

// merge forks the worker's own context, extends the fork, merges it and deletes it.
func (w *worker) merge(ctx context.Context, id string) error {
	if w.own == nil {
		c, err := w.store.NewContext(ctx, lineage.ContextOptions{})
		if err != nil {
			return err
		}
		w.own = c
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

// Titles of threads that are deleted, and of those with their forks.
const (
	ofDeleted = "deleted"
	ofHeirs   = "heirs"
)

var (
	inheritedPrompt = "You count birds."
	inheritedModel  = "large"
)

// doomed is a context that has a fork in another thread, and a way to delete it.
type doomed struct {
	thread *lineage.Thread
	side   *lineage.Context
	heir   *lineage.Context
	remove func(ctx context.Context) error
}

// ways are the ways to delete a context: by itself, as a branch, with its thread.
var ways = []string{"context", "branch", "thread"}

// newDoomed creates a context to delete, with a fork in the thread of heirs.
func newDoomed(ctx context.Context, s *lineage.Store, heirs *lineage.Thread, way string) (d *doomed, err error) {
	d = new(doomed)
	d.thread, err = s.CreateThread(ctx, lineage.ThreadOptions{Title: ofDeleted, Overrides: lineage.Overrides{SystemPrompt: &inheritedPrompt}})
	if err != nil {
		return nil, err
	}
	main, err := d.thread.Active(ctx)
	if err != nil {
		return nil, err
	}
	model := lineage.Overrides{Model: &inheritedModel}
	if way == "branch" {
		d.side, err = d.thread.CreateBranch(ctx, "side", lineage.BranchOptions{Overrides: model})
	} else {
		d.side, err = main.Fork(ctx, lineage.ForkOptions{Overrides: model})
	}
	if err != nil {
		return nil, err
	}
	if d.heir, err = d.side.Fork(ctx, lineage.ForkOptions{Thread: heirs.ID()}); err != nil {
		return nil, err
	}
	d.remove = map[string]func(context.Context) error{
		"context": d.side.Delete,
		"branch":  func(ctx context.Context) error { return d.thread.DeleteBranch(ctx, "side") },
		"thread":  func(ctx context.Context) error { return d.thread.Delete(ctx) },
	}[way]
	return d, nil
}

// delete deletes a context that has a fork in another thread.
func (w *worker) delete(ctx context.Context, r *report) error {
	var d *doomed
	err := w.measured(r, "prepare", func() (err error) {
		if w.heirs == nil {
			if w.heirs, err = w.store.CreateThread(ctx, lineage.ThreadOptions{Title: ofHeirs}); err != nil {
				return err
			}
		}
		if d, err = newDoomed(ctx, w.store, w.heirs, ways[w.rand.IntN(len(ways))]); err == nil {
			r.Deleted, r.Heir = new(d.side.ID()), new(d.heir.ID())
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.measured(r, "delete", func() error { return d.remove(ctx) })
}

// reimport writes a bundle of the worker's own context and imports it into the same store.
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
	c, err := w.store.Context(ctx, w.Shared[w.rand.IntN(len(w.Shared))])
	if err == nil {
		_, err = c.All(ctx)
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

// fullOf returns the name of a file beside a store. The disk counts as full while the file exists.
func fullOf(dir string) string { return dir + ".full" }

// files is the file system of the system, with points at writes.
type files struct {
	vfs.FS
	w *worker
}

type file struct {
	vfs.File
	w *worker
}

func (f files) wrap(opened vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return file{opened, f.w}, nil
}

func (f files) OpenRW(name string) (vfs.File, error) { return f.wrap(f.FS.OpenRW(name)) }
func (f files) Create(name string) (vfs.File, error) { return f.wrap(f.FS.Create(name)) }

func (f file) WriteAt(b []byte, at int64) (int, error) {
	f.w.reach(beforeAppend)
	if _, err := os.Lstat(fullOf(f.w.Dir)); err == nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, syscall.ENOSPC
	}
	n, err := f.File.WriteAt(b, at)
	f.w.reach(afterAppend)
	return n, err
}
