package remote

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Version is the version of the protocol.
const Version = 2

const magic = "LINEAGER"

// kind is the kind of a message.
type kind uint8

const (
	hello    kind = 1 // from the client: its process
	opening  kind = 2 // from the server: progress while it opens the store
	welcome  kind = 3 // from the server: the description of the store
	request  kind = 4
	answer   kind = 5
	failed   kind = 6 // the answer is an error
	progress kind = 7 // of a request that has no answer yet
	cancel   kind = 8 // of a request, and of the snapshot or sequence that it created

	// more is set in all frames of a message except the last.
	more kind = 0x80
)

const (
	// headerSize is the size of the header of a frame: the length of the payload, the kind and
	// the number of the request.
	headerSize = 4 + 1 + 8
	// maxFrame limits the size of a payload. Frames of other messages may be sent between those of a large one.
	maxFrame = 1 << 20
	// maxMessage limits the size of a message: the largest commit and its options.
	maxMessage = 1<<30 + 1<<20
	// readStep is the amount of memory that is allocated before the bytes have arrived.
	readStep = 64 << 10
)

// message is a whole message.
type message struct {
	kind    kind
	id      uint64
	body    []byte
	size    int  // of the payloads, according to their headers
	refused bool // the body was discarded
}

// newBody returns a wire for the body of a message. It leaves space for the header.
func newBody() *wire { return &wire{b: make([]byte, headerSize, 256)} }

// link sends messages. Frames of different messages may be interleaved.
type link struct {
	conn    net.Conn
	writing semaphore.Semaphore // one frame at a time
	mu      sync.Mutex
	timeout time.Duration // for writing a frame; 0 for none
	end     time.Time     // deadline for writing all frames; zero for none
	broken  error         // why the connection ended
}

func newLink(conn net.Conn, timeout time.Duration) *link {
	return &link{conn: conn, timeout: timeout, writing: semaphore.New(1)}
}

// send writes a message. Its body must be from newBody and is not changed. An error ends the connection, unless it is
// the error of the context. sent reports whether at least one whole frame was written.
func (l *link) send(ctx context.Context, k kind, id uint64, body []byte) (sent bool, err error) {
	if len(body)-headerSize > maxMessage {
		return false, fmt.Errorf("message of %d bytes, at most %d: %w", len(body)-headerSize, maxMessage, backend.ErrTooLarge)
	}
	for {
		n := min(len(body)-headerSize, maxFrame)
		var before [headerSize]byte // the bytes that the header overwrites
		copy(before[:], body)
		last := n == len(body)-headerSize
		if !last {
			k |= more
		}
		binary.LittleEndian.PutUint32(body, uint32(n))
		body[4] = byte(k)
		binary.LittleEndian.PutUint64(body[5:], id)
		err := l.write(ctx, body[:headerSize+n])
		copy(body, before[:])
		if err != nil {
			return sent, err
		}
		sent = true
		if last {
			return sent, nil
		}
		body, k = body[n:], k&^more
	}
}

// write writes a frame. If the context ends when only a part was written, the connection ends.
func (l *link) write(ctx context.Context, frame []byte) error {
	if err := l.writing.Acquire(ctx); err != nil {
		return err
	}
	defer l.writing.Release()
	if err := l.ready(); err != nil {
		return err
	}
	undo := l.interrupt(ctx)
	n, err := l.conn.Write(frame)
	interrupted := undo()
	if err == nil {
		return nil
	}
	if n == 0 && interrupted && !errors.Is(err, net.ErrClosed) {
		return context.Cause(ctx)
	}
	l.fail(err)
	return l.fault()
}

// interrupt makes writing fail when the context ends. The returned function undoes that, and reports whether writing
// was interrupted.
func (l *link) interrupt(ctx context.Context) func() bool {
	if ctx.Done() == nil {
		return func() bool { return false }
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = l.conn.SetWriteDeadline(time.Unix(1, 0))
		close(done)
	})
	return func() bool {
		if stop() {
			return false
		}
		<-done
		_ = l.conn.SetWriteDeadline(time.Time{})
		return true
	}
}

// ready sets the deadline for writing a frame, unless the connection is broken.
func (l *link) ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.setDeadline()
	}
	return l.broken
}

// setDeadline sets the deadline for writing a frame. l.mu must be held.
func (l *link) setDeadline() {
	switch {
	case !l.end.IsZero():
		_ = l.conn.SetWriteDeadline(l.end)
	case l.timeout > 0:
		_ = l.conn.SetWriteDeadline(time.Now().Add(l.timeout))
	}
}

// endBy sets the deadline for writing all frames, including one being written.
func (l *link) endBy(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
	l.setDeadline()
}

func (l *link) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// fail ends the connection. Only the first reason is kept.
func (l *link) fail(why error) {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = fmt.Errorf("%w: %w", ErrDisconnected, why)
	}
	l.mu.Unlock()
	_ = l.conn.Close()
}

// admission decides which messages an inbox keeps. The zero value keeps all.
type admission struct {
	// admit is called before a payload of n bytes is read. It reports whether to keep the message. Otherwise the
	// message is received without its body.
	admit func(m *message, n int) bool
	// partial is called when a message becomes incomplete or complete. It reports whether frames of any message are
	// missing.
	partial func(bool) error
	// dropped is called for a message that was cancelled before its last frame.
	dropped func(m *message)
}

// inbox reads frames and joins them to messages.
type inbox struct {
	admission
	r     *bufio.Reader
	begun map[uint64]*message // incomplete messages
}

func newInbox(r io.Reader, a admission) *inbox {
	return &inbox{r: bufio.NewReaderSize(r, readStep), begun: make(map[uint64]*message), admission: a}
}

// next returns the next message. Its body is not shared with later messages.
func (in *inbox) next() (message, error) {
	for {
		var header [headerSize]byte
		if _, err := io.ReadFull(in.r, header[:]); err != nil {
			return message{}, err
		}
		n := binary.LittleEndian.Uint32(header[:])
		k := kind(header[4])
		id := binary.LittleEndian.Uint64(header[5:])
		m := in.begun[id]
		if k == cancel && m != nil {
			if err := in.drop(m); err != nil {
				return message{}, err
			}
			m = nil
		}
		switch {
		case n > maxFrame || k&^more < hello || k&^more > cancel:
			return message{}, fmt.Errorf("%w: frame of kind %d with %d bytes", ErrMalformed, k, n)
		case m == nil:
			m = &message{kind: k &^ more, id: id}
		case m.kind != k&^more:
			return message{}, fmt.Errorf("%w: frame of kind %d within a message of kind %d", ErrMalformed, k, m.kind)
		}
		if m.size += int(n); m.size > maxMessage || k&more != 0 && n == 0 {
			return message{}, fmt.Errorf("%w: message of more than %d bytes, or of empty frames", ErrMalformed, maxMessage)
		}
		if err := in.receive(m, int(n), k&more != 0); err != nil {
			return message{}, err
		}
		if k&more == 0 {
			return *m, nil
		}
	}
}

// receive reads the payload of a frame into a message, or discards it.
func (in *inbox) receive(m *message, n int, continues bool) error {
	if !m.refused && in.admit != nil && !in.admit(m, n) {
		m.refused, m.body = true, nil
	}
	if was := in.begun[m.id] != nil; continues != was {
		if continues {
			in.begun[m.id] = m
		} else {
			delete(in.begun, m.id)
		}
		if err := in.reportPartial(); err != nil {
			return err
		}
	}
	if m.refused {
		_, err := io.CopyN(io.Discard, in.r, int64(n))
		return err
	}
	return in.read(m, n)
}

func (in *inbox) drop(m *message) error {
	delete(in.begun, m.id)
	if in.dropped != nil {
		in.dropped(m)
	}
	return in.reportPartial()
}

func (in *inbox) reportPartial() error {
	if in.partial == nil {
		return nil
	}
	return in.partial(len(in.begun) > 0)
}

// read appends n bytes to a message. Memory is allocated as they arrive.
func (in *inbox) read(m *message, n int) error {
	for n > 0 {
		step := min(n, readStep)
		from := len(m.body)
		m.body = slices.Grow(m.body, step)[:from+step]
		if _, err := io.ReadFull(in.r, m.body[from:]); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// greet sends our preamble and reads that of the other side. The preamble is the same in all versions of the
// protocol.
func greet(conn net.Conn) error {
	greeting := binary.LittleEndian.AppendUint32([]byte(magic), Version)
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(greeting)
		sent <- err
	}()
	received := make([]byte, len(greeting))
	_, err := io.ReadFull(conn, received)
	if err != nil {
		_ = conn.Close()
		<-sent
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if string(received[:len(magic)]) != magic {
		_ = conn.Close()
		<-sent
		return fmt.Errorf("%w: does not begin with %q", ErrMalformed, magic)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if v := binary.LittleEndian.Uint32(received[len(magic):]); v != Version {
		return &VersionError{Ours: Version, Theirs: v}
	}
	return nil
}
