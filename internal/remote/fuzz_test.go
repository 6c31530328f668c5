package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func frame(k kind, id uint64, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	b = append(b, byte(k))
	return append(binary.LittleEndian.AppendUint64(b, id), payload...)
}

// conversation records what a client sends, and what it receives.
func conversation(t testing.TB) (sent, received []byte) {
	e, err := embedded.Open(background, "", embedded.Options{InMemory: true, Durability: backend.Normal})
	require.NoError(t, err)
	defer e.Close()
	s := newServer(ServerOptions{})
	s.Open(e)
	near, far := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(far) })
	recording := &recordingConn{Conn: near}
	c, err := Connect(background, recording, ClientOptions{})
	require.NoError(t, err)
	_, err = c.Apply(background, saying("said"), backend.Options{Once: &backend.Once{Session: [16]byte{1}, Sequence: 1}})
	require.NoError(t, err)
	_, _ = c.Thread(background, structure.ThreadID{})
	for range c.Feed(background, backend.Cursor{}) {
	}
	for range c.ListThreads(background, backend.ThreadQuery{TitlePrefix: "x"}) {
	}
	_ = c.Close()
	s.Close()
	wg.Wait()
	recording.mu.Lock()
	defer recording.mu.Unlock()
	return recording.sent, recording.received
}

type recordingConn struct {
	net.Conn
	mu             sync.Mutex
	sent, received []byte
}

func (c *recordingConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent = append(c.sent, b...)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *recordingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, b[:n]...)
	return n, err
}

// FuzzServer sends any bytes to a server. It answers or ends the connection.
func FuzzServer(f *testing.F) {
	e, err := embedded.Open(background, "", embedded.Options{InMemory: true, Durability: backend.Normal})
	require.NoError(f, err)
	f.Cleanup(func() { _ = e.Close() })
	sent, _ := conversation(f)
	f.Add(sent)
	for code := range serving {
		f.Add(append(bytes.Clone(sent[:len(magic)+4]), append(frame(hello, 0, []byte{2, 0}), frame(request, 1, []byte{code, 0, 0})...)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newServer(ServerOptions{WriteTimeout: time.Second})
		s.Open(e)
		near, far := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Serve(far) })
		wg.Go(func() { _, _ = io.Copy(io.Discard, near) })
		_, _ = near.Write(b)
		_ = near.Close()
		s.Close()
		wg.Wait()
	})
}

// FuzzClient sends any bytes to a client. Its calls end.
func FuzzClient(f *testing.F) {
	_, received := conversation(f)
	f.Add(received)
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, far) })
		wg.Go(func() {
			_, _ = far.Write(b)
			_ = far.Close()
		})
		if c, err := Connect(background, near, ClientOptions{}); err == nil {
			_, _ = c.Apply(background, saying("said"), backend.Options{})
			_, _ = c.Thread(background, structure.ThreadID{})
			for range c.Feed(background, backend.Cursor{}) {
			}
			_ = c.Close()
		}
		_ = near.Close()
		wg.Wait()
	})
}

// FuzzMethods decodes any bytes as the arguments of each method, and as answers.
func FuzzMethods(f *testing.F) {
	e, err := embedded.Open(background, "", embedded.Options{InMemory: true, Durability: backend.Normal})
	require.NoError(f, err)
	f.Cleanup(func() { _ = e.Close() })
	for code := range serving {
		f.Add(code, []byte{1, 0, 1})
	}
	f.Fuzz(func(t *testing.T, code uint8, b []byte) {
		m := serving[code]
		switch code {
		case codeWait, codePack, codeCollect, codeVerify: // these take long
			return
		}
		if m == nil {
			return
		}
		p := newPeer(newServer(ServerOptions{}), nopConn{})
		p.engine = e
		x := &exchange{peer: p, id: 1, code: code}
		var cancel context.CancelFunc
		x.ctx, cancel = context.WithCancel(background)
		x.receiver = receiver{Reader: e, engine: e, peer: p, request: x}
		_ = m.serve(x, &wire{b: bytes.Clone(b), reading: true}, newBody())
		cancel()
		p.end()
		_, _ = callApply.read(&wire{b: bytes.Clone(b), reading: true})
		_, _ = callBlocks.read(&wire{b: bytes.Clone(b), reading: true})
		_, _ = callChunks.read(&wire{b: bytes.Clone(b), reading: true})
		_, _ = callAncestry.read(&wire{b: bytes.Clone(b), reading: true})
		_, _ = callCollect.read(&wire{b: bytes.Clone(b), reading: true})
		var got *backend.Step
		step(&wire{b: bytes.Clone(b), reading: true}, &got)
		var l backend.ThreadListing
		threadListing(&wire{b: bytes.Clone(b), reading: true}, &l)
		var why error
		failure(&wire{b: bytes.Clone(b), reading: true}, &why)
	})
}

type nopConn struct{ net.Conn }

func (nopConn) Read([]byte) (int, error)         { return 0, io.EOF }
func (nopConn) Write(b []byte) (int, error)      { return len(b), nil }
func (nopConn) Close() error                     { return nil }
func (nopConn) SetReadDeadline(time.Time) error  { return nil }
func (nopConn) SetWriteDeadline(time.Time) error { return nil }
