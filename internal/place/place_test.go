package place_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

var ctx = context.Background()

// world is a store with a thread, and a naive model of it: each message that was placed, by what it follows and says.
type world struct {
	writer *write.Writer
	thread *structure.Thread
	keys   []key // in the order in which they were placed
	spans  map[key]structure.SpanRef
	latest map[string]structure.SpanRef // by ids
}

// key is a message of the model: after is the index of another one, -1 for the beginning of a history.
type key struct {
	after    int
	id, text string
}

func newWorld(t require.TestingT) *world {
	engine, err := embedded.Open(ctx, "", embedded.Options{InMemory: true})
	require.NoError(t, err)
	w := &world{writer: write.New(engine, time.Now), spans: make(map[key]structure.SpanRef), latest: make(map[string]structure.SpanRef)}
	_, err = w.writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
		w.thread = b.NewThread(write.Thread{SourceID: "thread", Keeps: true})
		return nil
	})
	require.NoError(t, err)
	return w
}

func message(k key) *place.Message {
	m := &place.Message{ID: k.id}
	head := structure.Usage{Kind: structure.MessageUsage, Role: "user", Type: content.TypeText, Origin: new(content.BlockOrigin), SourceID: k.id, CreatedAt: time.UnixMilli(1)}
	head.Origin.Kind = content.OriginUser
	m.Usages, _ = write.Message(nil, head, content.TypeText, []byte(k.text), m.Store)
	return m
}

// find returns the index of a message in the model.
func (w *world) find(k key) int {
	for i := range w.keys {
		if w.keys[i] == k {
			return i
		}
	}
	return -1
}

// placing is the commit of some messages.
type placing struct {
	*world
	t     require.TestingT
	keys  []key
	rival func() // runs before the commit, once
	found []place.Match
}

// Fill implements write.Change.
func (p *placing) Fill(_ context.Context, b *write.Batch, try write.Try) error {
	state, err := p.writer.Engine().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer state.Close()
	b.Places()
	placer := place.New(ctx, p.writer, state, b, make(place.Contents), p.thread, place.Rules{Fresh: try.Fresh})
	p.found = p.found[:0]
	own := make(map[key]structure.SpanRef)
	for _, k := range p.keys {
		var after structure.SpanRef
		if k.after >= 0 {
			above := p.world.keys[k.after]
			if after = p.spans[above]; after.IsZero() {
				after = own[above]
			}
		}
		f, err := placer.Place(after, message(k))
		if err != nil {
			return err
		}
		own[k] = f.Span
		p.found = append(p.found, f)
	}
	if p.rival != nil {
		rival := p.rival
		p.rival = nil
		rival()
	}
	return nil
}

// place places messages and compares the result with the model.
func (w *world) place(t require.TestingT, keys []key, rival func()) {
	for _, k := range keys {
		if w.find(k) < 0 {
			w.keys = append(w.keys, k) // later ones may follow it
		}
	}
	p := &placing{world: w, t: t, keys: keys, rival: rival}
	b := w.writer.Batch()
	defer w.writer.Release(b)
	_, err := w.writer.Do(ctx, b, p)
	require.NoError(t, err)
	for i, k := range keys {
		f := p.found[i]
		if known, ok := w.spans[k]; ok {
			require.Equal(t, known, f.Span, "%+v is known", k)
			require.True(t, f.How.Has())
			continue
		}
		require.False(t, f.How.Has(), "%+v is new: %v", k, f.How)
		_, again := w.latest[k.id]
		require.Equal(t, again && k.id != "", f.How != place.Absent, "%+v: %v", k, f.How)
		w.spans[k] = f.Span
		if k.id != "" {
			w.latest[k.id] = f.Span
		}
	}
}

// What several writers place is in the store once, whatever they commit between the reading and the commit of another.
func TestPlacesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.writer.Engine().Close()
		draw := func(most int) []key {
			var keys []key
			known := len(w.keys)
			for range rapid.IntRange(1, most).Draw(t, "messages") {
				k := key{after: rapid.IntRange(-1, min(known, 12)-1).Draw(t, "after"), text: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "text")}
				if rapid.Bool().Draw(t, "has an id") {
					k.id = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "id")
				}
				keys = append(keys, k)
			}
			return keys
		}
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			keys := draw(6)
			var rival func()
			if rapid.Bool().Draw(t, "has a rival") {
				theirs := append(draw(3), keys[:rapid.IntRange(0, len(keys)).Draw(t, "the same")]...)
				rival = func() { w.place(t, theirs, nil) }
			}
			w.place(t, keys, rival)
		}
		stats, err := w.writer.Engine().Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, len(w.spans), stats.Spans)
		for id, at := range w.latest {
			found, err := backend.FindFirst(ctx, w.writer.Engine(), id, w.thread.ID)
			require.NoError(t, err)
			require.Equal(t, at, found.Span, "the latest version of %s", id)
		}
	})
}

// A source that is behind the store finds what it has, and adds what is not there without taking the id.
func TestBehind(t *testing.T) {
	w := newWorld(t)
	defer w.writer.Engine().Close()
	w.place(t, []key{{-1, "1", "new"}}, nil)
	for range 2 {
		_, err := w.writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
			m := message(key{-1, "1", "old"})
			m.Behind = true
			_, err := place.New(ctx, w.writer, w.writer.Engine(), b, make(place.Contents), w.thread, place.Rules{}).Place(structure.SpanRef{}, m)
			return err
		})
		require.NoError(t, err)
	}
	stats, err := w.writer.Engine().Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Spans)
	found, err := backend.FindFirst(ctx, w.writer.Engine(), "1", w.thread.ID)
	require.NoError(t, err)
	require.Equal(t, w.latest["1"], found.Span)
}

// The cost of a message does not depend on the number of its siblings, nor on the number of messages of the thread.
func TestManySiblings(t *testing.T) {
	for _, id := range []string{"", "id"} {
		costs := make(map[int]int64)
		for _, n := range []int{100, 2000} {
			w := newWorld(t)
			counting := backendtest.NewCounting(w.writer.Engine())
			w.writer = write.New(counting, time.Now)
			root := key{-1, id, "root"}
			w.place(t, []key{root}, nil)
			for i := 0; i < n; i += 100 {
				w.add(t, w.spans[root], id, i, i+100)
			}
			costs[n] = counting.Cost(func() { w.add(t, w.spans[root], id, 0, 100) }) // they are known
			require.NoError(t, counting.Close())
		}
		require.LessOrEqual(t, costs[2000], costs[100]+10, "id %q", id)
	}
}

// add places messages after a span, which the model does not have.
func (w *world) add(t *testing.T, after structure.SpanRef, id string, from, to int) {
	_, err := w.writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
		b.Places()
		placer := place.New(ctx, w.writer, w.writer.Engine(), b, make(place.Contents), w.thread, place.Rules{})
		for i := from; i < to; i++ {
			k := key{0, "", fmt.Sprint(i)}
			if id != "" {
				k.id = fmt.Sprint(id, i)
			}
			if _, err := placer.Place(after, message(k)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
}
