package embedded

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/judge/judgetest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// judgeNamed judges a commit in the latest state with a view that allows only the keys named by the
// commit, and changes nothing. Whether the commit is refused does not matter here.
func judgeNamed(t testing.TB, e *Engine, c *structure.Commit, o backend.Options) {
	e.write.Lock()
	defer e.write.Unlock()
	number := e.index.Number() + 1
	e.state.Begin(number, false)
	own := judge.Case{Commit: c}
	view := judgetest.Named{View: &e.state, Keys: judge.Keys(own, o)}
	view.Fail = func(k judge.Key) { t.Errorf("%+v is not named by %v", k, c.Records) }
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
