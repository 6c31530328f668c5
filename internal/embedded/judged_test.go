package embedded

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/judge/judgetest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// keyed is an engine that judges each commit twice: first with a view that allows only the
// keys named by the commit.
type keyed struct {
	*Engine
	t testing.TB
}

func (n *keyed) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if n.begin() == nil {
		n.judge(c, o)
		n.end()
	}
	return n.Engine.Apply(ctx, c, o)
}

// judge judges a commit in the latest state and changes nothing. Whether the commit is
// refused does not matter here.
func (n *keyed) judge(c *structure.Commit, o backend.Options) {
	e := n.Engine
	e.write.Lock()
	defer e.write.Unlock()
	number := e.index.Number() + 1
	e.state.Begin(number, false)
	own := judge.Case{Commit: c}
	view := judgetest.Named{View: &e.state, Keys: judge.Keys(own, o)}
	view.Fail = func(k judge.Key) { n.t.Errorf("%+v is not named by %v", k, c.Records) }
	var p judge.Preparation
	if err := p.Begin(c); err != nil {
		return
	}
	if err := judge.Expect(&view, o); err != nil {
		return
	}
	if _, err := p.DropKnown(&view); err != nil {
		return
	}
	p.Commit.Number = number
	var j judge.Judge
	_, _ = j.Judge(context.Background(), judge.Case{Commit: &p.Commit, View: &view})
}

// The suite's commits name all keys that their judgment looks up.
func TestCommitsNameTheKeysTheyRead(t *testing.T) {
	backendtest.Run(t, backendtest.Config{New: func(t testing.TB) backendtest.OpenFunc {
		open := newStore(Options{Durability: backend.Normal})(t)
		return func(ctx context.Context) (backend.Engine, error) {
			e, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return &keyed{e.(*Engine), t}, nil
		}
	}})
}

// The restricted view reports other keys.
func TestUnnamedKeysAreReported(t *testing.T) {
	e, err := Open(background, t.TempDir(), Options{})
	require.NoError(t, err)
	defer e.Close()
	th := &structure.Thread{ID: structure.NewID[structure.ThreadID]()}
	var failed []string
	view := judgetest.Named{View: &e.state, Fail: func(k judge.Key) { failed = append(failed, fmt.Sprint(k.Kind)) }}
	e.state.Begin(1, false)
	var j judge.Judge
	_, err = j.Judge(background, judge.Case{Commit: &structure.Commit{Records: []structure.Record{th}}, View: &view})
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprint(judge.KeyThread)}, failed)
}
