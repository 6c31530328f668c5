package bundle_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

// TestOddStores copies stores that no operation creates but that an engine accepts: runs that grow
// alternately, span sets at any place, contexts with any base.
func TestOddStores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, other := newMachine(t), newMachine(t)
		defer m.close(t)
		defer other.close(t)
		o := odd{t: t, e: write.Of(m.s).Engine(), ends: make(map[structure.RunID]uint64), spans: []structure.SpanRef{{}}}
		for range rapid.IntRange(1, 60).Draw(t, "early") {
			o.step()
		}
		early := writeBundle(t, m.s, bundle.WriteOptions{})
		bring(t, other.s, early)
		requireSame(t, m.s, other.s)
		require.True(t, bytes.Equal(early, writeBundle(t, other.s, bundle.WriteOptions{})))
		for range rapid.IntRange(1, 60).Draw(t, "late") {
			o.step()
		}
		have, err := bundle.Take(bg, other.s)
		require.NoError(t, err)
		bring(t, other.s, writeBundle(t, m.s, bundle.WriteOptions{Have: have}))
		full := writeBundle(t, m.s, bundle.WriteOptions{})
		bringAgain(t, other.s, full)
		requireSame(t, m.s, other.s)
		require.True(t, bytes.Equal(full, writeBundle(t, other.s, bundle.WriteOptions{})))
		requireSound(t, other.s)
	})
}

type odd struct {
	t       *rapid.T
	e       backend.Engine
	n       int
	runs    []structure.RunID
	ends    map[structure.RunID]uint64
	spans   []structure.SpanRef
	sets    []structure.SpanSetID
	threads []structure.ThreadID
	views   []structure.ContextID
}

func pick[T any](o *odd, all []T, what string) T {
	return all[rapid.IntRange(0, len(all)-1).Draw(o.t, what)]
}

func (o *odd) step() {
	o.n++
	at := time.Date(2026, 3, 1, 0, 0, o.n, 0, time.UTC)
	name := fmt.Sprint(os.Getpid(), o.n)
	apply := func(records ...structure.Record) {
		_, err := o.e.Apply(bg, &structure.Commit{Time: at, Records: records}, backend.Options{})
		require.NoError(o.t, err)
	}
	switch kind := rapid.IntRange(0, 9).Draw(o.t, "step"); {
	case kind == 0 || len(o.runs) == 0:
		r := &structure.Run{ID: id[structure.RunID](name), Parent: pick(o, o.spans, "parent")}
		o.runs = append(o.runs, r.ID)
		apply(r)
	case kind == 1:
		s := &structure.SpanSet{ID: id[structure.SpanSetID](name), Parent: pick(o, o.spans, "parent"), Count: 2, CreatedAt: at}
		o.sets = append(o.sets, s.ID)
		apply(s)
	case kind == 2:
		th := &structure.Thread{ID: id[structure.ThreadID](name), Title: name, CreatedAt: at, UpdatedAt: at}
		o.threads = append(o.threads, th.ID)
		apply(th)
	case kind <= 4:
		c := &structure.Context{ID: id[structure.ContextID](name), Base: pick(o, o.spans, "base"), Tip: pick(o, o.spans, "tip"), CreatedAt: at}
		if len(o.threads) > 0 {
			c.Thread = pick(o, o.threads, "thread")
		}
		if len(o.views) > 0 && rapid.Bool().Draw(o.t, "child") {
			c.Parent = pick(o, o.views, "parent")
		}
		if len(o.sets) > 0 && rapid.Bool().Draw(o.t, "in a set") {
			c.Set = pick(o, o.sets, "set")
		}
		o.views = append(o.views, c.ID)
		apply(c)
	default:
		run := pick(o, o.runs, "run")
		o.ends[run]++
		body := structure.NewBlock(content.TypeText, content.BlockOrigin{}, at, []byte(rapid.SampledFrom([]string{"a", "b", name}).Draw(o.t, "body")))
		s := &structure.Span{Ref: structure.SpanRef{Run: run, Seq: o.ends[run]}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: body.ID, CreatedAt: at}}}
		if len(o.sets) > 0 && rapid.Bool().Draw(o.t, "in a set") {
			s.Set = pick(o, o.sets, "set")
		}
		o.spans = append(o.spans, s.Ref)
		apply(body, s)
	}
}
