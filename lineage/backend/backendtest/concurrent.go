package backendtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// attempt is an attempt to extend a context: the expected tip and the new one.
type attempt struct {
	context        structure.ContextID
	expected, next structure.SpanRef // next is zero for a read of the tip
}

// result is the result of an attempt: the tip before it.
type result struct {
	tip   structure.SpanRef
	moved bool
}

// register is the sequential specification of a context's tip, for porcupine.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		var order []structure.ContextID
		parts := map[structure.ContextID][]porcupine.Operation{}
		for _, op := range history {
			c := op.Input.(attempt).context
			if parts[c] == nil {
				order = append(order, c)
			}
			parts[c] = append(parts[c], op)
		}
		var out [][]porcupine.Operation
		for _, c := range order {
			out = append(out, parts[c])
		}
		return out
	},
	Init: func() any { return structure.SpanRef{} },
	Step: func(state, input, output any) (bool, any) {
		tip, in, out := state.(structure.SpanRef), input.(attempt), output.(result)
		if out.moved {
			return tip == in.expected, in.next
		}
		return out.tip == tip && (in.next.IsZero() || tip != in.expected), tip
	},
}

// crowd is a group of goroutines on one engine, with the results of their calls.
type crowd struct {
	engine backend.Engine
	clock  atomic.Int64

	mu      sync.Mutex
	history []porcupine.Operation
	added   map[uint64]addition // by number of the commit
	failed  []error
}

// addition is an acknowledged commit.
type addition struct {
	attempt
	body string
}

func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, err)
}

// testConcurrent extends and forks private and shared contexts from many
// goroutines. The results must be linearizable and match the final state.
func testConcurrent(t *testing.T, cfg Config) {
	cfg.Reopen = false
	s := newStore(t, cfg)
	const writers, shared, rounds = 64, 8, 2
	records := []structure.Record{thread("t")}
	for i := range shared {
		records = append(records, view(fmt.Sprint("shared ", i), "t", structure.SpanRef{}))
	}
	s.applyOnly(s.commit(records...), backend.Options{})
	c := &crowd{engine: s, added: map[uint64]addition{}}
	var writing, reading sync.WaitGroup
	stop := make(chan struct{})
	for range 2 { // readers
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					c.look(t)
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				name := fmt.Sprint(w, " ", i)
				c.extend(w, id[structure.ContextID](fmt.Sprint("shared ", (w+i)%shared)), name)
				if i == 0 {
					c.fork(w, id[structure.ContextID](fmt.Sprint("shared ", w%shared)), name)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	require.Empty(t, c.failed)
	require.True(t, porcupine.CheckOperations(register, c.history), "tips are not linearizable")
	c.settled(t)
	s.restart()
	c.engine = s
	c.settled(t)
	require.Empty(t, verify(t, s.Engine, true))
}

// look takes a snapshot and checks its consistency.
func (c *crowd) look(t *testing.T) {
	snapshot, err := c.engine.Snapshot(background)
	if err != nil {
		c.fail(err)
		return
	}
	defer snapshot.Close()
	consistent(t, snapshot)
}

// try applies an attempt, records its result and reports whether the tip was the
// expected one. ok is false for any other conflict.
func (c *crowd) try(client int, a attempt, body string, records []structure.Record) (moved, ok bool) {
	op := porcupine.Operation{ClientId: client, Input: a, Call: c.clock.Add(1)}
	receipt, err := c.engine.Apply(background, &structure.Commit{Records: records}, backend.Options{
		Tips: []backend.Expect{{Context: a.context, Tip: a.expected}},
	})
	op.Return = c.clock.Add(1)
	var tip *backend.TipError
	switch {
	case err == nil:
		op.Output = result{tip: a.expected, moved: true}
	case errors.As(err, &tip):
		op.Output = result{tip: tip.Actual}
	case errors.Is(err, backend.ErrConflict):
		return false, false
	default:
		c.fail(err)
		return true, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, op)
	if err == nil {
		if _, twice := c.added[receipt.Number]; twice {
			c.failed = append(c.failed, fmt.Errorf("commit number %d was given twice", receipt.Number))
		}
		c.added[receipt.Number] = addition{a, body}
	}
	return err == nil, true
}

// extend appends a message to a context and retries until it succeeds: in the
// run of the tip if the tip is its end, otherwise in a new run.
func (c *crowd) extend(client int, context structure.ContextID, body string) {
	for {
		op := porcupine.Operation{ClientId: client, Input: attempt{context: context}, Call: c.clock.Add(1)}
		v, err := c.engine.Context(background, context)
		if err != nil {
			c.fail(err)
			return
		}
		op.Return, op.Output = c.clock.Add(1), result{tip: v.Tip}
		c.mu.Lock()
		c.history = append(c.history, op)
		c.mu.Unlock()
		a := attempt{context: context, expected: v.Tip, next: structure.SpanRef{Run: v.Tip.Run, Seq: v.Tip.Seq + 1}}
		moved, ok := false, false
		if !v.Tip.IsZero() {
			moved, ok = c.try(client, a, body, extension(a, body, nil))
		}
		if !ok { // another client extended the run
			fresh := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: v.Tip}
			a.next = structure.SpanRef{Run: fresh.ID, Seq: 1}
			moved, _ = c.try(client, a, body, extension(a, body, fresh))
		}
		if moved {
			return
		}
	}
}

func extension(a attempt, body string, fresh *structure.Run) []structure.Record {
	var records []structure.Record
	if fresh != nil {
		records = append(records, fresh)
	}
	return append(records, text(body), says(a.next, body), &structure.Tip{Context: a.context, Span: a.next})
}

// fork creates a context at the tip of another one and extends it.
func (c *crowd) fork(client int, from structure.ContextID, name string) {
	v, err := c.engine.Context(background, from)
	if err != nil {
		c.fail(err)
		return
	}
	own := view("own "+name, "t", v.Tip)
	own.Parent = from
	op := porcupine.Operation{ClientId: client, Input: attempt{context: own.ID, next: v.Tip}, Call: c.clock.Add(1)}
	receipt, err := c.engine.Apply(background, &structure.Commit{Records: []structure.Record{own}}, backend.Options{})
	if err != nil {
		c.fail(err)
		return
	}
	op.Return, op.Output = c.clock.Add(1), result{moved: true}
	c.mu.Lock()
	c.history = append(c.history, op)
	c.added[receipt.Number] = addition{attempt{context: own.ID, next: v.Tip}, ""}
	c.mu.Unlock()
	c.extend(client, own.ID, "fork "+name)
}

// settled compares the engine with the acknowledged commits.
func (c *crowd) settled(t *testing.T) {
	head, err := c.engine.Head(background)
	require.NoError(t, err)
	require.Equal(t, uint64(len(c.added)+1), head.Number, "numbers have gaps")
	parents := map[structure.SpanRef]structure.SpanRef{}
	bodies := map[structure.SpanRef]string{}
	tips := map[structure.ContextID]structure.SpanRef{}
	for number := uint64(2); number <= head.Number; number++ {
		a, ok := c.added[number]
		require.True(t, ok, "nobody was given commit %d", number)
		require.Equal(t, tips[a.context], a.expected, "before commit %d", number)
		tips[a.context] = a.next
		if a.body != "" {
			parents[a.next], bodies[a.next] = a.expected, a.body
		}
	}
	for context, tip := range tips {
		v, err := c.engine.Context(background, context)
		require.NoError(t, err)
		require.Equal(t, tip, v.Tip)
		var want []string
		for at := tip; !at.IsZero(); at = parents[at] {
			want = append([]string{bodies[at]}, want...)
		}
		var got []string
		for s, err := range c.engine.Path(background, tip, structure.Window{}, backend.PathOptions{Bodies: true}) {
			require.NoError(t, err)
			require.Equal(t, content.Sum(s.Blocks[0].Body), s.Blocks[0].ID)
			got = append(got, string(s.Blocks[0].Body))
		}
		require.Equal(t, want, got)
	}
	next := uint64(1)
	for commit, err := range c.engine.Feed(background, from(1)) {
		require.NoError(t, err)
		require.Equal(t, next, commit.Number)
		next++
	}
	require.Equal(t, head.Number+1, next)
}
