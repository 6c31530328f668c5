package projecttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// allValues returns all values in a store, as a reader sees them.
func allValues(t *testing.T, store *lineage.Store, source string) map[string]string {
	found := make(map[string]string)
	read := func(name string, values *lineage.Values) {
		for v, err := range values.All(bg, "") {
			require.NoError(t, err)
			at := v.SetAt.UnixMilli()
			found[fmt.Sprintf("%s: %s at %d", name, v.Key, at)] = string(v.JSON)
		}
	}
	read("store", store.Values(lineage.Owner{Scope: lineage.StoreScope}))
	read("app", store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: "app"}))
	read("ada", store.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}))
	thread, err := store.FindThread(bg, source)
	require.NoError(t, err)
	read("thread", store.Values(lineage.Owner{Thread: thread.ID()}))
	for c, err := range thread.Contexts(bg) {
		require.NoError(t, err)
		read(c.ID().String(), store.Values(lineage.Owner{Context: c.ID()}))
	}
	return found
}

// testValues projects values of every kind of owner, and imports them. Forks read the same values
// afterwards.
func testValues(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	rows := func(want int, where string) {
		t.Helper()
		s.project(t, store, db)
		require.Equal(t, want, count(t, database, `SELECT COUNT(*) FROM "lineage_values" WHERE `+where), where)
		requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
		for d, err := range project.Compare(bg, db, store, project.CompareOptions{}) {
			require.NoError(t, err)
			require.Fail(t, d.String())
		}
	}
	set := func(values *lineage.Values, key, value string) {
		t.Helper()
		require.NoError(t, values.Set(bg, key, []byte(value)))
	}
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "a", UserID: "ada"})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	say := func(c *lineage.Context, text string) {
		_, err := c.Extend(bg, lineage.User(text))
		require.NoError(t, err)
	}
	large := `"` + strings.Repeat("large ", 20_000) + `"`
	for name, values := range map[string]*lineage.Values{
		"store": store.Values(lineage.Owner{Scope: lineage.StoreScope}), "app": store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: "app"}), "ada": store.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), "thread": store.Values(lineage.Owner{Thread: thread.ID()}),
	} {
		set(values, "k", `{"of": "`+name+`",  "n": 1.0}`)
		set(values, "gone", "1")
		require.NoError(t, values.Delete(bg, "gone"))
	}
	set(store.Values(lineage.Owner{Thread: thread.ID()}), "large", large)
	rows(5, `1 = 1`)

	set(store.Values(lineage.Owner{Context: main.ID()}), "k", `"first"`)
	set(store.Values(lineage.Owner{Context: main.ID()}), "hidden", `"first"`)
	say(main, "one")
	fork, err := main.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	set(store.Values(lineage.Owner{Context: main.ID()}), "k", `"second"`)
	rows(2, `"scope" = 'context' AND "latest" = 1`)
	rows(1, `"latest" = 0`)
	say(fork, "on the fork")
	below, err := fork.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: below.ID()}).Delete(bg, "hidden"))
	set(store.Values(lineage.Owner{Context: main.ID()}), "hidden", `"second"`)
	rows(2, `"latest" = 0`)
	v, err := store.Values(lineage.Owner{Context: below.ID()}).Get(bg, "k")
	require.NoError(t, err)
	require.Equal(t, `"first"`, string(v.JSON))

	other := newStore(t)
	s.doImport(t, db, other)
	require.Equal(t, allValues(t, store, "a"), allValues(t, other, "a"))
	head, err := other.View().Head(bg)
	require.NoError(t, err)
	require.Zero(t, s.doImport(t, db, other).Changed)
	now, err := other.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now, "importing again adds nothing")
	set(store.Values(lineage.Owner{Context: fork.ID()}), "k", `"own"`)
	set(store.Values(lineage.Owner{Scope: lineage.StoreScope}), "k", `"changed"`)
	require.NoError(t, store.Values(lineage.Owner{Thread: thread.ID()}).Delete(bg, "large"))
	s.project(t, store, db)
	s.doImport(t, db, other)
	want := allValues(t, store, "a")
	for key := range want {
		require.NotContains(t, key, "large")
	}
	got := allValues(t, other, "a")
	for key := range got {
		if strings.HasPrefix(key, "thread: large") {
			delete(got, key) // what was deleted in the database stays in the store
		}
	}
	require.Equal(t, want, got)

	require.NoError(t, below.Delete(bg))
	rows(2, `"latest" = 0`)
	require.NoError(t, fork.Delete(bg))
	rows(0, `"latest" = 0`)
	set(store.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), "large", large)
	rows(1, `"content_id" IS NOT NULL AND "value" IS NOT NULL`)
	require.NoError(t, store.Erase(bg, content.Sum([]byte(large))))
	rows(1, `"content_id" IS NOT NULL AND "value" IS NULL`)
	set(store.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), "large", large)
	rows(1, `"content_id" IS NOT NULL AND "value" IS NOT NULL`)
	require.NoError(t, thread.Delete(bg))
	rows(0, `"scope" IN ('thread', 'context')`)
	rows(4, `1 = 1`)
}
