package remote

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestBudget reserves and releases bytes of many messages. They never exceed the budget by more
// than one message, and a message alone is always accepted.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := new(budget)
		peers := make([]*peer, rapid.IntRange(1, 12).Draw(t, "peers"))
		for i := range peers {
			peers[i] = new(peer)
		}
		all := make(map[*reservation]bool)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(all) > 0 && rapid.IntRange(0, 3).Draw(t, "give") == 0 {
				for h := range all {
					b.release(h)
					delete(all, h)
					break
				}
			} else {
				h := &reservation{peer: rapid.SampledFrom(peers).Draw(t, "peer")}
				alone := len(all) == 0
				n := rapid.IntRange(1, 2*peerBytes).Draw(t, "bytes")
				if b.reserve(h, n) {
					all[h] = true
					require.Equal(t, n, h.bytes)
				} else {
					require.False(t, alone)
				}
			}
			of, sum := make(map[*peer]int), 0
			for h := range all {
				if h != b.large {
					sum += h.bytes
					of[h.peer] += h.bytes
				}
			}
			require.Equal(t, sum, b.used)
			require.LessOrEqual(t, sum, totalBytes)
			for p, n := range of {
				require.Equal(t, n, p.bytes)
				require.LessOrEqual(t, n, peerBytes)
			}
		}
		for h := range all {
			b.release(h)
		}
		require.Zero(t, b.used)
		require.Nil(t, b.large)
	})
}

// raw connects to a server. The test writes the frames itself.
func raw(t *testing.T, s *Server) (*link, *inbox) {
	near, far := net.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(far) })
	t.Cleanup(func() {
		_ = near.Close()
		serving.Wait()
	})
	require.NoError(t, greet(near))
	l, in := newLink(near, 0), newInbox(near, admission{})
	w, who := newBody(), Process{PID: 1}
	process(w, &who)
	_, err := l.send(background, hello, 0, w.b)
	require.NoError(t, err)
	m, err := in.next()
	require.NoError(t, err)
	require.Equal(t, welcome, m.kind)
	return l, in
}

// TestUnfinishedMessages sends the first frames of many messages. The server keeps no more than its
// budget, refuses the others when they are complete, and continues.
func TestUnfinishedMessages(t *testing.T) {
	s := newServer(ServerOptions{})
	s.Open(memory(t))
	defer s.Close()
	l, in := raw(t, s)
	const n = 3 * peerBytes / maxFrame
	payload := make([]byte, maxFrame)
	for id := range uint64(n) {
		require.NoError(t, l.write(background, frame(request|more, id+1, payload)))
		s.budget.mu.Lock()
		used, large := s.budget.used, 0
		if s.budget.large != nil {
			large = s.budget.large.bytes
		}
		s.budget.mu.Unlock()
		require.LessOrEqual(t, used, peerBytes)
		require.LessOrEqual(t, large, maxFrame+messageBytes)
	}
	busy := 0
	for id := range uint64(n) {
		require.NoError(t, l.write(background, frame(request, id+1, []byte{0})))
		m, err := in.next()
		require.NoError(t, err)
		require.Equal(t, failed, m.kind)
		require.Equal(t, id+1, m.id)
		if _, err = read(m); errors.Is(err, ErrBusy) {
			busy++
		}
	}
	require.GreaterOrEqual(t, busy, n-peerBytes/maxFrame-1)
	require.Less(t, busy, n)
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	require.Zero(t, s.budget.used)
	require.Nil(t, s.budget.large)
}

// TestMalformedRequestsGiveTheirBytesBack sends requests that end the connection.
func TestMalformedRequestsGiveTheirBytesBack(t *testing.T) {
	s := newServer(ServerOptions{})
	s.Open(memory(t))
	defer s.Close()
	for name, f := range map[string][]byte{
		"empty": frame(request, 1, nil), "without a number": frame(request, 0, make([]byte, maxFrame)),
	} {
		l, in := raw(t, s)
		require.NoError(t, l.write(background, f), name)
		_, err := in.next()
		require.Error(t, err, name)
		s.budget.mu.Lock()
		require.Zero(t, s.budget.used, name)
		s.budget.mu.Unlock()
	}
}

// TestCancelledInTheMiddle cancels a large message before its last frame, while another message is
// being sent.
func TestCancelledInTheMiddle(t *testing.T) {
	s := newServer(ServerOptions{})
	s.Open(memory(t))
	defer s.Close()
	l, in := raw(t, s)
	payload := make([]byte, maxFrame)
	payload[0] = 0xff // no method has this number
	for _, f := range [][]byte{frame(request|more, 1, payload), frame(request|more, 2, payload), frame(cancel, 1, nil), frame(request, 2, payload)} {
		require.NoError(t, l.write(background, f))
	}
	m, err := in.next()
	require.NoError(t, err)
	require.Equal(t, uint64(2), m.id)
	_, err = read(m)
	require.ErrorIs(t, err, ErrMalformed)
	require.NotErrorIs(t, err, ErrBusy)
}

// TestBusyIsSentAgain sends more at once than the server keeps. All requests are done.
func TestBusyIsSentAgain(t *testing.T) {
	c := serve(t, memory(t), socketPipe, ServerOptions{}, ClientOptions{Durability: backend.Normal})
	defer c.Close()
	other := &peer{server: c.server}
	first, second := &reservation{peer: other}, &reservation{peer: other}
	require.True(t, c.server.budget.reserve(first, totalBytes)) // it is the only one
	require.Equal(t, first, c.server.budget.large)
	for used := 0; used < totalBytes; used += peerBytes {
		require.True(t, c.server.budget.reserve(&reservation{peer: new(peer)}, peerBytes))
	}
	require.False(t, c.server.budget.reserve(second, 1))
	var err error
	for wait := 20 * time.Millisecond; wait < 20*time.Second; wait *= 2 {
		ctx, cancel := context.WithTimeout(background, wait)
		_, err = c.Apply(ctx, saying("refused"), backend.Options{})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if !errors.Is(err, backend.ErrUncertain) {
			break
		} // the time was over before the refusal arrived
	}
	require.NotErrorIs(t, err, backend.ErrUncertain, "it was refused")
	done := make(chan error, 1)
	go func() {
		_, err := c.Apply(background, saying("kept"), backend.Options{})
		done <- err
	}()
	c.server.budget.release(first)
	require.NoError(t, <-done)
}

// TestHeartbeat connects to a server that takes long to open its store and has no progress. The
// client still receives messages.
func TestHeartbeat(t *testing.T) {
	clock := newTestClock()
	s := newServer(ServerOptions{Clock: clock})
	near, far := net.Pipe()
	var all sync.WaitGroup
	all.Go(func() { _ = s.Serve(far) })
	heard := make(chan struct{}, 100)
	all.Go(func() {
		c, err := Connect(background, near, ClientOptions{Opening: func(_, _ int64) { heard <- struct{}{} }})
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close()
	})
	<-heard // it has greeted
	for range 5 {
		for more := true; more; {
			select {
			case <-heard:
				more = false
			default:
				clock.advance(heartbeat)
			}
		}
	}
	s.Open(memory(t))
	all.Wait()
	s.Close()
}

// TestCloseEndsCalls closes a client while the server works on its request. The call ends.
func TestCloseEndsCalls(t *testing.T) {
	e := &wrapped{Engine: memory(t)}
	begun, finish := make(chan struct{}), make(chan struct{})
	e.thread = func(context.Context) (*structure.Thread, error) {
		close(begun)
		<-finish // ignores its context
		return nil, nil
	}
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{Grace: time.Millisecond})
	asked := make(chan error, 1)
	go func() {
		_, err := c.Thread(background, structure.ThreadID{})
		asked <- err
	}()
	<-begun
	require.NoError(t, c.Client.Close())
	require.ErrorIs(t, <-asked, backend.ErrClosed)
	close(finish)
	require.NoError(t, c.Close())
}

// TestCallWhileClosing calls a method when Close has begun and has not yet waited for calls. The
// call ends.
func TestCallWhileClosing(t *testing.T) {
	c := serve(t, memory(t), memoryPipe, ServerOptions{}, ClientOptions{})
	c.Client.closed.Store(true)
	_, err := c.Head(background)
	require.ErrorIs(t, err, backend.ErrClosed)
	require.True(t, c.calls.TryLock(), "the call that was refused is still counted")
	c.calls.Unlock()
	c.Client.closed.Store(false)
	require.NoError(t, c.Close())
}
