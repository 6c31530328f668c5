package remote

import (
	"context"
	"iter"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// feeding is an engine whose feed is one large commit again and again.
type feeding struct {
	backend.Engine
	fed func()
}

func (e feeding) Feed(context.Context, backend.Cursor) iter.Seq2[*structure.Commit, error] {
	return func(yield func(*structure.Commit, error) bool) {
		c := saying(string(make([]byte, answerBytes+maxFrame)))
		for c.Number = 1; ; c.Number++ {
			e.fed()
			if !yield(c, nil) {
				return
			}
		}
	}
}

// feedRequest is a frame that asks for the feed.
func feedRequest(id uint64) []byte {
	w := &wire{b: []byte{codeFeed, 0, 0}}
	walkFeed(w, &feedArgs{through: 1 << 60})
	return frame(request, id, w.b)
}

// TestUnreadAnswers asks for many large answers and reads them late. The server makes no more of them
// than its limit allows.
func TestUnreadAnswers(t *testing.T) {
	var made, received, most atomic.Int64
	s := newServer(ServerOptions{})
	s.Open(feeding{memory(t), func() {
		most.Store(max(most.Load(), made.Add(1)-received.Load()))
	}})
	defer s.Close()
	l, in := raw(t, s)
	const n = 3 * peerAnswers / answerBytes
	for id := range uint64(n) {
		require.NoError(t, l.write(background, feedRequest(id+1)))
	}
	for range n {
		m, err := in.next()
		require.NoError(t, err)
		require.Equal(t, answer, m.kind)
		require.Greater(t, len(m.body), answerBytes)
		received.Add(1)
	}
	require.LessOrEqual(t, most.Load(), int64(peerAnswers/answerBytes+1)) // one may just have been received
	require.GreaterOrEqual(t, made.Load(), int64(n))
}

// TestCommitsBesideUnreadAnswers commits while answers wait for their reader.
func TestCommitsBesideUnreadAnswers(t *testing.T) {
	applied := make(chan struct{})
	s := newServer(ServerOptions{})
	s.Open(applying{feeding{memory(t), func() {}}, applied})
	defer s.Close()
	l, in := raw(t, s)
	const n = 3 * peerAnswers / answerBytes
	for id := range uint64(n) {
		require.NoError(t, l.write(background, feedRequest(id+1)))
	}
	w := &wire{b: []byte{codeApply, 0, 0}}
	walkApply(w, &applyArgs{commit: saying("one")})
	require.NoError(t, l.write(background, frame(request, n+1, w.b)))
	<-applied
	// Requests that wait can be cancelled.
	for id := range uint64(n) {
		require.NoError(t, l.write(background, frame(cancel, id+1, nil)))
	}
	for {
		m, err := in.next()
		require.NoError(t, err)
		if m.id == n+1 {
			break
		}
	}
}

type applying struct {
	backend.Engine
	applied chan struct{}
}

func (e applying) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	defer close(e.applied)
	return e.Engine.Apply(ctx, c, o)
}

// TestManyBodies asks for one body more often than a message can hold it.
//
//test:norace
func TestManyBodies(t *testing.T) {
	e := memory(t)
	c := serve(t, e, socketPipe, ServerOptions{}, ClientOptions{Durability: backend.Normal})
	defer c.Close()
	said := saying(string(make([]byte, 32<<20)))
	_, err := c.Apply(background, said, backend.Options{})
	require.NoError(t, err)
	ids := make([]content.ID, maxMessage/(32<<20)+1)
	for i := range ids {
		ids[i] = said.Records[0].(*structure.Block).ID
	}
	_, err = c.Blocks(background, ids)
	require.ErrorIs(t, err, backend.ErrTooLarge)
	_, err = c.Head(background)
	require.NoError(t, err)
	got, err := c.Blocks(background, ids[:3])
	require.NoError(t, err)
	require.Len(t, got, 3)
}

// TestSpace takes and returns space in random order. It is never exceeded, and who waits gets it.
func TestSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := space{free: 10}
		var all sync.WaitGroup
		var used atomic.Int64
		for range rapid.IntRange(1, 30).Draw(t, "takers") {
			n := rapid.IntRange(1, 10).Draw(t, "n")
			ctx, stop := context.WithCancel(background)
			if rapid.IntRange(0, 3).Draw(t, "gives up") == 0 {
				stop()
			}
			all.Go(func() {
				defer stop()
				if s.take(ctx, n) != nil {
					return
				}
				if used.Add(int64(n)) > 10 {
					t.Error("too much")
				}
				used.Add(-int64(n))
				s.give(n)
			})
		}
		all.Wait()
		require.Equal(t, 10, s.free)
		require.Empty(t, s.waiting)
	})
}

// TestSilentConnection connects and sends no greeting. The connection ends.
func TestSilentConnection(t *testing.T) {
	for name, sent := range map[string][]byte{"nothing": nil, "a part": []byte(magic), "no process": frame(hello, 0, nil)[:4]} {
		clock := newTestClock()
		s := newServer(ServerOptions{Clock: clock})
		s.Open(memory(t))
		near, far := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(far) }()
		if len(sent) > 0 {
			if name == "no process" {
				require.NoError(t, greet(near))
			}
			_, err := near.Write(sent)
			require.NoError(t, err)
		}
		for waits := true; waits; {
			clock.advance(greetTimeout)
			select {
			case err := <-ended:
				require.ErrorIs(t, err, ErrDisconnected, name)
				waits = false
			default:
			}
		}
		_ = near.Close()
		s.Close()
	}
}

// TestManySilentConnections opens more connections without a greeting than a server keeps. It ends the
// oldest, and a client connects.
func TestManySilentConnections(t *testing.T) {
	clock := newTestClock() // which stands still
	e := memory(t)
	s := newServer(ServerOptions{Clock: clock})
	s.Open(e)
	ended := make(chan int, maxGreeting+10)
	var all sync.WaitGroup
	open := func(i int) net.Conn {
		near, far := net.Pipe()
		all.Go(func() {
			_ = s.Serve(far)
			ended <- i
		})
		_, err := near.Write([]byte("L")) // it is being served
		require.NoError(t, err)
		return near
	}
	for i := range maxGreeting + 10 {
		defer open(i).Close()
	}
	first := make(map[int]bool)
	for range 10 {
		first[<-ended] = true
	}
	for i := range 10 {
		require.True(t, first[i], "the oldest end")
	}
	l, _ := raw(t, s)
	require.NoError(t, l.fault())
	clock.advance(greetTimeout)
	for range maxGreeting {
		<-ended
	}
	require.Len(t, s.Guests(), 1, "who has greeted stays")
	s.Close()
	all.Wait()
}

// deadlineConn reports the write deadlines that are set.
type deadlineConn struct {
	net.Conn
	set chan time.Time
}

func (c deadlineConn) SetWriteDeadline(at time.Time) error {
	c.set <- at
	return c.Conn.SetWriteDeadline(at)
}

// TestClosingBesideASlowReader closes a server while a client reads a large answer. All its frames have
// to be read by one moment.
func TestClosingBesideASlowReader(t *testing.T) {
	s := newServer(ServerOptions{WriteTimeout: time.Hour})
	s.Open(feeding{memory(t), func() {}})
	near, far := net.Pipe()
	begun := time.Now()
	conn := deadlineConn{far, make(chan time.Time, 1000)}
	var all sync.WaitGroup
	all.Go(func() { _ = s.Serve(conn) })
	require.NoError(t, greet(near))
	l, in := newLink(near, 0), newInbox(near, admission{})
	w, who := newBody(), Process{PID: 1}
	process(w, &who)
	_, err := l.send(background, hello, 0, w.b)
	require.NoError(t, err)
	_, err = in.next()
	require.NoError(t, err)
	require.NoError(t, l.write(background, feedRequest(1)))
	_, err = near.Read(make([]byte, 1)) // the answer has begun
	require.NoError(t, err)
	all.Go(s.Close)
	limit := <-conn.set
	for limit.IsZero() || limit.After(begun.Add(30*time.Minute)) { // until the one of closing
		limit = <-conn.set
	}
	for buffer := make([]byte, 100_000); err == nil; {
		_, err = near.Read(buffer)
	}
	all.Wait()
	close(conn.set)
	for at := range conn.set {
		require.Equal(t, limit, at)
	}
}
