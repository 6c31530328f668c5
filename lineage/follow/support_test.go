package follow

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// testing.TB and rapid.T both are.
type tester interface {
	require.TestingT
	Helper()
}

// fakeClock is a clock that only advance moves.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []fakeTimer
}

type fakeTimer struct {
	at time.Time
	c  chan time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.Now()} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) At(at time.Time) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := fakeTimer{at, make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	c.fire()
	return t.c
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fire()
}

func (c *fakeClock) fire() {
	var later []fakeTimer
	for _, t := range c.timers {
		if t.at.After(c.now) {
			later = append(later, t)
		} else {
			t.c <- c.now
		}
	}
	c.timers = later
}

// following is a run in the background.
type following struct {
	cancel context.CancelFunc
	done   chan error
	events chan Event
	all    []Event
}

// start starts a run, and waits until it has read everything.
func start(t tester, store *lineage.Store, o Options) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{cancel: cancel, done: make(chan error, 1), events: make(chan Event, 100_000)}
	o.Events = func(e Event) { f.events <- e }
	go func() { f.done <- Run(ctx, store, o) }()
	f.await(t, func(e Event) bool { return e.Kind == Waiting })
	return f
}

// hangs bounds the wait for what happens at once on a machine that does nothing else.
const hangs = 2 * time.Minute

// await waits for an event, and returns it.
func (f *following) await(t tester, is func(Event) bool) Event {
	t.Helper()
	for hang := time.After(hangs); ; {
		select {
		case e := <-f.events:
			f.all = append(f.all, e)
			if is(e) {
				return e
			}
		case err := <-f.done:
			f.done <- err
			require.Fail(t, "the run has ended", "%v", err)
			panic(err)
		case <-hang:
			require.Fail(t, "no such event", "%+v", f.all)
			panic("hangs")
		}
	}
}

// pollUntil lets the clock pass polls until an event has come. The run sets the time of its next poll when it waits, which
// may be after the clock has passed.
func (f *following) pollUntil(t tester, clock *fakeClock, is func(Event) bool) {
	t.Helper()
	limit := time.Now().Add(hangs)
	for seen := len(f.all); ; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(limit), "no such event: %+v", f.all)
		clock.advance(pollEvery)
		f.drain()
		if slices.ContainsFunc(f.all[seen:], is) {
			return
		}
		select {
		case err := <-f.done:
			f.done <- err
			require.Fail(t, "the run has ended", "%v", err)
			panic(err)
		default:
		}
	}
}

// drain takes the events that have come.
func (f *following) drain() {
	for len(f.events) > 0 {
		f.all = append(f.all, <-f.events)
	}
}

// stop ends the run.
func (f *following) stop(t tester) {
	t.Helper()
	f.cancel()
	require.ErrorIs(t, <-f.done, context.Canceled)
}

// home is the home directory of a user with agents.
type home struct {
	dir       string
	sentinels int
}

func newHome(t testing.TB) *home {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &home{dir: dir}
}

func (h *home) environment() *Environment {
	return &Environment{Home: h.dir, OS: "linux", Getenv: func(string) string { return "" }}
}

func (h *home) options() Options {
	return Options{Environment: h.environment(), Machine: Machine{ID: strings.Repeat("ab", machineSize), Name: "a machine", Secret: "of the machine"}}
}

func (h *home) path(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

// project is a folder of Claude Code.
func (h *home) project() string { return h.path(".claude", "projects", "-work") }

// write replaces a file.
func (h *home) write(t tester, path string, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// append appends to a file.
func (h *home) append(t tester, path string, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(content)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// caughtUp waits until runs have seen all changes that were made before: changes are reported in order.
func (h *home) caughtUp(t tester, runs ...*following) {
	t.Helper()
	h.sentinels++
	id := fmt.Sprintf("00000000-0000-0000-0000-%012d", h.sentinels)
	path := filepath.Join(h.project(), id+".jsonl")
	h.write(t, path, line(id, "s"+id, "", "user", "sentinel"))
	for _, f := range runs {
		f.await(t, func(e Event) bool { return e.Kind == Read && e.Path == path && e.Bytes > 0 })
		f.await(t, func(e Event) bool { return e.Kind == Waiting })
	}
}

// line returns a line of a session of Claude Code.
func line(session, id, parent, role, text string) string {
	l := map[string]any{
		"type": role, "uuid": id, "parentUuid": nil, "sessionId": session, "cwd": "/src/app", "timestamp": nextTime(),
		"message": map[string]any{"role": role, "content": text},
	}
	if parent != "" {
		l["parentUuid"] = parent
	}
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// session returns the id of a session and a file name for it.
func session(n int) (id, name string) {
	id = fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
	return id, id + ".jsonl"
}

// onlyBranch returns the entries of the only branch of a thread.
func onlyBranch(t *testing.T, store *lineage.Store, sourceID string) (all []*lineage.Entry) {
	t.Helper()
	thread, err := store.FindThread(t.Context(), sourceID)
	require.NoError(t, err)
	branches, err := thread.Branches(t.Context())
	require.NoError(t, err)
	require.Len(t, branches, 1)
	for e, err := range store.History(t.Context(), branches[0].Head, lineage.Window{}) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// texts returns the messages of the main branch of a thread, nil if there is no thread.
func texts(t tester, store *lineage.Store, sourceID string) (all []string) {
	t.Helper()
	ctx := context.Background()
	thread, err := store.FindThread(ctx, sourceID)
	if err != nil {
		require.ErrorIs(t, err, lineage.ErrNotFound)
		return nil
	}
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	for e, err := range main.Entries(ctx, lineage.Window{}) {
		require.NoError(t, err)
		text, err := store.Text(ctx, e)
		require.NoError(t, err)
		var message struct {
			Content string `json:"content"`
		}
		if json.Unmarshal([]byte(text), &message) == nil && message.Content != "" {
			text = message.Content
		}
		all = append(all, text)
	}
	return all
}

// compressed returns 256 to 64 Ki bytes in the form of zstd, in one block.
func compressed(b []byte) []byte {
	frame := binary.LittleEndian.AppendUint32(nil, 0xfd2fb528)
	frame = append(frame, 1<<6|1<<5) // the size is in two bytes
	frame = binary.LittleEndian.AppendUint16(frame, uint16(len(b)-256))
	block := uint32(len(b))<<3 | 1
	return append(append(frame, byte(block), byte(block>>8), byte(block>>16)), b...)
}

// failingRead is the reader of a format that fails while fails is set.
func failingRead(read func(context.Context, *archive.Input) iter.Seq2[*archive.Conversation, error], fails *atomic.Bool) func(context.Context, *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
		if fails.Load() {
			return func(yield func(*archive.Conversation, error) bool) { yield(nil, errors.New("for a test")) }
		}
		return read(ctx, in)
	}
}

var lineTimes atomic.Int64

// nextTime returns the time of a line: each is later than the one before.
func nextTime() string {
	return time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC).Add(time.Duration(lineTimes.Add(1)) * time.Second).Format(time.RFC3339)
}
