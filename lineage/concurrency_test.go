package lineage_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

const (
	writers   = 64
	perWriter = 10
)

// requireWritten requires that a history has all messages of each writer, once and in order.
func requireWritten(t *testing.T, said []string, each int) {
	t.Helper()
	next := make(map[string]int)
	for _, text := range said {
		writer, number, _ := strings.Cut(text, "/")
		require.Equal(t, fmt.Sprint(next[writer]), number, "writer %s out of order", writer)
		next[writer]++
	}
	for writer, n := range next {
		require.Equal(t, each, n, "writer %s", writer)
	}
}

func TestManyWritersOnOneContext(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	thread, c := newThread(t, s)
	errs := make([]error, writers)
	forks := make([]*lineage.Context, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range perWriter {
				_, err := c.Extend(bg, lineage.User(fmt.Sprintf("%d/%d", w, i)))
				if err == nil && i == perWriter/2 {
					forks[w], err = c.Fork(bg, lineage.ForkOptions{Thread: thread.ID()})
				}
				if err == nil && i > perWriter/2 {
					_, err = forks[w].Extend(bg, lineage.Assistant("aside"), lineage.Assistant("still aside"))
				}
				if err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	s = open(t, dir)
	c, err := s.Context(bg, c.ID())
	require.NoError(t, err)
	all := texts(t, c)
	require.Len(t, all, writers*perWriter)
	requireWritten(t, all, perWriter)
	for _, f := range forks {
		f, err := s.Context(bg, f.ID())
		require.NoError(t, err)
		said := texts(t, f)
		own := 2 * (perWriter - perWriter/2 - 1)
		require.Equal(t, all[:len(said)-own], said[:len(said)-own], "a fork begins like what it was forked from")
		for _, text := range said[len(said)-own:] {
			require.Contains(t, text, "aside")
		}
	}
	requireSound(t, s)
}

// TestExtendFromLosesNothing lets writers compete: of those that saw the same tip, exactly one
// extends it.
func TestExtendFromLosesNothing(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := 0; i < perWriter && errs[w] == nil; {
				at, err := c.Tip(bg)
				if err == nil {
					_, err = c.ExtendFrom(bg, at, lineage.User(fmt.Sprintf("%d/%d", w, i)))
				}
				switch moved := new(lineage.TipError); {
				case err == nil:
					i++
				case !errors.As(err, &moved):
					errs[w] = err
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	all := texts(t, c)
	require.Len(t, all, len(errs)*perWriter)
	requireWritten(t, all, perWriter)
}

// TestReadersSeeWholeHistories reads during writes.
func TestReadersSeeWholeHistories(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	done := make(chan struct{})
	var reader error
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			n := 0
			for e, err := range c.Entries(bg, lineage.Window{}) {
				if n++; err == nil && (e.Position != uint64(n) || e.Excerpt() != fmt.Sprint(n)) {
					err = fmt.Errorf("position %d: %d %q", n, e.Position, e.Excerpt())
				}
				if err != nil {
					reader = err
					return
				}
			}
			if n%2 != 0 {
				reader = fmt.Errorf("%d messages: half of a commit", n)
				return
			}
		}
	})
	for i := 0; i < 400; i += 2 {
		_, err := c.Extend(bg, lineage.User(fmt.Sprint(i+1)), lineage.User(fmt.Sprint(i+2)))
		require.NoError(t, err)
	}
	close(done)
	wg.Wait()
	require.NoError(t, reader)
}

// TestConcurrentConversations runs agents that send to and merge each other.
func TestConcurrentConversations(t *testing.T) {
	s := newStore(t)
	shared := newContext(t, s, "shared")
	agents := make([]*lineage.Context, 4)
	for i := range agents {
		agents[i] = fork(t, shared)
	}
	errs := make([]error, len(agents))
	var wg sync.WaitGroup
	for i, agent := range agents {
		wg.Go(func() {
			other := agents[(i+1)%len(agents)]
			for n := range perWriter {
				_, _, err := addAndSend(s, agent, other, lineage.Assistant(fmt.Sprintf("%d/%d", i, n)), lineage.Item{Role: "user"})
				if err == nil {
					_, err = agent.Return(bg, lineage.Assistant(fmt.Sprintf("%d/%d", i, n)))
				}
				if err == nil {
					_, err = agent.Alternatives(bg, lineage.Overrides{})
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
			_, errs[i] = shared.Merge(bg, agent)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	for i, agent := range agents {
		heard, count := 0, 0
		for _, e := range gathered(t, agent.Entries(bg, lineage.Window{From: 2})) {
			if e.Role == "user" {
				require.Equal(t, fmt.Sprintf("%d/%d", (i+len(agents)-1)%len(agents), heard), e.Excerpt())
				heard++
			} else {
				require.Equal(t, fmt.Sprintf("%d/%d", i, count), e.Excerpt())
				count++
			}
		}
		require.Equal(t, []int{perWriter, perWriter}, []int{heard, count})
		_, err := shared.Merge(bg, agent)
		require.NoError(t, err)
		result, err := shared.Merge(bg, agent)
		require.NoError(t, err)
		require.Empty(t, result)
	}
	requireSound(t, s)
}

// Concurrent changes of metadata are not lost.
func TestMetadataChangedByMany(t *testing.T) {
	s := open(t, t.TempDir())
	c := newContext(t, s, "one")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			err := c.Update(bg, func(settings *lineage.ContextInfo) (err error) {
				all := map[string]int{}
				if settings.Metadata != nil {
					if err := json.Unmarshal(settings.Metadata, &all); err != nil {
						return err
					}
				}
				all[fmt.Sprint(w)] = w
				settings.Metadata, err = json.Marshal(all)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	info, err := c.Info(bg)
	require.NoError(t, err)
	all := map[string]int{}
	require.NoError(t, json.Unmarshal(info.Metadata, &all))
	require.Len(t, all, writers)

	failed := errors.New("no")
	require.ErrorIs(t, c.Update(bg, func(settings *lineage.ContextInfo) error {
		clear(settings.Metadata) // a copy: the caller may change it
		return failed
	}), failed)
	again, err := c.Info(bg)
	require.NoError(t, err)
	require.Equal(t, info.Metadata, again.Metadata)

	// Nothing is committed if change changes nothing, or only fields that cannot be set.
	before := head(t, s)
	require.NoError(t, c.Update(bg, func(settings *lineage.ContextInfo) error {
		settings.Tip, settings.Metadata = lineage.SpanRef{}, bytes.Clone(settings.Metadata)
		return nil
	}))
	require.Equal(t, before, head(t, s))
}
