package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ClientOptions configure a client. A zero field means its default.
type ClientOptions struct {
	// Opening, when not nil, is called while the server opens the store. It gets the number of bytes read so far and
	// their total.
	Opening func(done, total int64)
	// Durability of commits that do not state one. Default Full, whatever the server's default is.
	Durability backend.Durability
	// Grace is how long a commit whose context has ended waits for its outcome, and how long
	// Close waits for calls. Default 1 s.
	Grace time.Duration
	Clock Clock
}

// Client is an engine that calls a server over a connection. It is safe for concurrent use.
type Client struct {
	reader // of the current state
	recent recent
	o      ClientOptions
	link   *link
	store  Store

	slots semaphore.Semaphore // limits requests without an answer, except waits
	waits semaphore.Semaphore

	mu      sync.Mutex
	last    uint64 // number of the last request
	pending map[uint64]*openRequest
	lost    error // why no more answers will come

	// calls is read-locked during a call. Close locks it and never unlocks it.
	calls   sync.RWMutex
	closed  atomic.Bool
	closing chan struct{}
	done    chan struct{} // closed when the connection has ended
}

// openRequest is a request without an answer.
type openRequest struct {
	answer   chan message
	progress chan counts // nil if the caller wants none
}

var (
	_ backend.Engine     = (*Client)(nil)
	_ backend.Identified = (*Client)(nil)
	_ backend.Impaired   = (*Client)(nil)
	_ backend.Packer     = (*Client)(nil)
	_ backend.Collector  = (*Client)(nil)
	_ backend.CopySource = (*Client)(nil)
)

// Connect returns the engine of the server at the other end of a connection. It waits until the server has opened its
// store. An error closes the connection, and so does closing the client.
func Connect(ctx context.Context, conn net.Conn, o ClientOptions) (*Client, error) {
	if o.Durability == backend.DefaultDurability {
		o.Durability = backend.Full
	}
	if o.Grace == 0 {
		o.Grace = time.Second
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	c := &Client{
		o: o, link: newLink(conn, 0), pending: make(map[uint64]*openRequest),
		slots: semaphore.New(maxRequests), waits: semaphore.New(maxWaits),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	c.reader.client = c
	c.recent.Client = c
	in := newInbox(conn, admission{})
	stop := context.AfterFunc(ctx, func() { c.link.fail(context.Cause(ctx)) })
	err := c.greet(in)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.link.fail(err)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	go c.receive(in)
	return c, nil
}

// greet sends the description of this process and waits until the store is open.
func (c *Client) greet(in *inbox) error {
	if err := greet(c.link.conn); err != nil {
		return err
	}
	w, who := newBody(), ThisProcess()
	process(w, &who)
	if _, err := c.link.send(context.Background(), hello, 0, w.b); err != nil {
		return err
	}
	for {
		m, err := in.next()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		w := &wire{b: m.body, reading: true}
		switch m.kind {
		case opening:
			var n counts
			if walkCounts(w, &n); w.end() == nil && c.o.Opening != nil {
				c.o.Opening(n.done, n.total)
			}
		case welcome:
			store(w, &c.store)
			return w.end()
		case failed:
			var why error
			if failure(w, &why); w.end() == nil {
				return why
			}
		default:
			w.fail("no welcome")
		}
		if w.err != nil {
			return w.err
		}
	}
}

// receive delivers answers until the connection ends.
func (c *Client) receive(in *inbox) {
	var err error
	for err == nil {
		var m message
		if m, err = in.next(); err == nil {
			err = c.deliver(m)
		}
	}
	c.link.fail(err)
	c.mu.Lock()
	c.lost = c.link.fault()
	c.mu.Unlock()
	close(c.done)
}

func (c *Client) deliver(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[m.id]
	switch m.kind {
	case answer, failed:
		if p != nil { // nil if the caller gave up
			delete(c.pending, m.id)
			p.answer <- m
		}
	case progress:
		var n counts
		w := &wire{b: m.body, reading: true}
		if walkCounts(w, &n); w.end() != nil {
			return w.err
		}
		if p != nil && p.progress != nil {
			select {
			case <-p.progress: // replace progress that was not read
			default:
			}
			p.progress <- n
		}
	default:
		return fmt.Errorf("%w: a server sent kind %d", ErrMalformed, m.kind)
	}
	return nil
}

// Store returns the description of the store.
func (c *Client) Store() Store { return c.store }

// Done returns a channel that is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close implements backend.Engine. It waits for running calls, at most ClientOptions.Grace, and closes the
// connection. The server keeps the store open.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	close(c.closing)
	late := time.AfterFunc(c.o.Grace, func() { c.link.fail(backend.ErrClosed) })
	defer late.Stop()
	c.calls.Lock()
	c.link.fail(backend.ErrClosed)
	<-c.done
	return nil
}

// ask is a request to send.
type ask struct {
	body     *wire
	code     uint8
	progress func(done, total int64)
	slots    semaphore.Semaphore
	ended    bool // by its context: it keeps its slot until the server was told so
	sent     bool // the server may have received it; it executes nothing of which it received a part
	id       uint64
}

// newAsk returns a request without arguments. The caller appends them to the body.
func (c *Client) newAsk(ctx context.Context, code uint8, snapshot uint64) *ask {
	w := newBody()
	w.b = append(w.b, code)
	w.Uint("target", &snapshot)
	var deadline uint64
	if at, ok := ctx.Deadline(); ok {
		deadline = uint64(max(c.o.Clock.Now()+time.Until(at), 1))
	}
	w.Uint("deadline", &deadline)
	return &ask{body: w, code: code}
}

// request sends a request and returns the body of the answer. While the server is busy, the request is sent again.
func (c *Client) request(ctx context.Context, a *ask) (*wire, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if a.body.err != nil {
		return nil, a.body.err
	}
	if !c.calls.TryRLock() { // only Close locks it
		return nil, errClosed
	}
	defer c.calls.RUnlock()
	if c.closed.Load() {
		return nil, errClosed
	}
	a.slots = c.slots
	if a.code == codeWait {
		a.slots = c.waits
	}
	if err := a.slots.Acquire(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if !a.ended {
			a.slots.Release()
		}
	}()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		w, err := c.try(ctx, a)
		if !errors.Is(err, ErrBusy) {
			return w, err
		}
		a.sent = false
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-c.closing:
			return nil, errClosed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Pauses before a request is sent again because the server had no space for it.
const (
	shortPause = 2 * time.Millisecond
	longPause  = 100 * time.Millisecond
)

// try sends a request once.
func (c *Client) try(ctx context.Context, a *ask) (*wire, error) {
	p := &openRequest{answer: make(chan message, 1)}
	if a.progress != nil {
		p.progress = make(chan counts, 1)
	}
	if err := c.register(a, p); err != nil {
		return nil, err
	}
	if begun, err := c.link.send(ctx, request, a.id, a.body.b); err != nil {
		c.forget(a.id)
		if begun {
			c.end(a)
		}
		return nil, err
	}
	a.sent = true
	return c.await(ctx, a, p)
}

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)

// register assigns a number to a request.
func (c *Client) register(a *ask, p *openRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return c.lost
	}
	c.last++
	a.id = c.last
	c.pending[a.id] = p
	return nil
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// await waits for the answer to a sent request.
func (c *Client) await(ctx context.Context, a *ask, p *openRequest) (*wire, error) {
	closing := c.closing
	if a.code != codeWait {
		closing = nil // Close waits for all other calls
	}
	for {
		select {
		case m := <-p.answer:
			select {
			case n := <-p.progress:
				a.progress(n.done, n.total)
			default:
			}
			return read(m)
		case n := <-p.progress:
			a.progress(n.done, n.total)
		case <-closing:
			c.forget(a.id)
			return nil, errClosed
		case <-c.done:
			select {
			case m := <-p.answer: // it was received before the connection ended
				return read(m)
			default:
			}
			c.forget(a.id)
			return nil, c.link.fault()
		case <-ctx.Done():
			return c.abandon(ctx, a, p)
		}
	}
}

// abandon gives up a request whose context has ended. For a commit it first waits for the outcome, at most
// ClientOptions.Grace.
func (c *Client) abandon(ctx context.Context, a *ask, p *openRequest) (*wire, error) {
	c.end(a)
	defer c.forget(a.id)
	if a.code != codeApply {
		return nil, context.Cause(ctx)
	}
	late := time.NewTimer(c.o.Grace)
	defer late.Stop()
	select {
	case m := <-p.answer:
		w, err := read(m)
		if err != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			err = context.Cause(ctx) // the commit was not applied
			a.sent = false
		}
		return w, err
	case <-c.done:
	case <-late.C:
	}
	return nil, context.Cause(ctx)
}

// end cancels a request. Its slot becomes free after that: the server counts it until it is cancelled.
func (c *Client) end(a *ask) {
	a.ended = true
	go func() {
		_, _ = c.link.send(context.Background(), cancel, a.id, newBody().b)
		a.slots.Release()
	}()
}

// cancel asks the server to end a request, and the snapshot or sequence that it created. It does not wait for an
// answer.
func (c *Client) cancel(id uint64) {
	go func() { _, _ = c.link.send(context.Background(), cancel, id, newBody().b) }()
}

// read returns the body of an answer, or the error in it.
func read(m message) (*wire, error) {
	w := &wire{b: m.body, reading: true}
	if m.kind == answer {
		return w, nil
	}
	var err error
	if failure(w, &err); w.end() != nil {
		return nil, w.err
	}
	return nil, err
}

// reader reads the current state of the server, or a snapshot.
type reader struct {
	client   *Client
	snapshot uint64       // number of the snapshot; 0 for the current state
	closed   *atomic.Bool // set when the snapshot is closed; nil for the current state
}

// recent answers reads of contexts with their state after the last commit of this client that stated their tip. Other
// reads go to the server.
type recent struct {
	*Client
	mu       sync.Mutex
	contexts map[structure.ContextID]backend.Context
}
