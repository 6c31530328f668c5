package lineage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// behind is an engine whose recent state is some commits old. It counts reads of contexts from the
// latest state.
type behind struct {
	backend.Engine
	recent backend.Reader
	read   int
}

func (e *behind) Recent() backend.Reader { return e.recent }

func (e *behind) Context(ctx context.Context, id lineage.ContextID) (backend.Context, error) {
	e.read++
	return e.Engine.Context(ctx, id)
}

// refresh makes the latest state the recent one.
func (e *behind) refresh(t *testing.T) {
	snapshot, err := e.Engine.Snapshot(bg)
	require.NoError(t, err)
	t.Cleanup(func() { snapshot.Close() })
	e.recent = snapshot
}

// Extends and forks based on an outdated state do no harm; if the recent state is up to date, they
// read nothing else.
func TestExtendAndForkBehind(t *testing.T) {
	below := newStore(t)
	engine := &behind{Engine: write.Of(below).Engine()}
	engine.refresh(t)
	s := lineage.New(engine)
	c, err := s.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)

	_, err = c.Extend(bg, lineage.User("the recent state has no such context"))
	require.NoError(t, err)
	engine.refresh(t)
	engine.read = 0
	second, err := c.Extend(bg, lineage.User("it is right"))
	require.NoError(t, err)
	require.Zero(t, engine.read)
	third, err := c.Extend(bg, lineage.User("it is one behind"))
	require.NoError(t, err)
	require.Equal(t, 1, engine.read)
	require.Equal(t, second[0].Run, third[0].Run, "in the same run")

	fourth, err := c.ExtendFrom(bg, third[0], lineage.User("from where it is"))
	require.NoError(t, err)
	_, err = c.ExtendFrom(bg, second[0], lineage.User("from where it was"))
	require.ErrorIs(t, err, lineage.ErrTipMoved)
	engine.refresh(t)
	fifth, err := c.Extend(bg, lineage.User("more"))
	require.NoError(t, err)
	_, err = c.ExtendFrom(bg, fourth[0], lineage.User("from where the recent state has it"))
	require.ErrorIs(t, err, lineage.ErrTipMoved)

	engine.read = 0
	fork, err := c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, engine.read)
	tip, err := fork.Tip(bg)
	require.NoError(t, err)
	require.Equal(t, fifth[0], tip)
	engine.refresh(t)
	engine.read = 0
	for _, at := range []lineage.SpanRef{{}, second[0]} {
		_, err = c.Fork(bg, lineage.ForkOptions{At: at})
		require.NoError(t, err)
	}
	require.Zero(t, engine.read)
	require.Equal(t, []string{
		"the recent state has no such context", "it is right", "it is one behind", "from where it is", "more",
	}, texts(t, c))
}
