//test:long
//test:race

package remote

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/vfs/memfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

var background = context.Background()

func TestMain(m *testing.M) {
	campaign.Checks(2) // each opens stores, and is a conversation
	goleak.VerifyTestMain(m)
}

// lateClock is the system's clock, with timers that come late: what a server waits for may be slow.
type lateClock struct{ systemClock }

func (lateClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(100*d, f).Stop
}

// newServer returns a server that waits long for its clients, unless the options say for how long.
func newServer(o ServerOptions) *Server {
	if o.Clock == nil {
		o.Clock = lateClock{}
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = time.Hour
	}
	return NewServer(o)
}

// pipe returns the two ends of a connection.
type pipe func(t testing.TB) (client, server net.Conn)

func memoryPipe(testing.TB) (client, server net.Conn) { return net.Pipe() }

func socketPipe(t testing.TB) (client, server net.Conn) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer l.Close()
	client, err = net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	return client, server
}

// served is a client that closes its server and engine, too.
type served struct {
	*Client
	server *Server
	engine backend.Engine
	wg     *sync.WaitGroup
}

// serve connects a client to a new server of an engine.
func serve(t testing.TB, e backend.Engine, p pipe, so ServerOptions, co ClientOptions) *served {
	t.Helper()
	client, server := p(t)
	s := &served{server: newServer(so), engine: e, wg: new(sync.WaitGroup)}
	s.server.Open(e)
	s.wg.Go(func() { _ = s.server.Serve(server) })
	var err error
	s.Client, err = Connect(background, client, co)
	require.NoError(t, err)
	return s
}

func (s *served) Close() error {
	err := s.Client.Close()
	s.server.Close()
	s.wg.Wait()
	return errors.Join(err, s.engine.Close())
}

// remoteStore returns a function that opens stores over a connection.
func remoteStore(p pipe, o embedded.Options) func(t testing.TB) backendtest.OpenFunc {
	return func(t testing.TB) backendtest.OpenFunc {
		o := o
		o.InMemory, o.FS = true, memfs.New()
		return func(ctx context.Context) (backend.Engine, error) {
			e, err := embedded.Open(ctx, "", o)
			if err != nil {
				return nil, err
			}
			return serve(t, e, p, ServerOptions{}, ClientOptions{Durability: o.Durability}), nil
		}
	}
}

// TestConformance runs what the suite does from many goroutines, and random commits, under the race detector.
func TestConformance(t *testing.T) { conform(t, backendtest.RunConcurrent) }

// TestConformanceOfCalls runs the suite, which calls one method after another.
//
//test:norace
func TestConformanceOfCalls(t *testing.T) { conform(t, backendtest.RunSequential) }

func conform(t *testing.T, run func(*testing.T, backendtest.Config)) {
	for _, variant := range []struct {
		name   string
		pipe   pipe
		reopen bool
	}{
		{"socket", socketPipe, false},
		{"pipe", memoryPipe, false},
		{"pipe, reopened", memoryPipe, true},
	} {
		if variant.name != "socket" && !campaign.Runs() {
			continue // only the kind of connection differs
		}
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			run(t, backendtest.Config{New: remoteStore(variant.pipe, embedded.Options{Durability: backend.Normal}), Reopen: variant.reopen})
		})
	}
}
