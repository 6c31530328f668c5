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

	"github.com/lineage-store/lineage/lineage/backend"
)

// Version is the version of the protocol.
const Version = 1

const magic = "LINEAGER"

// kind tells messages apart.
type kind uint8

const (
	hello    kind = 1 // the client says who it is
	opening  kind = 2 // the server opens the store: how far it is
	welcome  kind = 3 // the server says which store it serves
	request  kind = 4
	answer   kind = 5
	failed   kind = 6 // the answer is an error
	progress kind = 7 // of a request that is under way
	cancel   kind = 8 // of a request, and of the snapshot or sequence that it left open

	// more marks a frame that another one of the same message follows.
	more kind = 0x80
)

const (
	// headerSize is the size of what comes before the payload of a frame: its length, its kind
	// and the number of its request.
	headerSize = 4 + 1 + 8
	// maxFrame is the most that a frame carries. Frames of other messages may come between those
	// of a large one.
	maxFrame = 1 << 20
	// maxMessage is the most that a message has: a commit of the greatest size, and what is
	// said with it.
	maxMessage = 1<<30 + 1<<20
	// readStep is how much memory is taken for bytes that have not come yet.
	readStep = 64 << 10
)

// message is a whole message.
type message struct {
	kind    kind
	id      uint64
	body    []byte
	size    int  // of the payloads that were announced
	refused bool // the body was not kept
}

// newBody returns a buffer to write the body of a message into, with room for the header.
func newBody() *wire { return &wire{b: make([]byte, headerSize, 256)} }

// link sends frames. One message is written at a time, but for those of several frames.
type link struct {
	conn    net.Conn
	turn    chan struct{} // held while a frame is written
	mu      sync.Mutex
	timeout time.Duration // of writing a frame; 0 for none
	broken  error         // why no frame can be written any more
}

func newLink(conn net.Conn, timeout time.Duration) *link {
	return &link{conn: conn, timeout: timeout, turn: make(chan struct{}, 1)}
}

// send writes a message whose body was begun by newBody, and leaves it as it was. An error that is not of the context
// ended the connection. sent reports whether anything was written.
func (l *link) send(ctx context.Context, k kind, id uint64, body []byte) (sent bool, err error) {
	if len(body)-headerSize > maxMessage {
		return false, fmt.Errorf("message of %d bytes, at most %d: %w", len(body)-headerSize, maxMessage, backend.ErrTooLarge)
	}
	for {
		n := min(len(body)-headerSize, maxFrame)
		var before [headerSize]byte // of a later frame: the end of the one before
		copy(before[:], body)
		is := k
		if n < len(body)-headerSize {
			is |= more
		}
		binary.LittleEndian.PutUint32(body, uint32(n))
		body[4] = byte(is)
		binary.LittleEndian.PutUint64(body[5:], id)
		err := l.write(ctx, body[:headerSize+n])
		copy(body, before[:])
		if err != nil {
			return sent, err
		}
		sent = true
		if is&more == 0 {
			return sent, nil
		}
		body = body[n:]
	}
}

// write writes a frame. A frame of which a part was written when the context ended leaves the
// connection unusable.
func (l *link) write(ctx context.Context, frame []byte) error {
	select {
	case l.turn <- struct{}{}:
	default:
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-l.turn }()
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
	l.breaks(err)
	return l.fault()
}

// interrupt ends writing when the context does. The function returned undoes it, and reports
// whether writing was ended.
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

// ready sets the deadline of the next frame.
func (l *link) ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil && l.timeout > 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(l.timeout))
	}
	return l.broken
}

// setTimeout changes the time that writing a frame may take, also of one that is being written.
func (l *link) setTimeout(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = d
	_ = l.conn.SetWriteDeadline(time.Now().Add(d))
}

func (l *link) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// breaks ends the connection for a reason. The first one stays.
func (l *link) breaks(why error) {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = fmt.Errorf("%w: %w", ErrDisconnected, why)
	}
	l.mu.Unlock()
	_ = l.conn.Close()
}

// admission decides which messages are kept. The zero value keeps all.
type admission struct {
	// admit is asked before the payload of a frame is read, with what the message has so far, and
	// reports whether to keep it. A message that is not kept is received without its body.
	admit func(m *message, n int) bool
	// partial is called with whether frames are missing of any message.
	partial func(bool) error
	// dropped is called for a message of which no more will come.
	dropped func(m *message)
}

// inbox reads messages, and puts together those of several frames.
type inbox struct {
	admission
	r *bufio.Reader
	// begun are messages of which frames are missing. A cancel drops one.
	begun map[uint64]*message
}

func newInbox(r io.Reader, a admission) *inbox {
	return &inbox{r: bufio.NewReaderSize(r, readStep), begun: make(map[uint64]*message), admission: a}
}

// next returns the next whole message. Its body is the caller's.
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

// receive adds the payload of a frame to a message, unless that is not kept.
func (in *inbox) receive(m *message, n int, goesOn bool) error {
	if !m.refused && in.admit != nil && !in.admit(m, n) {
		m.refused, m.body = true, nil
	}
	if was := in.begun[m.id] != nil; goesOn != was {
		if goesOn {
			in.begun[m.id] = m
		} else {
			delete(in.begun, m.id)
		}
		if err := in.tellPartial(); err != nil {
			return err
		}
	}
	if m.refused {
		_, err := io.CopyN(io.Discard, in.r, int64(n))
		return err
	}
	return in.read(m, n)
}

// drop forgets a message that was cancelled before all of it came.
func (in *inbox) drop(m *message) error {
	delete(in.begun, m.id)
	if in.dropped != nil {
		in.dropped(m)
	}
	return in.tellPartial()
}

func (in *inbox) tellPartial() error {
	if in.partial == nil {
		return nil
	}
	return in.partial(len(in.begun) > 0)
}

// read adds n bytes to a message. Memory is taken as they come.
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

// greet sends our preamble and reads that of the other side. It is the same in all versions of
// the protocol.
func greet(conn net.Conn) error {
	ours := binary.LittleEndian.AppendUint32([]byte(magic), Version)
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(ours)
		sent <- err
	}()
	theirs := make([]byte, len(ours))
	_, err := io.ReadFull(conn, theirs)
	if err != nil {
		_ = conn.Close()
		<-sent
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if string(theirs[:len(magic)]) != magic {
		_ = conn.Close()
		<-sent
		return fmt.Errorf("%w: it does not begin with %q", ErrMalformed, magic)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if v := binary.LittleEndian.Uint32(theirs[len(magic):]); v != Version {
		return &VersionError{Ours: Version, Theirs: v}
	}
	return nil
}
