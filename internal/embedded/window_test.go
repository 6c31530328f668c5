package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// grower adds messages to runs of a store, one or many per commit, and records
// them.
type grower struct {
	engine *Engine
	said   map[structure.RunID][]string
	n      int
}

func newGrower(t require.TestingT, dir string) *grower {
	e, err := Open(context.Background(), dir, Options{Durability: backend.Normal, SegmentSize: 1 << 20})
	require.NoError(t, err)
	return &grower{engine: e, said: map[structure.RunID][]string{}}
}

func (g *grower) begin(t require.TestingT) structure.RunID {
	run := structure.NewID[structure.RunID]()
	g.apply(t, &structure.Run{ID: run})
	g.said[run] = nil
	return run
}

func (g *grower) apply(t require.TestingT, records ...structure.Record) {
	_, err := g.engine.Apply(context.Background(), &structure.Commit{Records: records}, backend.Options{})
	require.NoError(t, err)
}

// say adds times messages to each of the runs, round-robin, in one commit.
func (g *grower) say(t require.TestingT, size, times int, runs ...structure.RunID) {
	var records []structure.Record
	for range times {
		for _, run := range runs {
			g.n++
			body := append(fmt.Appendf(nil, "%d ", g.n), bytes.Repeat([]byte{'x'}, size)...)
			if g.n%7 == 0 && len(g.said[run]) > 0 {
				body = []byte(g.said[run][0]) // a repeated text
			}
			b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, sampleTime, body)
			g.said[run] = append(g.said[run], string(body))
			records = append(records, b, &structure.Span{
				Ref:    structure.SpanRef{Run: run, Seq: uint64(len(g.said[run]))},
				Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: b.ID, CreatedAt: sampleTime, Metadata: []byte("{}")}},
			})
		}
	}
	g.apply(t, records...)
}

// window reads a window of a run and compares it with the recorded messages.
func (g *grower) window(r backend.Reader, run structure.RunID, w structure.Window, passing bool) error {
	texts := g.said[run]
	if len(texts) == 0 {
		return nil
	}
	first, last := max(w.From, 1), uint64(len(texts))
	if w.To != 0 {
		last = min(last, w.To)
	}
	if w.Last != 0 && last > w.Last {
		first = max(first, last-w.Last+1)
	}
	at := first
	var kept []*backend.Step
	for s, err := range r.Path(context.Background(), structure.SpanRef{Run: run, Seq: uint64(len(texts))}, w, backend.PathOptions{Bodies: true, Passing: passing}) {
		if err != nil {
			return err
		}
		if passing {
			copied := *s
			copied.Span, copied.Blocks = &structure.Span{Ref: s.Span.Ref, Usages: append([]structure.Usage(nil), s.Span.Usages...)}, []*structure.Block{{Block: s.Blocks[0].Block, Body: s.Blocks[0].Body}}
			s = &copied
		}
		kept = append(kept, s)
	}
	for _, s := range kept {
		switch {
		case s.Position != at || s.Span.Ref != (structure.SpanRef{Run: run, Seq: at}):
			return fmt.Errorf("%w: %d is %v", errWindow, s.Position, s.Span.Ref)
		case string(s.Blocks[0].Body) != texts[at-1]:
			return fmt.Errorf("%w: %d says %.20q, not %.20q", errWindow, at, s.Blocks[0].Body, texts[at-1])
		case s.Span.Usages[0].Content != content.Sum(s.Blocks[0].Body) || string(s.Span.Usages[0].Metadata) != "{}":
			return fmt.Errorf("%w: %d has another usage", errWindow, at)
		}
		at++
	}
	if at != last+1 && first <= last {
		return fmt.Errorf("%w: ends before %d of %d", errWindow, at, last)
	}
	return nil
}

var sampleTime = time.UnixMilli(1_700_000_000_000).UTC()

var errWindow = errors.New("wrong window")

// Runs grow separately and together, by one or many messages, and are read in
// random windows, from segments and packs.
func TestWindowsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "windows")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		g := newGrower(t, filepath.Join(dir, "store"))
		defer func() { require.NoError(t, g.engine.Close()) }()
		var runs []structure.RunID
		for range 3 {
			runs = append(runs, g.begin(t))
		}
		some := func(label string) structure.RunID { return rapid.SampledFrom(runs).Draw(t, label) }
		t.Repeat(map[string]func(*rapid.T){
			"one": func(t *rapid.T) { g.say(t, rapid.IntRange(0, 300).Draw(t, "size"), 1, some("run")) },
			"alone": func(t *rapid.T) {
				for range 20 {
					g.say(t, 10, 1, runs[0])
				}
			},
			"in turn": func(t *rapid.T) {
				for range 10 {
					g.say(t, 10, 1, runs[0])
					g.say(t, 10, 1, runs[1])
				}
			},
			"many": func(t *rapid.T) { g.say(t, 500, rapid.IntRange(1, 60).Draw(t, "times"), some("run")) },
			"many of several": func(t *rapid.T) {
				g.say(t, 500, rapid.IntRange(1, 30).Draw(t, "times"), runs[:rapid.IntRange(1, 3).Draw(t, "runs")]...)
			},
			"fold": func(t *rapid.T) { require.NoError(t, g.engine.index.Checkpoint()) },
			"pack": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "pack") == 0 {
					_, err := g.engine.Pack(context.Background(), backend.PackOptions{All: true})
					require.NoError(t, err)
				}
			},
			"read": func(t *rapid.T) {
				run := some("run")
				n := uint64(len(g.said[run]))
				w := structure.Window{
					From: rapid.Uint64Range(0, n).Draw(t, "from"), To: rapid.Uint64Range(0, n).Draw(t, "to"), Last: rapid.Uint64Range(0, 30).Draw(t, "last"),
				}
				if w.To != 0 && w.From > w.To {
					w.From, w.To = w.To, w.From
				}
				require.NoError(t, g.window(g.engine, run, w, rapid.Bool().Draw(t, "passing")))
			},
		})
		for _, run := range runs {
			require.NoError(t, g.window(g.engine, run, structure.Window{}, true))
		}
	})
}

// The frame of a large commit is checked and decoded once for several windows; the
// caller owns what they return.
func TestLargeFrameIsKept(t *testing.T) {
	g := newGrower(t, filepath.Join(t.TempDir(), "store"))
	defer g.engine.Close()
	run := g.begin(t)
	g.say(t, 500, 100, run)
	last := structure.Window{Last: 5}
	require.NoError(t, g.window(g.engine, run, structure.Window{}, false))
	require.Zero(t, g.engine.frames.Size(), "the whole frame was requested")
	for s, err := range g.engine.Path(context.Background(), structure.SpanRef{Run: run, Seq: 100}, last, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		clear(s.Blocks[0].Body)
		clear(s.Span.Usages[0].Metadata)
	}
	require.NoError(t, g.window(g.engine, run, last, false))
	require.Equal(t, 1, g.engine.frames.Len())

	// The frame is not read again: damage to the file since then is found only by
	// a full read.
	name := g.engine.journal.SegmentName(1)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	at := bytes.LastIndex(b, []byte("xxx"))
	require.Positive(t, at)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("y"), int64(at))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, g.window(g.engine, run, last, false))
	g.engine.frames.Clear()
	require.ErrorIs(t, g.window(g.engine, run, last, false), backend.ErrCorrupt)
	require.Zero(t, g.engine.frames.Size())
}

//test:norace
func TestFrameCacheIsBounded(t *testing.T) {
	g := newGrower(t, filepath.Join(t.TempDir(), "store"))
	defer g.engine.Close()
	run := g.begin(t)
	for range 30 {
		g.say(t, 5000, 100, run)
	}
	for from := uint64(1); from <= 3000; from += 50 {
		require.NoError(t, g.window(g.engine, run, structure.Window{From: from, To: from + 3}, true))
		require.LessOrEqual(t, g.engine.frames.Size(), read.MaxCached)
	}
	require.Greater(t, g.engine.frames.Size(), read.MaxCached/2)
	_, err := g.engine.Pack(context.Background(), backend.PackOptions{All: true})
	require.NoError(t, err)
	require.Zero(t, g.engine.frames.Size())
	require.NoError(t, g.window(g.engine, run, structure.Window{Last: 3}, true))
}

// Windows are read while files are packed and swept.
func TestWindowsDuringPackAndCollect(t *testing.T) {
	g := newGrower(t, filepath.Join(t.TempDir(), "store"))
	defer g.engine.Close()
	run := g.begin(t)
	id := structure.NewID[structure.ContextID]()
	for range 20 {
		g.say(t, 500, 120, run)
	}
	g.apply(t, &structure.Context{ID: id, Tip: structure.SpanRef{Run: run, Seq: 2400}, Base: structure.SpanRef{Run: run, Seq: 2400}})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		readers.Go(func() {
			for n := uint64(i); errs[i] == nil; n += 97 {
				select {
				case <-stop:
					return
				default:
				}
				from := 1 + n%2390
				errs[i] = g.window(g.engine, run, structure.Window{From: from, To: from + 9}, n%2 == 0)
			}
		})
	}
	for i := range 4 {
		g.apply(t, &structure.Run{ID: structure.NewID[structure.RunID]()}) // an unused run
		var err error
		if i%2 == 0 {
			_, err = g.engine.Pack(context.Background(), backend.PackOptions{All: i == 2})
		} else {
			_, err = g.engine.Collect(context.Background(), backend.CollectOptions{KeepUnused: -1, KeepReflog: -1})
		}
		require.NoError(t, err)
	}
	close(stop)
	readers.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// A window allocates for its result, not for its whole frame.
func TestWindowAllocations(t *testing.T) {
	g := newGrower(t, filepath.Join(t.TempDir(), "store"))
	defer g.engine.Close()
	run := g.begin(t)
	g.say(t, 500, 400, run)
	read := func() {
		if err := g.window(g.engine, run, structure.Window{Last: 2}, true); err != nil {
			t.Fatal(err)
		}
	}
	read()
	require.LessOrEqual(t, campaign.Allocs(100, read), 60.0)
}
