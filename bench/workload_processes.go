package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	workGuestRead     = "read a context, by role"
	workGuestExtend   = "extend, by role"
	workManyProcesses = "8 processes, one message per commit"
	workTakeover      = "take over a store whose owner was killed"

	workTakeoverSlowest = workTakeover + ", slowest"

	nameEngine    = "lineage, engine alone"
	nameOwner     = "lineage, owner"
	nameGuest     = "lineage, guest"
	nameRoundTrip = "bare round trip"

	manyProcesses = 8
	tailMessages  = 2_000 // added by an owner before it is killed
)

// processes compares the throughput of an owner, its guests and many processes.
func (r *run) processes(ctx context.Context) error {
	for _, measure := range []func(context.Context) error{r.roles, r.manyProcesses, r.takeover} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// roles compares the engine alone, an owner, and a guest on a socket.
func (r *run) roles(ctx context.Context) (err error) {
	dir, err := r.directory("roles")
	if err != nil {
		return err
	}
	alone, err := embedded.Open(ctx, filepath.Join(dir, "alone"), embedded.Options{Durability: backend.Normal})
	if err != nil {
		return err
	}
	stores := []*lineage.Store{lineage.New(alone)}
	defer func() {
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
	}()
	for range 2 { // the owner, and its guest
		s, err := lineage.Open(ctx, filepath.Join(dir, "shared"), lineage.Options{Durability: lineage.Normal})
		if err != nil {
			return err
		}
		stores = append(stores, s)
	}
	message := newMessages(&r.config, streamExtend).one()
	var reads, extends []contender
	for i, name := range []string{nameEngine, nameOwner, nameGuest} {
		c, err := stores[i].NewContext(ctx, lineage.ContextOptions{})
		if err != nil {
			return err
		}
		reads = append(reads, repeated(name, 1000, func() error { _, err := c.Tip(ctx); return err }))
		extends = append(extends, repeated(name, 500, func() error {
			_, err := c.Extend(ctx, lineage.User(string(message)))
			return err
		}))
	}
	trip, closeTrip, err := roundTrip(filepath.Join(dir, "s"))
	if err != nil {
		return err
	}
	defer closeTrip()
	bare := repeated(nameRoundTrip, 1000, trip)
	if err := r.compare(ctx, subject{workload: workGuestRead}, append(reads, bare)); err != nil {
		return err
	}
	return r.compare(ctx, subject{workload: workGuestExtend}, append(extends, bare))
}

func repeated(name string, n int, do func() error) contender {
	return contender{system: name, durability: normal, round: func(context.Context) (int, error) {
		for i := range n {
			if err := do(); err != nil {
				return i, err
			}
		}
		return n, nil
	}}
}

// roundTrip returns a function that sends 64 bytes over a Unix socket and back.
func roundTrip(path string) (trip func() error, end func(), err error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	near, err := net.Dial("unix", path)
	if err != nil {
		return nil, nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	go func() {
		b := make([]byte, 64)
		for {
			if _, err := io.ReadFull(far, b); err != nil {
				return
			}
			if _, err := far.Write(b); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64)
	return func() error {
			if _, err := near.Write(b); err != nil {
				return err
			}
			_, err := io.ReadFull(near, b)
			return err
		}, func() {
			_ = near.Close()
			_ = far.Close()
		}, nil
}

// manyProcesses compares this store with the documented schema on SQLite, both used by many
// processes.
func (r *run) manyProcesses(ctx context.Context) error {
	var all []contender
	for _, durability := range []string{normal, full} {
		for _, s := range []system{lineageSystem(durability), sqliteSystem(durability)} {
			if !r.wantsSystem(s.name) {
				continue
			}
			dir, err := r.directory("processes")
			if err != nil {
				return err
			}
			made, err := s.open(ctx, dir)
			if err != nil {
				return err
			}
			if err := made.close(); err != nil {
				return err
			}
			group := &processGroup{}
			defer group.end()
			for i := range manyProcesses {
				if err := group.begin(ctx, processWork{s.name, s.durability, i, 1, r.config.MessageBytes, dir}); err != nil {
					return err
				}
			}
			each := 200
			if durability == full {
				each = 25
			}
			all = append(all, contender{system: s.name, durability: durability, elsewhere: true, round: func(context.Context) (int, error) {
				return each * manyProcesses, group.extend(each)
			}})
		}
	}
	return r.compare(ctx, subject{workload: workManyProcesses, unit: unitPerSec, rate: true}, all)
}

// takeover kills the owner of a large store, and measures how long a guest waits for an answer.
func (r *run) takeover(ctx context.Context) error {
	if !r.wantsSystem(nameLineage) {
		return nil
	}
	dir, err := r.directory("takeover")
	if err != nil {
		return err
	}
	s := lineageSystem(normal)
	made, err := s.open(ctx, dir)
	if err != nil {
		return err
	}
	h, err := made.start(ctx)
	if err != nil {
		return err
	}
	all := newMessages(&r.config, streamStore)
	for left := r.config.StoreMessages; left > 0; left -= 10_000 {
		if err := h.load(ctx, all.some(min(left, 10_000))); err != nil {
			return err
		}
	}
	if err := made.close(); err != nil {
		return err
	}
	var guest *lineage.Store
	group := &processGroup{}
	defer func() { group.end() }()
	var slowest time.Duration
	if err := r.compare(ctx, subject{workload: workTakeover, size: r.config.StoreMessages}, []contender{{
		system: nameLineage, durability: normal,
		before: func(ctx context.Context) (err error) {
			group = &processGroup{}
			if err := group.begin(ctx, processWork{s.name, s.durability, 0, 1, r.config.MessageBytes, dir}); err != nil {
				return err
			}
			if err := group.extend(tailMessages); err != nil {
				return err
			}
			if guest, err = lineage.Open(ctx, filepath.Join(dir, "store"), lineage.Options{Durability: lineage.Normal}); err != nil {
				return err
			}
			if p, err := guest.Processes(ctx); err != nil || p.Owns {
				return errors.Join(err, errors.New("the store is not open in the other process"))
			}
			return group.all[0].Process.Kill()
		},
		round: func(ctx context.Context) (int, error) {
			begun := time.Now()
			_, err := guest.View().Head(ctx)
			slowest = max(slowest, time.Since(begun))
			return 1, err
		},
		after: func(context.Context) error {
			group.end()
			return guest.Close()
		},
	}}); err != nil {
		return err
	}
	r.fact(Row{Workload: workTakeoverSlowest, System: nameLineage, Durability: normal, Size: r.config.StoreMessages, Unit: unitNanos, Value: float64(slowest)})
	return nil
}

// processVariable makes a program that calls Process a process of this workload.
const processVariable = "LINEAGE_BENCH_PROCESS"

// processGroup is a group of processes that extend separate histories in one store.
type processGroup struct{ all []*benchProcess }

// processWork is what a process does: writers of a system add messages of a size. The number makes
// the messages differ from those of other processes. The store is in a directory, or on a server: see
// serverPlace.
type processWork struct {
	system, durability    string
	number, writers, size int
	place                 string
}

func (w processWork) String() string {
	return fmt.Sprintf("%s %s %d %d %d %s", w.system, w.durability, w.number, w.writers, w.size, w.place)
}

func parseWork(s string) (w processWork, err error) {
	f := strings.SplitN(s, " ", 6)
	if len(f) != 6 {
		return w, fmt.Errorf("%s is %q", processVariable, s)
	}
	w = processWork{system: f[0], durability: f[1], place: f[5]}
	_, err = fmt.Sscan(strings.Join(f[2:5], " "), &w.number, &w.writers, &w.size)
	return w, err
}

type benchProcess struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (g *processGroup) begin(ctx context.Context, w processWork) error {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), processVariable+"="+w.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &benchProcess{cmd, in, bufio.NewReader(out)}
	g.all = append(g.all, p)
	return p.done()
}

func (p *benchProcess) done() error {
	line, err := p.out.ReadString('\n')
	if err == nil && line != "done\n" {
		err = errors.New(strings.TrimSpace(line))
	}
	if err != nil {
		return fmt.Errorf("another process: %w", err)
	}
	return nil
}

// extend lets each writer of each process add n messages.
func (g *processGroup) extend(n int) error {
	for _, p := range g.all {
		if _, err := fmt.Fprintln(p.in, n); err != nil {
			return err
		}
	}
	for _, p := range g.all {
		if err := p.done(); err != nil {
			return err
		}
	}
	return nil
}

func (g *processGroup) end() {
	for _, p := range g.all {
		_ = p.in.Close()
	}
	for _, p := range g.all {
		_ = p.Wait()
	}
	g.all = nil
}

// Process does the work of a child process and exits, if the program was started as one. Programs
// must call it first.
func Process() {
	work, be := os.Getenv(processVariable), beProcess
	if program := os.Getenv(programVariable); program != "" {
		work, be = program, beProgram
	}
	if work == "" {
		return
	}
	if err := be(context.Background(), work); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beProcess(ctx context.Context, work string) error {
	w, err := parseWork(work)
	if err != nil {
		return err
	}
	extends, end, err := w.open(ctx)
	if err != nil {
		return err
	}
	fmt.Println("done")
	all := make([]*messages, len(extends))
	for i := range all {
		all[i] = newMessages(&Config{MessageBytes: w.size}, uint64(w.number)<<8+uint64(i))
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("done") {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, len(extends))
		for i, extend := range extends {
			wg.Go(func() {
				for range n {
					if errs[i] = extend(ctx, all[i].one()); errs[i] != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return end()
}

// open returns a function that adds a message for each writer, and one that closes the store.
func (w processWork) open(ctx context.Context) (extends []func(context.Context, []byte) error, end func() error, err error) {
	var st store
	switch w.system {
	case nameRows:
		return w.openRows(ctx)
	case nameTyped, nameEntries, nameTail:
		return w.openForm(ctx, prototypes[w.system])
	case nameServed:
		s := &servedStore{at: w.place, writers: w.writers, durability: w.durability}
		st, err = s, s.openAgain(ctx)
	case nameSQLite:
		s := newSQLiteStore(w.place, w.durability)
		s.next.Store(int64(w.number)<<40 + time.Now().UnixNano()%(1<<39)) // ids not used by other processes
		st, err = s, s.open(ctx, "")
	default:
		st, err = lineageSystem(w.durability).open(ctx, w.place)
	}
	for range w.writers {
		if err != nil {
			return nil, nil, err
		}
		var h history
		if h, err = st.start(ctx); err == nil {
			extends = append(extends, h.extend)
		}
	}
	return extends, st.close, err
}
