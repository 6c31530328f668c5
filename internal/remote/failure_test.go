package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// cutConn closes after a number of bytes in a direction. The last call may pass a part of its
// bytes.
type cutConn struct {
	net.Conn
	written, read *atomic.Int64 // bytes until it closes
}

func (c cutConn) Write(b []byte) (int, error) {
	left := c.written.Add(-int64(len(b)))
	if left >= 0 {
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:max(int64(len(b))+left, 0)])
	_ = c.Conn.Close()
	return n, io.ErrClosedPipe
}

func (c cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if left := c.read.Add(-int64(n)); left < 0 {
		_ = c.Conn.Close()
		return max(n+int(left), 0), io.EOF
	}
	return n, err
}

func limit(n int64) *atomic.Int64 {
	l := new(atomic.Int64)
	l.Store(n)
	return l
}

const unlimited = 1 << 40

func memory(t testing.TB) *embedded.Engine {
	e, err := embedded.Open(background, "", embedded.Options{InMemory: true, Durability: backend.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func saying(body string) *structure.Commit {
	return &structure.Commit{Records: []structure.Record{
		structure.NewBlock("text/plain", content.BlockOrigin{}, time.UnixMilli(1), []byte(body)),
	}}
}

// talk commits a request of a session and reads, over a connection that may end early. It returns
// how many bytes passed in each direction.
func talk(t *testing.T, s *Server, once backend.Once, written, read int64) (sent, received int64, err error) {
	near, far := net.Pipe()
	w, r := limit(written), limit(read)
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(far) })
	defer wg.Wait()
	c, err := Connect(background, cutConn{near, w, r}, ClientOptions{})
	if err != nil {
		return written - w.Load(), read - r.Load(), err
	}
	defer func() { _ = c.Close() }()
	_, err = c.Apply(background, saying("once"), backend.Options{Once: &once, Durability: backend.Normal})
	if err == nil {
		_, err = c.Head(background)
	}
	return written - w.Load(), read - r.Load(), err
}

// TestCutAtEveryByte ends connections after every byte that is sent or received, and sends the
// request again. It is applied once.
func TestCutAtEveryByte(t *testing.T) {
	e := memory(t)
	s := newServer(ServerOptions{})
	s.Open(e)
	defer s.Close()
	sent, received, err := talk(t, s, backend.Once{Session: [16]byte{1}, Sequence: 1}, unlimited, unlimited)
	require.NoError(t, err)
	try := func(session byte, at int64, written, read int64) {
		before, err := e.Head(background)
		require.NoError(t, err)
		once := backend.Once{Session: [16]byte{session, byte(at), byte(at >> 8)}, Since: before, Sequence: 1}
		// Known content makes no commit, so it is erased before each request.
		_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindBlock, Content: content.Sum([]byte("once"))}}}, backend.Options{})
		require.NoError(t, err)
		_, _, err = talk(t, s, once, written, read)
		require.ErrorIs(t, err, ErrDisconnected, "cut at byte %d", at)
		if written != unlimited {
			require.NotErrorIs(t, err, backend.ErrUncertain, "nothing is executed of which a part is missing")
		}
		_, _, err = talk(t, s, once, unlimited, unlimited)
		require.NoError(t, err)
		after, err := e.Head(background)
		require.NoError(t, err)
		require.Equal(t, before.Number+2, after.Number, "the erasure and the request, once: cut at byte %d", at)
	}
	for at := range sent {
		try(2, at, at, unlimited)
	}
	for at := range received {
		try(3, at, unlimited, at)
	}
}

// wrapped is an engine of which a test replaces methods.
type wrapped struct {
	backend.Engine
	thread func(context.Context) (*structure.Thread, error)
	apply  func(context.Context) (backend.Receipt, error)
	runs   func(yield func(structure.RunInfo, error) bool)
}

func (e *wrapped) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	if e.thread != nil {
		return e.thread(ctx)
	}
	return e.Engine.Thread(ctx, id)
}

func (e *wrapped) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.apply != nil {
		return e.apply(ctx)
	}
	return e.Engine.Apply(ctx, c, o)
}

func (e *wrapped) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	if e.runs != nil {
		return e.runs
	}
	return e.Engine.Forks(ctx, run)
}

func (e *wrapped) Close() error { return nil }

func TestPanicsAreOfOneRequest(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	e.thread = func(context.Context) (*structure.Thread, error) { panic("thread") }
	e.apply = func(context.Context) (backend.Receipt, error) { panic("apply") }
	e.runs = func(yield func(structure.RunInfo, error) bool) {
		for range 100 {
			yield(structure.RunInfo{}, nil)
		}
		panic("runs")
	}
	c := serve(t, e, memoryPipe, ServerOptions{}, ClientOptions{})
	defer c.Close()
	_, err := c.Thread(background, structure.ThreadID{})
	require.ErrorIs(t, err, ErrPanicked)
	_, err = c.Apply(background, saying("one"), backend.Options{})
	require.ErrorIs(t, err, ErrPanicked)
	require.ErrorIs(t, err, backend.ErrUncertain)
	var last error
	for _, last = range c.Forks(background, structure.RunID{}) {
	}
	require.ErrorIs(t, last, ErrPanicked)
	_, err = c.Head(background)
	require.NoError(t, err, "other requests go on")
}

// TestCancelReachesTheServer ends the contexts of calls. The contexts of the engine end too, and
// the caller does not wait for the engine.
func TestCancelReachesTheServer(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	ended := make(chan error, 1)
	begun := make(chan struct{}, 1)
	e.thread = func(ctx context.Context) (*structure.Thread, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}
	e.apply = func(ctx context.Context) (backend.Receipt, error) {
		_, err := e.thread(ctx)
		return backend.Receipt{}, err
	}
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{Grace: time.Minute})
	defer c.Close()
	why := errors.New("enough")
	for _, call := range []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := c.Thread(ctx, structure.ThreadID{}); return err },
		func(ctx context.Context) error {
			_, err := c.Apply(ctx, saying("one"), backend.Options{})
			require.NotErrorIs(t, err, backend.ErrUncertain, "the engine said that it did nothing")
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(background)
		go func() {
			<-begun
			cancel(why)
		}()
		require.ErrorIs(t, call(ctx), why)
		require.Error(t, <-ended)
	}
}

// TestUncertain ends the context of a commit that takes longer than its caller waits.
func TestUncertain(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	begun, finish := make(chan struct{}), make(chan struct{})
	e.apply = func(context.Context) (backend.Receipt, error) {
		close(begun)
		<-finish
		return backend.Receipt{}, nil
	}
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{Grace: time.Nanosecond})
	defer c.Close()
	defer close(finish)
	ctx, cancel := context.WithCancel(background)
	go func() {
		<-begun
		cancel()
	}()
	_, err := c.Apply(ctx, saying("one"), backend.Options{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.ErrorIs(t, err, context.Canceled)
}

// testClock is a clock that a test sets.
type testClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers map[*testTimer]bool
}

type testTimer struct {
	at time.Duration
	f  func()
}

func newTestClock() *testClock { return &testClock{now: 1, timers: make(map[*testTimer]bool)} }

func (c *testClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &testTimer{c.now + d, f}
	c.timers[timer] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := c.timers[timer]
		delete(c.timers, timer)
		return was
	}
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now += d
	var due []func()
	for one := range c.timers {
		if one.at <= c.now {
			due = append(due, one.f)
			delete(c.timers, one)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// TestIdleSequences does not read sequences for less than the idle time, and for more.
func TestIdleSequences(t *testing.T) {
	clock := newTestClock()
	e := &wrapped{Engine: memory(t)}
	stopped := make(chan struct{})
	e.runs = func(yield func(structure.RunInfo, error) bool) {
		defer close(stopped)
		for yield(structure.RunInfo{}, nil) {
		}
	}
	c := serve(t, e, memoryPipe, ServerOptions{Clock: clock}, ClientOptions{})
	defer c.Close()
	next, stop := iter.Pull2(c.Forks(background, structure.RunID{}))
	defer stop()
	read := func(n int) (err error) {
		for i := 0; i < n && err == nil; i++ {
			_, err, _ = next()
		}
		return err
	}
	require.NoError(t, read(firstBatch))
	clock.advance(idle - 1)
	require.NoError(t, read(2*firstBatch), "within the time")
	clock.advance(idle - 1)
	require.NoError(t, read(4*firstBatch), "the time begins anew")
	clock.advance(idle)
	<-stopped
	require.ErrorIs(t, read(1), backend.ErrExpired)
}

// TestExpiredRequests sends a request whose deadline is over by the clock of the server. It is not
// begun.
func TestExpiredRequests(t *testing.T) {
	clock := newTestClock()
	e := &wrapped{Engine: memory(t)}
	e.apply = func(context.Context) (backend.Receipt, error) {
		t.Error("a commit was begun after its deadline")
		return backend.Receipt{}, nil
	}
	client := newTestClock()
	c := serve(t, e, memoryPipe, ServerOptions{Clock: clock}, ClientOptions{Clock: client})
	defer c.Close()
	clock.advance(time.Hour)
	ctx, cancel := context.WithTimeout(background, 30*time.Minute)
	defer cancel()
	_, err := c.Apply(ctx, saying("late"), backend.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// impatientConn is a connection whose write deadlines are over at once, after it was told so.
type impatientConn struct {
	net.Conn
	over *atomic.Bool
}

func (c impatientConn) SetWriteDeadline(at time.Time) error {
	if c.over.Load() && !at.IsZero() {
		at = time.Now()
	}
	return c.Conn.SetWriteDeadline(at)
}

// TestStoppedClient serves a client that reads nothing. It is disconnected.
func TestStoppedClient(t *testing.T) {
	e := memory(t)
	s := newServer(ServerOptions{})
	s.Open(e)
	near, far := net.Pipe() // without buffers
	ended := make(chan error, 1)
	over := new(atomic.Bool)
	go func() { ended <- s.Serve(impatientConn{far, over}) }()
	require.NoError(t, greet(near))
	over.Store(true)
	l := newLink(near, 0)
	w, who := newBody(), Process{PID: 1}
	process(w, &who)
	_, err := l.send(background, hello, 0, w.b)
	require.NoError(t, err)
	require.Error(t, <-ended, "it does not read its welcome")
	s.Close()
	_ = near.Close()
}

// TestStoppedServer calls a server that does not answer. The call ends at its deadline.
func TestStoppedServer(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	finish := make(chan struct{})
	e.thread = func(context.Context) (*structure.Thread, error) {
		<-finish // ignores its context
		return nil, nil
	}
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{})
	defer c.Close()
	defer close(finish)
	ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	_, err := c.Thread(ctx, structure.ThreadID{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAnotherVersion(t *testing.T) {
	for _, version := range []uint32{0, Version + 1, 1 << 31} {
		near, far := net.Pipe()
		go func() {
			_, _ = io.ReadFull(far, make([]byte, len(magic)+4))
			_, _ = far.Write(binary.LittleEndian.AppendUint32([]byte(magic), version))
		}()
		_, err := Connect(background, near, ClientOptions{})
		require.ErrorIs(t, err, ErrVersion)
		var failure *VersionError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, VersionError{Ours: Version, Theirs: version}, *failure)

		near, far = net.Pipe()
		s := newServer(ServerOptions{})
		served := make(chan error, 1)
		go func() { served <- s.Serve(far) }()
		_, err = near.Write(binary.LittleEndian.AppendUint32([]byte(magic), version))
		require.NoError(t, err)
		_, err = io.ReadFull(near, make([]byte, len(magic)+4))
		require.NoError(t, err)
		require.ErrorIs(t, <-served, ErrVersion)
		_ = near.Close()
	}
}

// TestTooManyRequests exceeds the limit of requests. The server disconnects the client.
func TestTooManyRequests(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	e.thread = func(ctx context.Context) (*structure.Thread, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{})
	defer c.Close()
	c.slots = semaphore.New(2 * maxRequests)
	var all sync.WaitGroup
	for range maxRequests + 1 {
		all.Go(func() {
			_, err := c.Thread(background, structure.ThreadID{})
			if !errors.Is(err, ErrDisconnected) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestClosingServer closes a server during reads, waits, sequences and commits.
func TestClosingServer(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	e.apply = func(context.Context) (backend.Receipt, error) {
		begun <- struct{}{}
		<-finish
		return backend.Receipt{Cursor: backend.Cursor{Number: 7}}, nil
	}
	e.runs = func(yield func(structure.RunInfo, error) bool) {
		for yield(structure.RunInfo{}, nil) {
		}
	}
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{})
	defer c.Close()
	snapshot, err := c.Snapshot(background)
	require.NoError(t, err)
	next, stop := iter.Pull2(c.Forks(background, structure.RunID{}))
	defer stop()
	_, err, _ = next()
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		r, err := c.Apply(background, saying("one"), backend.Options{})
		if err != nil || r.Number != 7 {
			t.Errorf("a commit that was begun is finished: %v, %v", r, err)
		}
	})
	<-begun
	all.Go(func() {
		if _, err := c.Wait(background, backend.Cursor{Number: 99}); !errors.Is(err, ErrMoved) && !errors.Is(err, ErrDisconnected) {
			t.Error(err)
		}
	})
	closed := make(chan struct{})
	go func() {
		c.server.Close()
		close(closed)
	}()
	// New requests are refused, as soon as the server has begun to close.
	for {
		if _, err = c.Head(background); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrMoved)
	_, err = c.Engine().Apply(background, saying("two"), backend.Options{})
	require.ErrorIs(t, err, ErrMoved)
	require.NotErrorIs(t, err, backend.ErrUncertain)
	close(finish)
	all.Wait()
	<-closed
	_, err = snapshot.Head(background)
	require.ErrorIs(t, err, backend.ErrExpired)
	for {
		if _, err, _ = next(); err != nil {
			break
		}
	}
	require.True(t, errors.Is(err, ErrMoved) || errors.Is(err, ErrDisconnected) || errors.Is(err, backend.ErrExpired), "%v", err)
}

// Engine returns the client as an engine.
func (s *served) Engine() backend.Engine { return s.Client }

// TestLargeMessages sends bodies of several frames from many goroutines at once.
func TestLargeMessages(t *testing.T) {
	c := serve(t, memory(t), socketPipe, ServerOptions{}, ClientOptions{Durability: backend.Normal})
	t.Cleanup(func() { _ = c.Client.Close(); c.server.Close(); c.wg.Wait() })
	var all sync.WaitGroup
	for i := range campaign.Rounds(4) {
		all.Go(func() {
			body := make([]byte, 3*maxFrame+i)
			copy(body, fmt.Sprint(i))
			found := saying(string(body))
			if _, err := c.Apply(background, found, backend.Options{}); err != nil {
				t.Error(err)
				return
			}
			id := found.Records[0].(*structure.Block).ID
			got, err := c.Blocks(background, []content.ID{id})
			if err != nil || len(got) != 1 || string(got[0].Body) != string(body) {
				t.Errorf("%d blocks, %v", len(got), err)
			}
		})
	}
	all.Wait()
}
