package bundle_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

func ofStore() structure.Owner { return structure.Owner{Scope: structure.StoreScope} }

func ofContext(id structure.ContextID) structure.Owner {
	return structure.Owner{Scope: structure.ContextScope, Context: id}
}

// set applies values, each in a commit of its own. Empty JSON deletes.
func set(t *testing.T, s *lineage.Store, values ...*structure.Value) {
	t.Helper()
	for _, v := range values {
		_, err := write.Of(s).Engine().Apply(bg, &structure.Commit{Time: write.Of(s).Now(), Records: []structure.Record{v}}, backend.Options{})
		require.NoError(t, err)
	}
}

// valueAt returns a value that was set at a second.
func valueAt(owner structure.Owner, second int64, json string) *structure.Value {
	v := &structure.Value{ValueKey: valueKey(owner, "k"), At: time.Unix(1_700_000_000+second, 0).UTC()}
	if json != "" {
		v.JSON = []byte(json)
	}
	return v
}

// history returns the JSON of a value and of its earlier values, the latest first.
func history(t *testing.T, s *lineage.Store, key structure.ValueKey) string {
	t.Helper()
	all := []string{}
	for v, err := range write.Of(s).Engine().ValueHistory(bg, key) {
		require.NoError(t, err)
		all = append(all, string(v.JSON))
	}
	return strings.Join(all, " ")
}

// TestValuesMeet imports values into a store that has none, the same, older or newer ones.
func TestValuesMeet(t *testing.T) {
	v := func(second int64, text string) *structure.Value {
		if text != "" {
			text = fmt.Sprintf("%q", text)
		}
		return valueAt(ofStore(), second, text)
	}
	one, two, three := v(1, "1"), v(2, "2"), v(3, "3")
	for _, tt := range []struct {
		name         string
		ours, theirs []*structure.Value
		want         string // the history after it
	}{
		{"none here", nil, []*structure.Value{one, two, three}, "3 2 1"},
		{"none here, at one time", nil, []*structure.Value{v(1, "1"), v(1, "2"), v(1, "3")}, "3 2 1"},
		{"none there", []*structure.Value{one, two}, nil, "2 1"},
		{"the same", []*structure.Value{one, two}, []*structure.Value{one, two}, "2 1"},
		{"gone on there", []*structure.Value{one}, []*structure.Value{one, two, three}, "3 2 1"},
		{"gone on there, at one time", []*structure.Value{v(1, "1")}, []*structure.Value{v(1, "1"), v(1, "2"), v(1, "3")}, "3 2 1"},
		{"gone on there, with a clock behind", []*structure.Value{two}, []*structure.Value{two, one}, "1 2"},
		{"gone on here", []*structure.Value{one, two, three}, []*structure.Value{one, two}, "3 2 1"},
		{"gone on here, with a clock behind", []*structure.Value{two, one}, []*structure.Value{two}, "1 2"},
		{"ours is newer", []*structure.Value{three}, []*structure.Value{one, two}, "3"},
		{"theirs is newer", []*structure.Value{one}, []*structure.Value{v(2, "x"), three}, "3 1"},
		{"at one time", []*structure.Value{v(1, "ours")}, []*structure.Value{v(1, "theirs")}, "ours"},
		{"deleted there", []*structure.Value{one}, []*structure.Value{one, v(2, "")}, " 1"},
		{"deleted here", []*structure.Value{one, v(2, "")}, []*structure.Value{one}, " 1"},
		{"deleted here before it was set there", []*structure.Value{one, v(2, "")}, []*structure.Value{three}, "3  1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newStore(t), newStore(t)
			set(t, a, tt.theirs...)
			set(t, b, tt.ours...)
			theirs := writeBundle(t, a, bundle.WriteOptions{})
			bring(t, b, theirs)
			require.Equal(t, tt.want, strings.ReplaceAll(history(t, b, valueKey(ofStore(), "k")), `"`, ""))
			bringAgain(t, b, theirs)
			requireSound(t, b)
		})
	}
}

// TestValuesOfForks imports a context whose values forks inherit, in one or two bundles.
func TestValuesOfForks(t *testing.T) {
	a, whole, parts := newStore(t), newStore(t), newStore(t)
	_, main := newThread(t, a, "one")
	var forks []*lineage.Context
	said := func(json string) {
		t.Helper()
		tip, err := main.Tip(bg)
		require.NoError(t, err)
		v := valueAt(ofContext(main.ID()), 1, json)
		v.Seen = tip
		set(t, a, v)
		at := say(t, main, "said after "+json)
		fork, err := main.Fork(bg, lineage.ForkOptions{At: at})
		require.NoError(t, err)
		forks = append(forks, fork)
	}
	said("1")
	said("2")
	bring(t, parts, writeBundle(t, a, bundle.WriteOptions{}))
	have, err := bundle.Take(bg, parts)
	require.NoError(t, err)
	said("3")
	said("4")
	bring(t, parts, writeBundle(t, a, bundle.WriteOptions{Have: have}))
	bring(t, whole, writeBundle(t, a, bundle.WriteOptions{}))
	for _, s := range []*lineage.Store{a, whole, parts} {
		for i, fork := range forks {
			v, err := backend.NewContextValues(bg, write.Of(s).Engine(), fork.ID()).Value("k")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i+1), string(v.JSON))
		}
		requireSound(t, s)
	}
	requireSame(t, a, whole)
	requireSame(t, a, parts)
}

// TestValuesOfConflicts keeps the values of both contexts of a conflict.
func TestValuesOfConflicts(t *testing.T) {
	a, b, main := copies(t)
	for name, s := range map[string]*lineage.Store{"theirs": a, "ours": b} {
		v := valueAt(ofContext(main), 1, fmt.Sprintf("%q", name))
		v.Seen = say(t, on(t, s, main), name)
		set(t, s, v)
	}
	theirs := writeBundle(t, a, bundle.WriteOptions{})
	report := bring(t, b, theirs)
	require.Len(t, report.Conflicts, 1)
	require.Equal(t, `"ours"`, history(t, b, valueKey(ofContext(main), "k")))
	key := valueKey(ofContext(report.Conflicts[0].Theirs), "k")
	require.Equal(t, `"theirs"`, history(t, b, key))
	got, err := write.Of(b).Engine().Value(bg, key)
	require.NoError(t, err)
	_, err = write.Of(b).Engine().Digest(bg, got.Seen)
	require.NoError(t, err)
	tip, err := on(t, b, report.Conflicts[0].Theirs).Tip(bg)
	require.NoError(t, err)
	require.Equal(t, tip, got.Seen, "where it is here")
	bringAgain(t, b, theirs)
	requireSound(t, b)
}

// TestValuesSeenElsewhere imports a value that names a span that is not in the bundle. The span
// here at the same place is another one.
func TestValuesSeenElsewhere(t *testing.T) {
	a, b, main := copies(t)
	before, err := on(t, a, main).Tip(bg)
	require.NoError(t, err)
	v := valueAt(ofContext(main), 1, "1")
	v.Seen = say(t, on(t, a, main), "taken back")
	set(t, a, v)
	_, err = write.Of(a).Engine().Apply(bg, &structure.Commit{Records: []structure.Record{&structure.Tip{Context: main, Span: before}}}, backend.Options{})
	require.NoError(t, err) // without an entry in the reflog
	require.Equal(t, v.Seen, say(t, on(t, b, main), "said here"), "the same place")
	fork, err := on(t, b, main).Fork(bg, lineage.ForkOptions{At: say(t, on(t, b, main), "and more")})
	require.NoError(t, err)
	theirs := writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, theirs)
	got, err := write.Of(b).Engine().Value(bg, v.ValueKey)
	require.NoError(t, err)
	require.Equal(t, structure.CollectedSpan, got.Seen)
	_, err = backend.NewContextValues(bg, write.Of(b).Engine(), fork.ID()).Value("k")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	bringAgain(t, b, theirs)
	c := newStore(t)
	bring(t, c, theirs)
	requireSameBundle(t, theirs, writeBundle(t, c, bundle.WriteOptions{}))
}

// TestValuesOfChosen imports the values of the chosen threads and contexts, and no others.
func TestValuesOfChosen(t *testing.T) {
	a := newStore(t)
	one, main := newThread(t, a, "one")
	two, other := newThread(t, a, "two")
	in := func(s *lineage.Store, id lineage.ThreadID, json string) *structure.Value {
		th, err := write.Of(s).Engine().Thread(bg, id)
		require.NoError(t, err)
		v := valueAt(structure.Owner{Scope: structure.ThreadScope, Thread: id}, 1, json)
		v.Incarnation = th.Incarnation
		return v
	}
	set(t, a, in(a, one.ID(), "1"), in(a, two.ID(), "2"), valueAt(ofContext(main.ID()), 1, "3"), valueAt(ofContext(other.ID()), 1, "4"),
		valueAt(ofStore(), 1, "5"), valueAt(structure.Owner{Scope: structure.UserScope, Name: "ada"}, 1, "6"))
	b := newStore(t)
	_, err := b.CreateThread(bg, lineage.ThreadOptions{SourceID: "one"}) // another incarnation
	require.NoError(t, err)
	report := bring(t, b, writeBundle(t, a, bundle.WriteOptions{Threads: []lineage.ThreadID{one.ID()}}))
	require.EqualValues(t, 2, report.Values)
	require.Equal(t, "1", history(t, b, in(b, one.ID(), "").ValueKey))
	require.Equal(t, "3", history(t, b, valueKey(ofContext(main.ID()), "k")))
	require.Empty(t, history(t, b, valueKey(ofStore(), "k")))
	for name, err := range write.Of(b).Engine().ValueOwners(bg, structure.UserScope, "") {
		require.NoError(t, err)
		require.Fail(t, name)
	}
	c := newStore(t)
	report = bring(t, c, writeBundle(t, a, bundle.WriteOptions{Contexts: []lineage.ContextID{other.ID()}}))
	require.EqualValues(t, 2, report.Values, "its thread's too")
	requireSound(t, b)
	requireSound(t, c)
}

// TestLargeValues imports values in blocks, erased ones too, and a history that exceeds the limit
// of memory.
func TestLargeValues(t *testing.T) {
	a, b := newStore(t), newStore(t)
	body := []byte(fmt.Sprintf("%q", strings.Repeat("large ", structure.MaxInlineValue)))
	for i, erased := range []bool{false, true} {
		large := append(bytes.Clone(body[:len(body)-1]), fmt.Sprintf(`%d"`, i)...)
		block, _, err := a.Put(bg, bytes.NewReader(large), lineage.BlockOptions{Type: content.TypeJSON})
		require.NoError(t, err)
		id := block.ID
		v := &structure.Value{ValueKey: valueKey(ofStore(), fmt.Sprint("large ", i)), Content: id, At: write.Of(a).Now()}
		set(t, a, v)
		if erased {
			require.NoError(t, a.Erase(bg, id))
		}
	}
	for i := range 300 {
		set(t, a, valueAt(ofStore(), int64(i), fmt.Sprintf(`"%05d%s"`, i, strings.Repeat("x", 60<<10))))
	}
	whole := writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, whole)
	require.Equal(t, history(t, a, valueKey(ofStore(), "k")), history(t, b, valueKey(ofStore(), "k")))
	for i, want := range []error{nil, backend.ErrErased} {
		v, err := write.Of(b).Engine().Value(bg, valueKey(ofStore(), fmt.Sprint("large ", i)))
		require.NoError(t, err)
		_, err = write.Of(b).Engine().Blocks(bg, []content.ID{v.Content})
		require.ErrorIs(t, err, want)
	}
	bringAgain(t, b, whole)
	requireSameBundle(t, whole, writeBundle(t, b, bundle.WriteOptions{}))
	requireSound(t, b)
}
