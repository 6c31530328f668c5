package show

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage/graph"
)

// newForest returns a forest whose messages say text, and what is drawn of it.
func newForest(t *testing.T, text string) (*Forest, func() string) {
	t.Helper()
	var out bytes.Buffer
	a := app.New(nil, &out, &bytes.Buffer{}, func(string) string { return "" })
	f := &Forest{App: a, Graph: graph.New()}
	f.Point = func(context.Context, graph.Place) (*TreePoint, error) { return &TreePoint{"ada", "user", text}, nil }
	return f, func() string {
		require.NoError(t, f.Draw(t.Context(), "Lisbon", "id"))
		require.NoError(t, a.Flush())
		return out.String()
	}
}

func TestForksAreDrawnBesideTheMainLine(t *testing.T) {
	f, draw := newForest(t, "")
	root := f.fork(graph.Place{}, 5)
	a := f.fork(root.At(2), 3)
	f.fork(root.At(2), 1)
	leaf := f.fork(root.At(4), 1)
	f.fork(a.At(1), 1)
	f.fork(a.At(2), 12)
	f.SetCurrent(leaf.At(1))
	f.Labels[f.Current] = []graph.Label{{Kind: graph.KindBranch, Name: "main", Active: true}}
	require.Equal(t, strings.TrimPrefix(`
Lisbon  thread id
●  1  ada      
●  2  ada      
├─╮
│ ●  3  ada      
│ ├─╮
│ │ ●  4  ada      
│ ●  4  ada      
│ ├─╮
│ │ ●  5  ada      
│ │ ●  6  ada      
│ │ ┊ 8 messages
│ │ ● 15  ada      
│ │ ● 16  ada      
│ ●  5  ada      
├─╮
│ ●  3  ada      
●  3  ada      
●  4  ada      
├─╮
│ ●  5  ada      
◉  5  ada        main *
`, "\n"), draw())
}

func TestDrawingKeepsToLimitsAndWidth(t *testing.T) {
	f, draw := newForest(t, "")
	at := f.fork(graph.Place{}, 2).At(1)
	for range 50 {
		at = f.fork(at, 2).At(1)
	}
	out := draw()
	require.Contains(t, out, "… 76 messages deeper")
	require.Less(t, strings.Count(out, "\n"), 45)
	f.Full = true
	require.NotContains(t, strings.TrimPrefix(draw(), out), "deeper")

	f, draw = newForest(t, "")
	root := f.fork(graph.Place{}, 2)
	for range 100 {
		f.fork(root.At(1), 1)
	}
	require.Contains(t, draw(), "├╌ … 88 more forks\n● 2  ada")

	f, draw = newForest(t, strings.Repeat("word ", 50))
	f.Out.Width, f.Out.Colour = 40, true
	f.Labels[f.fork(graph.Place{}, 1).At(1)] = []graph.Label{{Kind: graph.KindCheckpoint, Name: "main"}}
	_, out, _ = strings.Cut(draw(), "\n")
	require.Contains(t, out, "\x1b[33m◆ main\x1b[0m\n")
	out = strings.NewReplacer("\x1b[33m", "", "\x1b[32m", "", "\x1b[2m", "", "\x1b[0m", "", "\n", "").Replace(out)
	require.Equal(t, 40, screen.Width(out))
}

func TestForksThatCannotBeReadEndTheDrawing(t *testing.T) {
	f, _ := newForest(t, "")
	fork := f.fork(f.fork(graph.Place{}, 2).At(1), 1)
	lost := errors.New("lost")
	readable := f.Point
	f.Point = func(ctx context.Context, at graph.Place) (*TreePoint, error) {
		if at.Line == fork {
			return nil, lost
		}
		return readable(ctx, at)
	}
	require.ErrorIs(t, f.Draw(t.Context(), "Lisbon", "id"), lost)
}

// fork adds a line of so many messages to a forest, after a message of another line or of none.
func (f *Forest) fork(after graph.Place, messages uint64) *graph.Line {
	l := &graph.Line{After: after, Last: messages}
	if after.Line != nil {
		l.Before = after.Line.Before + after.At
	}
	f.Add(l)
	return l
}
