package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// told commits messages with source ids to a thread. The first commit creates the thread and its run.
type told struct {
	thread structure.Thread
	run    structure.RunID
	last   uint64
}

func newTold(name string, incarnation uint64) *told {
	return &told{
		thread: structure.Thread{ID: structure.DeriveID[structure.ThreadID](name), Title: name, Incarnation: incarnation, CreatedAt: time.Now()},
		run:    structure.DeriveID[structure.RunID](fmt.Sprint(name, incarnation)),
	}
}

func (s *told) say(e *Engine, ids ...string) error {
	c := &structure.Commit{}
	if s.last == 0 {
		c.Records = append(c.Records, &s.thread, &structure.Run{ID: s.run, Home: s.thread.Home()})
	}
	var at structure.SpanRef
	for i, id := range ids {
		b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), []byte(id))
		at = structure.SpanRef{Run: s.run, Seq: s.last + uint64(i) + 1}
		c.Records = append(c.Records, b, &structure.Span{Ref: at, Usages: []structure.Usage{
			{Kind: structure.MessageUsage, Role: "user", Content: b.ID, SourceID: id, Lookup: 1},
		}})
	}
	c.Records = append(c.Records, &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: s.thread.ID, Base: at, Tip: at})
	_, err := e.Apply(background, c, backend.Options{})
	if err == nil {
		s.last += uint64(len(ids))
	}
	return err
}

// Source ids of a thread that appeared since the store was opened are not looked up in the index; what is there twice is
// refused as ever, also after the store was opened again, and in a thread that was deleted and created again it is not.
func TestCreatedLookups(t *testing.T) {
	dir := t.TempDir()
	open := func() *Engine {
		e, err := Open(background, dir, Options{NoPacking: true})
		require.NoError(t, err)
		return e
	}
	isNew := func(e *Engine, s *told, id string) bool {
		e.write.Lock()
		defer e.write.Unlock()
		return (*latestState)(e).NewLookup(judge.Lookup{Home: s.thread.Home(), SourceID: id, Number: 1})
	}
	e := open()
	a, b := newTold("a", 1), newTold("b", 1)
	require.NoError(t, a.say(e, "1", "2"))
	require.NoError(t, b.say(e, "1"))
	require.NoError(t, a.say(e, "3"))
	require.ErrorIs(t, a.say(e, "4", "2"), backend.ErrExists)
	require.ErrorIs(t, a.say(e, "4", "4"), backend.ErrExists)
	require.NoError(t, b.say(e, "2"))
	for _, id := range []string{"1", "2", "3"} {
		require.False(t, isNew(e, a, id))
	}
	require.True(t, isNew(e, a, "4"), "without a lookup")
	require.NoError(t, a.say(e, "4"))

	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: b.thread.ID}}}, backend.Options{})
	require.NoError(t, err)
	again := newTold("b", 2)
	require.NoError(t, again.say(e, "1", "2"))
	require.ErrorIs(t, again.say(e, "2"), backend.ErrExists)
	require.NoError(t, e.Close())

	e = open()
	defer e.Close()
	require.False(t, isNew(e, a, "5"), "the thread has a run from before")
	require.ErrorIs(t, a.say(e, "4"), backend.ErrExists)
	require.NoError(t, a.say(e, "5"))
	require.ErrorIs(t, a.say(e, "5"), backend.ErrExists)
}

// What is remembered is limited, and what was forgotten is looked up.
//
//test:norace
func TestLimitOfCreatedLookups(t *testing.T) {
	c := newCreatedLookups()
	had := make(map[structure.Home]bool)
	ask := func(home structure.Home, id int) bool {
		l := judge.Lookup{Home: home, SourceID: fmt.Sprint(id), Number: 1}
		got := c.isNew(l, func(h structure.Home) bool { return had[h] })
		had[home] = true
		c.add(l)
		return got
	}
	home := func(i int) structure.Home {
		return structure.Home{Thread: structure.DeriveID[structure.ThreadID](fmt.Sprint(i)), Incarnation: 1}
	}
	for i := range 3 * mostCreatedHomes {
		require.True(t, ask(home(i), 1))
		require.False(t, ask(home(i), 1))
		require.LessOrEqual(t, len(c.homes), mostCreatedHomes)
	}
	require.False(t, ask(home(0), 2), "it was forgotten, and had runs")
	large := home(-1)
	for i := range 2 * mostCreatedLookups {
		ask(large, i)
		require.LessOrEqual(t, c.size, mostCreatedLookups)
	}
	require.False(t, ask(large, -1))
	require.True(t, ask(home(-2), 1))
}
