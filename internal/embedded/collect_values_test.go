package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// valueStore is a store with a thread and a context whose values change between messages.
type valueStore struct {
	*collectStore
	thread *structure.Thread
	main   *structure.Context
	run    structure.RunID
	said   uint64
	clock  time.Time
}

func newValueStore(t *testing.T) *valueStore {
	s := &valueStore{
		collectStore: newCollectStore(t, t.TempDir(), nil), run: structure.DeriveID[structure.RunID]("run"), clock: time.UnixMilli(1_700_000_000_000),
	}
	s.thread = &structure.Thread{ID: structure.DeriveID[structure.ThreadID]("t"), Incarnation: 3}
	s.main = &structure.Context{ID: structure.DeriveID[structure.ContextID]("main"), Thread: s.thread.ID}
	s.apply(s.thread, s.main, &structure.Run{ID: s.run, Home: s.thread.Home()})
	return s
}

func (s *valueStore) apply(records ...structure.Record) {
	s.t.Helper()
	s.clock = s.clock.Add(time.Hour)
	_, err := s.engine.Apply(background, &structure.Commit{Time: s.clock, Records: records}, backend.Options{})
	require.NoError(s.t, err)
}

func (s *valueStore) at(seq uint64) (ref structure.SpanRef) {
	if seq > 0 {
		ref = structure.SpanRef{Run: s.run, Seq: seq}
	}
	return ref
}

// set sets a value of main to a new block, or deletes it.
func (s *valueStore) set(key, text string) content.ID {
	s.t.Helper()
	v := &structure.Value{ValueKey: structure.ValueKey{Owner: ofContext(s.main.ID), Key: key}, Seen: s.at(s.said), At: s.clock}
	if text == "" {
		s.apply(v)
		return content.ID{}
	}
	b := structure.NewBlock(content.TypeJSON, content.BlockOrigin{}, s.clock, []byte(fmt.Sprintf("%q", text)))
	v.Content = b.ID
	s.apply(b, v)
	return b.ID
}

func ofContext(id structure.ContextID) structure.Owner {
	return structure.Owner{Scope: structure.ContextScope, Context: id}
}

func (s *valueStore) say() {
	s.t.Helper()
	s.said++
	b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, s.clock, []byte(fmt.Sprint("said ", s.said)))
	s.apply(b, &structure.Span{Ref: s.at(s.said), Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: b.ID}}},
		&structure.Tip{Context: s.main.ID, Span: s.at(s.said)})
}

func (s *valueStore) fork(name string, parent structure.ContextID, base uint64) structure.ContextID {
	s.t.Helper()
	c := &structure.Context{ID: structure.DeriveID[structure.ContextID](name), Thread: s.thread.ID, Parent: parent, Base: s.at(base), Tip: s.at(base)}
	s.apply(c)
	return c.ID
}

// read returns the contents of the values in force in a context.
func (s *valueStore) read(id structure.ContextID) map[string]content.ID {
	s.t.Helper()
	all := map[string]content.ID{}
	for v, err := range backend.NewContextValues(background, s.engine, id).All("", "") {
		require.NoError(s.t, err)
		_, err := s.engine.Blocks(background, []content.ID{v.Content})
		require.NoError(s.t, err)
		all[v.Key] = v.Content
	}
	return all
}

func (s *valueStore) history(key string) (all []content.ID) {
	s.t.Helper()
	for v, err := range s.engine.ValueHistory(background, structure.ValueKey{Owner: ofContext(s.main.ID), Key: key}) {
		require.NoError(s.t, err)
		all = append(all, v.Content)
	}
	return all
}

func (s *valueStore) collectNow(keep time.Duration) {
	s.t.Helper()
	_, err := s.engine.Collect(background, backend.CollectOptions{Now: s.clock, KeepReflog: keep, KeepUnused: -1})
	require.NoError(s.t, err)
	s.verify()
}

// journalHas reports whether the journal contains the bytes.
func (s *valueStore) journalHas(text string) bool {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, journalDir, "*"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(s.t, err)
		if strings.Contains(string(b), text) {
			return true
		}
	}
	return false
}

// A collection deletes replaced values with their content. It keeps values that forks
// inherit, also through other forks and where a fork has its own value.
func TestCollectKeepsValuesThatForksInherit(t *testing.T) {
	s := newValueStore(t)
	defer s.close()
	v1 := s.set("k", "first secret")
	s.say()
	v2 := s.set("k", "second secret")
	s.say()
	v3 := s.set("k", "third secret")
	gone := s.set("gone", "fourth secret")
	s.say()
	s.set("gone", "")
	v4 := s.set("k", "fifth secret")
	s.say()
	v5 := s.set("k", "sixth secret")
	one := s.fork("one", s.main.ID, 1)
	three := s.fork("three", s.main.ID, 3)
	ofThree := s.fork("of three", three, 3)
	earlier := s.fork("earlier", three, 2) // before the base of its parent
	own := &structure.Value{ValueKey: structure.ValueKey{Owner: ofContext(three), Key: "k"}, Seen: s.at(3), At: s.clock}
	s.apply(own)
	want := map[structure.ContextID]map[string]content.ID{
		s.main.ID: {"k": v5}, one: {"k": v1}, three: {"gone": gone}, ofThree: {"k": v3, "gone": gone}, earlier: {"k": v2},
	}
	check := func() {
		t.Helper()
		for id, values := range want {
			require.Equal(t, values, s.read(id))
		}
	}
	check()
	s.clock = s.clock.Add(100 * time.Hour)
	s.collectNow(200 * time.Hour) // all of it is young
	require.Equal(t, []content.ID{v5, v4, v3, v2, v1}, s.history("k"))
	s.collectNow(50 * time.Hour)
	for range 2 {
		check()
		require.Equal(t, []content.ID{v5, v3, v2, v1}, s.history("k"))
		require.False(t, s.journalHas("fifth secret"))
		s.rebuildIndex()
		s.verify()
	}
	// The next collection removes values that are no longer needed.
	s.apply(&structure.Deletion{Subject: structure.KindContext, Context: earlier}, &structure.Deletion{Subject: structure.KindContext, Context: ofThree})
	s.collectNow(-1)
	require.Equal(t, []content.ID{v5, v3, v1}, s.history("k"), "three would inherit it if it had none of its own")
	require.False(t, s.journalHas("second secret"))
	s.apply(&structure.Deletion{Subject: structure.KindThread, Thread: s.thread.ID})
	s.collectNow(-1)
	require.False(t, s.journalHas("secret"))
	require.Empty(t, s.history("k"))
}

// The value at the start of the reflog and the younger ones are kept.
func TestCollectKeepsValuesAsLongAsTheReflog(t *testing.T) {
	s := newValueStore(t)
	defer s.close()
	var all []content.ID
	for i := range 6 {
		all = append(all, s.set("k", fmt.Sprint(i))) // one per hour
	}
	s.collectNow(3 * time.Hour) // the last three, and the one before
	require.Equal(t, []content.ID{all[5], all[4], all[3], all[2]}, s.history("k"))
	s.collectNow(-1)
	require.Equal(t, []content.ID{all[5]}, s.history("k"))
	s.set("k", "")
	s.collectNow(-1)
	require.Equal(t, []content.ID{{}}, s.history("k"), "followers of the store need it")
}

// A value that the same commit replaces is deleted.
func TestCollectDeletesValuesReplacedAtOnce(t *testing.T) {
	s := newValueStore(t)
	defer s.close()
	key := structure.ValueKey{Owner: ofContext(s.main.ID), Key: "k"}
	body := structure.NewBlock(content.TypeJSON, content.BlockOrigin{}, s.clock, []byte(`"a secret in a block"`))
	s.apply(
		&structure.Value{ValueKey: key, JSON: []byte(`"an inline secret"`), At: s.clock}, body, &structure.Value{ValueKey: key, Content: body.ID, At: s.clock},
		&structure.Value{ValueKey: key, JSON: []byte(`"what is left"`), At: s.clock},
	)
	require.True(t, s.journalHas("secret"))
	s.collectNow(-1)
	for range 2 {
		require.False(t, s.journalHas("secret"))
		require.True(t, s.journalHas("what is left"))
		require.Equal(t, []string{`"what is left"`}, jsonOf(t, s.engine, key))
		s.rebuildIndex()
		s.verify()
	}
}

// A context that is forked during a collection inherits the same values.
func TestForkDuringCollect(t *testing.T) {
	s := newValueStore(t)
	defer s.close()
	v1 := s.set("k", "first")
	s.say()
	s.set("k", "second")
	s.say()
	v3 := s.set("k", "third")
	c := s.engine.newCollection(background, backend.CollectOptions{Now: s.clock.Add(time.Hour), KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, c.Mark())
	one := s.fork("one", s.main.ID, 1)
	got, err := c.Raise()
	require.NoError(t, err)
	require.NoError(t, c.Prune(got))
	got.Close()
	require.NoError(t, c.Sweep())
	for range 2 {
		require.Equal(t, map[string]content.ID{"k": v1}, s.read(one))
		require.Equal(t, []content.ID{v3, v1}, s.history("k"))
		s.verify()
		s.rebuildIndex()
	}
}
