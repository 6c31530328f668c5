// Package processes_test has many processes use one store while they are killed and stopped, and
// compares the store with the results that they reported. It has only tests.
package processes_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
)

func TestMain(m *testing.M) {
	beWorker()
	os.Exit(m.Run())
}

const (
	workers = 8
	shared  = 4 // contexts that all of them extend
	// season is how many processes are killed before the store is checked and replaced.
	season = 100
	// An operation may exceed its deadline by the sum of these: its own delay, the longest time
	// that a process is stopped, and the delay of a loaded machine.
	late    = time.Second
	stopped = time.Second
	loaded  = 2 * time.Minute
)

// TestManyProcesses has processes use a store in every way while they are killed at random and at
// named points, stopped and ended, and while the disk is full. The effect of each operation is in the
// store once or not at all, as its result says, and extensions of a context are linearizable.
//
//test:processes
func TestManyProcesses(t *testing.T) {
	campaign.Long(t)
	manyProcesses(t, campaign.Rounds(16), func() string { return "" })
}

// TestManyProcessesOnAServer is TestManyProcesses for a store on a PostgreSQL server.
//
//test:processes
func TestManyProcessesOnAServer(t *testing.T) {
	campaign.Long(t)
	manyProcesses(t, campaign.Rounds(8), func() string { return pgtest.DSN(t) })
}

// TestDeletionWhoseOwnerDies kills the owner of a store right before and right after the commit of a deletion by
// a guest. The deletion succeeds, and is applied once.
func TestDeletionWhoseOwnerDies(t *testing.T) {
	ctx := t.Context()
	for _, point := range []string{beforeAppend, afterAppend} {
		for _, way := range ways {
			t.Run(point+", "+way, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				work, err := json.Marshal(task{Dir: dir, Name: "owner", Point: point, Nth: 1, Idle: true})
				require.NoError(t, err)
				owner := exec.Command(os.Args[0])
				owner.Env, owner.Stderr = append(os.Environ(), workVariable+"="+string(work)), os.Stderr
				in, err := owner.StdinPipe()
				require.NoError(t, err)
				out, err := owner.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, owner.Start())
				t.Cleanup(func() { _ = owner.Process.Kill(); _ = owner.Wait() })
				lines := bufio.NewReader(out)
				await := func(op string) {
					t.Helper()
					var r report
					line, err := lines.ReadBytes('\n')
					require.NoError(t, err)
					require.NoError(t, json.Unmarshal(line, &r))
					require.Equal(t, op, r.Op, "%+v", r)
				}
				await("open")
				s, err := lineage.Open(ctx, dir, lineage.Options{Wait: time.Minute})
				require.NoError(t, err)
				defer s.Close()
				heirs, err := s.CreateThread(ctx, lineage.ThreadOptions{Title: ofHeirs})
				require.NoError(t, err)
				d, err := newDoomed(ctx, s, heirs, way)
				require.NoError(t, err)
				before, err := s.View().Head(ctx)
				require.NoError(t, err)
				_, err = io.WriteString(in, "\n")
				require.NoError(t, err)
				await("ready")

				require.NoError(t, d.remove(ctx))
				_ = in.Close()
				_ = owner.Wait()
				require.Equal(t, syscall.SIGKILL, owner.ProcessState.Sys().(syscall.WaitStatus).Signal())
				after, err := s.View().Head(ctx)
				require.NoError(t, err)
				require.Equal(t, before.Number+1, after.Number)
				_, err = d.side.Info(ctx)
				require.ErrorIs(t, err, lineage.ErrNotFound)
				o, err := d.heir.Effective(ctx)
				require.NoError(t, err)
				require.Equal(t, lineage.Overrides{SystemPrompt: &inheritedPrompt, Model: &inheritedModel}, o)
			})
		}
	}
}

func manyProcesses(t *testing.T, kills int, dsn func() string) {
	random := rand.New(rand.NewPCG(campaign.Seed(), 1))
	total := make(map[string]int)
	for left := kills; left > 0; left -= season {
		s := newField(t, random, dsn())
		s.play(min(left, season))
		s.check()
		for what, n := range s.counts {
			total[what] += n
		}
		t.Log(total) // also for campaigns that are ended early
		if t.Failed() {
			break
		}
	}
}

// field is a store and the processes that use it.
type field struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	dsn    string // of a server, if the store is there
	shared []lineage.ContextID
	begun  int

	mu      sync.Mutex
	reports map[string]report // the last of each operation
	counts  map[string]int
	reading sync.WaitGroup
}

// process is a worker.
type process struct {
	*exec.Cmd
	in    io.Closer
	point string
	ended chan struct{}
}

func newField(t *testing.T, random *rand.Rand, dsn string) *field {
	f := &field{t: t, random: random, dir: filepath.Join(t.TempDir(), "store"), dsn: dsn, reports: make(map[string]report), counts: make(map[string]int)}
	require.NoError(t, os.MkdirAll(f.dir, 0o700))
	s, err := f.open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	for i := range shared {
		c, err := s.NewContext(t.Context(), lineage.ContextOptions{})
		require.NoError(t, err)
		_, err = c.Extend(t.Context(), lineage.User(seedOf(i)))
		require.NoError(t, err)
		f.shared = append(f.shared, c.ID())
	}
	return f
}

func (f *field) open(ctx context.Context) (*lineage.Store, error) {
	if f.dsn == "" {
		return lineage.Open(ctx, f.dir, lineage.Options{Wait: time.Minute})
	}
	engine, err := onServer(ctx, f.dsn)
	if err != nil {
		return nil, err
	}
	return lineage.New(engine), nil
}

func seedOf(i int) string { return fmt.Sprint("seed ", i) }

// begin starts a process.
func (f *field) begin() *process {
	f.begun++
	work := task{Dir: f.dir, DSN: f.dsn, Name: fmt.Sprint("p", f.begun), Seed: f.random.Uint64(), Shared: f.shared}
	if f.dsn == "" && f.random.IntN(3) > 0 {
		work.Point = points[f.random.IntN(len(points))]
		work.Nth = 1
		if work.Point == beforeAppend || work.Point == afterAppend {
			work.Nth = int64(1 + f.random.IntN(60))
		}
	}
	b, err := json.Marshal(work)
	require.NoError(f.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workVariable+"="+string(b))
	cmd.Stderr = os.Stderr
	input, in, err := os.Pipe()
	require.NoError(f.t, err)
	cmd.Stdin = input
	out, err := cmd.StdoutPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, cmd.Start())
	require.NoError(f.t, input.Close())
	p := &process{Cmd: cmd, in: in, point: work.Point, ended: make(chan struct{})}
	f.reading.Go(func() {
		defer close(p.ended)
		f.read(bufio.NewReader(out))
		_ = cmd.Wait()
		_ = in.Close()
	})
	return p
}

func (f *field) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r report
		if err := json.Unmarshal(line, &r); err != nil {
			f.t.Errorf("%s: %v", line, err)
			return
		}
		f.mu.Lock()
		f.reports[r.ID] = r
		f.mu.Unlock()
		if r.Outcome == wrong {
			f.t.Errorf("%s %s: %s", r.ID, r.Op, r.Error)
		}
		if over := time.Duration(r.End - r.Begin - r.Limit); r.End > 0 && over > late+stopped+loaded {
			f.t.Errorf("%s %s took %v, its deadline was after %v", r.ID, r.Op, time.Duration(r.End-r.Begin), time.Duration(r.Limit))
		} else if r.End > 0 && over > late {
			f.t.Logf("%s %s took %v, its deadline was after %v", r.ID, r.Op, time.Duration(r.End-r.Begin), time.Duration(r.Limit))
			f.count("operations more than 1 s beyond their deadline, with the machine loaded or processes stopped")
		}
	}
}

func (f *field) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[what]++
}

// play kills, stops and ends processes until so many were killed, with a full disk at times. Then it
// ends all.
func (f *field) play(kills int) {
	full := false
	fill := func(is bool) {
		if full == is {
			return
		}
		if full = is; full {
			f.count("disk full")
			require.NoError(f.t, os.WriteFile(fullOf(f.dir), nil, 0o600))
			return
		}
		require.NoError(f.t, os.Remove(fullOf(f.dir)))
	}
	var all []*process
	for range workers {
		all = append(all, f.begin())
	}
	for killed := 0; killed < kills && !f.t.Failed(); {
		time.Sleep(time.Duration(f.random.IntN(60)) * time.Millisecond) // no order is expected
		for i, p := range all {
			select {
			case <-p.ended:
				if p.ProcessState.Success() {
					f.count("ended")
				} else {
					f.count("killed " + p.point)
				}
				killed++
				all[i] = f.begin()
			default:
			}
		}
		switch p := all[f.random.IntN(len(all))]; f.random.IntN(12) {
		case 0, 1, 2:
			p.point = "at random"
			_ = p.Process.Signal(syscall.SIGKILL)
		case 3:
			f.stop(f.owner(all))
		case 4:
			_ = p.in.Close()
		case 6:
			_ = f.owner(all).in.Close()
		case 5:
			p = f.owner(all)
			p.point = "as the owner"
			_ = p.Process.Signal(syscall.SIGKILL)
		case 7:
			fill(true)
		case 8, 9, 10:
			fill(false)
		}
	}
	fill(false)
	for _, p := range all {
		_ = p.in.Close()
	}
	f.reading.Wait()
}

// owner returns the process that the lock file names, or any.
func (f *field) owner(all []*process) *process {
	b, _ := os.ReadFile(filepath.Join(f.dir, "LOCK"))
	var holder struct{ PID int }
	if json.Unmarshal(b, &holder) == nil {
		for _, p := range all {
			if p.Process.Pid == holder.PID {
				return p
			}
		}
	}
	return all[f.random.IntN(len(all))]
}

// stop stops a process for some time.
func (f *field) stop(p *process) {
	f.count("stopped")
	_ = p.Process.Signal(syscall.SIGSTOP)
	time.Sleep(time.Duration(f.random.IntN(int(stopped))))
	_ = p.Process.Signal(syscall.SIGCONT)
}

// check compares the store with the results that the processes reported.
func (f *field) check() {
	t, ctx := f.t, context.Background()
	s, err := f.open(ctx)
	require.NoError(t, err)
	for finding, err := range s.Verify(ctx, lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		t.Errorf("verify: %+v", finding)
	}
	found := make(map[string]int)
	last := make([]string, shared)
	for i, id := range f.shared {
		c, err := s.Context(ctx, id)
		require.NoError(t, err)
		all, err := c.All(ctx)
		require.NoError(t, err)
		for _, e := range all {
			last[i], err = s.Text(ctx, e)
			require.NoError(t, err)
			found[last[i]]++
		}
	}
	for thread, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		if info.Title != ofDeleted && info.Title != ofHeirs {
			found[info.Title]++
		}
	}
	f.deletions(s)
	updates := 0
	if v, err := s.Values(lineage.Owner{Scope: lineage.StoreScope}).Get(ctx, counted); err == nil {
		updates, err = strconv.Atoi(string(v.JSON))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	for _, name := range []string{"SOCKET", "SOCKET.new"} {
		_, err := os.Lstat(filepath.Join(f.dir, name))
		require.ErrorIs(t, err, os.ErrNotExist, "no socket is left")
	}
	f.compare(found, updates)
	f.linearize(found, last)
}

// deletions compares what was deleted with the results. Forks have inherited overrides in any case.
func (f *field) deletions(s *lineage.Store) {
	for _, r := range f.reports {
		if r.Op != "delete" {
			continue
		}
		c, err := s.Context(f.t.Context(), *r.Deleted)
		if err == nil {
			_, err = c.Info(f.t.Context())
		}
		switch r.Outcome {
		case done:
			require.ErrorIs(f.t, err, lineage.ErrNotFound, "%+v", r)
		case refused, noSpace:
			require.NoError(f.t, err, "%+v", r)
		}
		heir, err := s.Context(f.t.Context(), *r.Heir)
		require.NoError(f.t, err, "%+v", r)
		o, err := heir.Effective(f.t.Context())
		require.NoError(f.t, err)
		require.Equal(f.t, lineage.Overrides{SystemPrompt: &inheritedPrompt, Model: &inheritedModel}, o, "%+v", r)
	}
}

// compare compares the effects of operations with their results. found counts the messages and threads
// by the operation that created them.
func (f *field) compare(found map[string]int, updates int) {
	least, most := 0, 0
	for id, r := range f.reports {
		outcome := r.Outcome
		if outcome == "" {
			outcome = "cut off"
		}
		f.counts[r.Op+" "+outcome]++
		n := 1
		switch r.Outcome {
		case done:
			least++
		case refused, noSpace:
			n = 0
		}
		switch r.Op {
		case "update":
			most += n
		case "extend", "create":
			if r.Outcome == done {
				require.Equal(f.t, 1, found[id], "%+v", r)
			}
			require.LessOrEqual(f.t, found[id], n, "%+v", r)
		}
		if r.Op != "update" && r.Outcome == done {
			least--
		}
	}
	require.LessOrEqual(f.t, least, updates)
	require.LessOrEqual(f.t, updates, most)
	for id, n := range found {
		require.Equal(f.t, 1, n, id)
		_, known := f.reports[id]
		require.True(f.t, known || strings.HasPrefix(id, "seed "), id)
	}
}

// extension is an attempt to extend a context after the expected message.
type extension struct {
	context            int
	expected, id, init string
}

// register is the model of a context: an extension succeeds if the last message is the expected one.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		attempt, extended := input.(extension), output.(bool)
		last := state.(string)
		if last == "" {
			last = attempt.init
		}
		if extended {
			return last == attempt.expected, attempt.id
		}
		return last != attempt.expected, last
	},
}

// linearize checks that some order of the extensions explains their results. An extension without a
// result that is in the store may have happened at any time after its start.
func (f *field) linearize(found map[string]int, last []string) {
	const never = int64(1) << 62
	history := make([][]porcupine.Operation, shared)
	client := make(map[string]int)
	for id, r := range f.reports {
		extended := found[id] == 1
		if r.Op != "extend" || r.Expected == "" || !extended && r.Outcome != refused {
			continue
		}
		op := porcupine.Operation{Input: extension{r.Context, r.Expected, id, seedOf(r.Context)}, Call: r.Begin, Return: r.End, Output: extended}
		if r.Outcome != done && r.Outcome != refused {
			op.Return = never
		}
		name, _, _ := strings.Cut(id, "-")
		if _, known := client[name]; !known {
			client[name] = len(client)
		}
		op.ClientId = client[name]
		history[r.Context] = append(history[r.Context], op)
	}
	for i := range history {
		// At the end, the last message is the expected one.
		history[i] = append(history[i], porcupine.Operation{
			ClientId: len(client) + i, Input: extension{i, last[i], last[i], seedOf(i)}, Call: never, Return: never + 1, Output: true,
		})
		result := porcupine.CheckOperationsTimeout(register, history[i], 5*time.Minute)
		require.Equal(f.t, porcupine.Ok, result, "context %d", i)
		f.counts["extensions checked"] += len(history[i])
	}
}
