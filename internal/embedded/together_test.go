package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// talker adds messages to its own context.
type talker struct {
	context structure.ContextID
	run     structure.RunID
	said    uint64 // number of acknowledged messages
}

func newTalker() *talker {
	return &talker{context: structure.NewID[structure.ContextID](), run: structure.NewID[structure.RunID]()}
}

func (k *talker) body(n uint64) []byte {
	return fmt.Appendf(nil, "%v says for the %d-th time: %0*d", k.context, n, int(n*37%700), n)
}

func (k *talker) say(e *Engine, d backend.Durability) error {
	n := k.said + 1
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), k.body(n))
	at := structure.SpanRef{Run: k.run, Seq: n}
	c := &structure.Commit{Records: []structure.Record{
		block,
		&structure.Span{Ref: at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID}}},
		&structure.Tip{Context: k.context, Span: at},
	}}
	o := backend.Options{Durability: d}
	if n == 1 {
		c.Records = append([]structure.Record{&structure.Context{ID: k.context}, &structure.Run{ID: k.run}}, c.Records...)
	} else {
		o.Tips = []backend.Expect{{Context: k.context, Tip: structure.SpanRef{Run: k.run, Seq: k.said}}}
	}
	_, err := e.Apply(background, c, o)
	if err == nil {
		k.said++
	}
	return err
}

// aside forks the context, adds a message to the fork, and deletes the fork.
func (k *talker) aside(e *Engine, d backend.Durability) error {
	at := structure.SpanRef{Run: k.run, Seq: k.said}
	run := structure.NewID[structure.RunID]()
	fork := &structure.Context{ID: structure.NewID[structure.ContextID](), Parent: k.context, Base: at, Tip: at}
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), fmt.Append(nil, "aside ", fork.ID))
	first := structure.SpanRef{Run: run, Seq: 1}
	for _, records := range [][]structure.Record{
		{fork},
		{
			&structure.Run{ID: run, Parent: at}, block,
			&structure.Span{Ref: first, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID}}},
			&structure.Tip{Context: fork.ID, Span: first},
		},
		{&structure.Deletion{Subject: structure.KindContext, Context: fork.ID, At: time.Now()}},
	} {
		if _, err := e.Apply(background, &structure.Commit{Records: records}, backend.Options{Durability: d}); err != nil {
			return err
		}
	}
	return nil
}

// read requires all acknowledged messages, and no gap after them.
func (k *talker) read(r backend.Reader) error {
	last, err := r.Last(background, k.run)
	if errors.Is(err, backend.ErrNotFound) && k.said == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if last.Seq < k.said {
		return fmt.Errorf("%d messages of %d", last.Seq, k.said)
	}
	n := uint64(0)
	for s, err := range r.Path(background, last, structure.Window{}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return err
		}
		if n++; string(s.Blocks[0].Body) != string(k.body(n)) {
			return fmt.Errorf("message %d is %q", n, s.Blocks[0].Body)
		}
	}
	if n != last.Seq {
		return fmt.Errorf("%d messages, but the last is %v", n, last)
	}
	return nil
}

// All operations run concurrently until the store is closed: nothing blocks forever,
// and acknowledged messages exist. Segments and the overlay are minimal, so that
// segments are always being started, packed and folded.
func TestConcurrentUse(t *testing.T) {
	dir := t.TempDir()
	o := Options{SegmentSize: 1, OverlayBytes: 8 << 10, SyncInterval: time.Millisecond}
	talkers := make([]*talker, 8)
	for i := range talkers {
		talkers[i] = newTalker()
	}
	for round := range campaign.Rounds(3) {
		e, err := Open(background, dir, o)
		require.NoError(t, err)
		together(t, e, talkers, 60)
		require.NoError(t, e.Close())
		e, err = Open(background, dir, o)
		require.NoError(t, err)
		for _, k := range talkers {
			require.NoError(t, k.read(e), "round %d", round)
			last, err := e.Last(background, k.run)
			if !errors.Is(err, backend.ErrNotFound) { // closed before its first message
				require.NoError(t, err)
			}
			k.said = last.Seq // unacknowledged messages may exist
		}
		if round%3 == 2 {
			require.Empty(t, findings(t, e, true))
		}
		require.NoError(t, e.Close())
	}
}

// together lets each talker add so many messages while others read, follow, pack,
// collect, verify and sync, and closes the store about half way.
func together(t *testing.T, e *Engine, talkers []*talker, each uint64) {
	var all sync.WaitGroup
	work := func(what string, do func() error) {
		all.Go(func() {
			if err := do(); err != nil && !errors.Is(err, backend.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	for i, k := range talkers {
		d := []backend.Durability{backend.Full, backend.Normal}[i%2]
		work("talk", func() error {
			until := k.said + each
			for k.said < until {
				if err := k.say(e, d); err != nil {
					return err
				}
				if k.said%7 == 0 {
					if err := k.aside(e, d); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	forEver := func(what string, do func() error) {
		work(what, func() error {
			for {
				if err := do(); err != nil {
					return err
				}
			}
		})
	}
	for range 2 {
		forEver("read", func() error {
			k := talkers[rand.IntN(len(talkers))]
			s, err := e.Snapshot(background)
			if err != nil {
				return err
			}
			defer s.Close()
			return (&talker{context: k.context, run: k.run}).read(s)
		})
	}
	next := uint64(1)
	forEver("follow", func() error {
		for c, err := range e.Feed(background, backend.Cursor{Number: next - 1}) {
			if err != nil {
				return err
			}
			if c.Number != next {
				return fmt.Errorf("commit %d, expected %d", c.Number, next)
			}
			next++
		}
		_, err := e.Wait(background, backend.Cursor{Number: next - 1})
		return err
	})
	forEver("pack", func() error {
		o := backend.PackOptions{All: rand.IntN(3) == 0, Dense: rand.IntN(3) == 0}
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		if rand.IntN(4) == 0 {
			cancel()
		}
		_, err := e.Pack(ctx, o)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
	forEver("collect", func() error {
		_, err := e.Collect(background, backend.CollectOptions{KeepUnused: -1, KeepReflog: -1, DryRun: rand.IntN(4) == 0})
		return err
	})
	forEver("verify", func() error {
		for f, err := range e.Verify(background, backend.VerifyOptions{Deep: rand.IntN(2) == 0}) {
			if err != nil {
				return err
			}
			return errors.New(f.String())
		}
		return nil
	})
	forEver("sync", func() error {
		time.Sleep(time.Millisecond)
		return e.Sync(background)
	})
	work("close", func() error {
		if _, err := e.Wait(background, backend.Cursor{Number: e.index.Number() + uint64(len(talkers))*each/2}); err != nil {
			return err
		}
		return e.Close()
	})
	all.Wait()
}
