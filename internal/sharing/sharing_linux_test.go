package sharing

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

var background = context.Background()

func TestMain(m *testing.M) {
	beChild()
	campaign.Checks(2) // each opens stores in two places
	goleak.VerifyTestMain(m)
}

// hangs bounds the wait for what happens at once on a machine that does nothing else.
const hangs = 2 * time.Minute

// normal are the options of most engines, which wait for an owner that is slow. Those of atOnce do not.
var (
	normal = Options{Options: embedded.Options{Durability: backend.Normal, Wait: hangs}}
	atOnce = Options{Options: embedded.Options{Durability: backend.Normal}}
)

// ends are the ways to use a shared store.
var ends = []struct {
	name string
	open func(ctx context.Context, dir string) (backend.Engine, error)
}{
	{"owner", func(ctx context.Context, dir string) (backend.Engine, error) { return Open(ctx, dir, normal) }},
	{"guest", openGuest},
	{"successor", func(ctx context.Context, dir string) (backend.Engine, error) {
		first, err := Open(ctx, dir, normal)
		if err != nil {
			return nil, err
		}
		second, err := Open(ctx, dir, normal)
		return second, errors.Join(err, first.Close())
	}},
}

// TestConformance runs what the suite does from many goroutines, under the race detector.
func TestConformance(t *testing.T) { conform(t, backendtest.RunConcurrent) }

// TestConformanceOfEnds runs the suite on an owner, on a guest, and on what was a guest and became the
// owner. That of internal/remote runs it over a connection in every run.
//
//test:norace
func TestConformanceOfEnds(t *testing.T) { conform(t, backendtest.RunSequential) }

func conform(t *testing.T, run func(*testing.T, backendtest.Config)) {
	campaign.Long(t)
	for _, end := range ends {
		if end.name == "owner" && !campaign.Runs() {
			continue // the engine itself has the suite, too
		}
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			run(t, backendtest.Config{New: func(t testing.TB) backendtest.OpenFunc {
				dir := t.TempDir()
				return func(ctx context.Context) (backend.Engine, error) { return end.open(ctx, dir) }
			}})
		})
	}
}

func openGuest(ctx context.Context, dir string) (backend.Engine, error) {
	first, err := Open(ctx, dir, normal)
	if err != nil {
		return nil, err
	}
	second, err := Open(ctx, dir, normal)
	if err == nil && owns(second) {
		err = errors.New("two owners")
	}
	return guest{second, first}, err
}

// guest is a guest whose owner closes behind it.
type guest struct {
	*Engine
	owner *Engine
}

func (g guest) Recent() backend.Reader { return g.Engine.Recent() }

func (g guest) Close() error { return errors.Join(g.Engine.Close(), g.owner.Close()) }

func open(t testing.TB, dir string, o Options) *Engine {
	t.Helper()
	e, err := Open(background, dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// owns reports whether an engine is the owner now.
func owns(e *Engine) bool {
	h := e.current.Load()
	return h != nil && h.own != nil
}
