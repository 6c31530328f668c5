package backendtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// scopes are the scopes whose owners have names.
var scopes = []structure.Scope{structure.ApplicationScope, structure.UserScope}

func isJSON(b []byte) bool { return json.Valid(b) }

func ofStore() structure.Owner { return structure.Owner{Scope: structure.StoreScope} }

func ofUser(name string) structure.Owner {
	return structure.Owner{Scope: structure.UserScope, Name: name}
}

func ofThread(name string) structure.Owner {
	return structure.Owner{Scope: structure.ThreadScope, Thread: id[structure.ThreadID](name)}
}

func ofContext(name string) structure.Owner {
	return structure.Owner{Scope: structure.ContextScope, Context: id[structure.ContextID](name)}
}

// value returns a value, or a deletion if the JSON is empty.
func value(owner structure.Owner, key, json string) *structure.Value {
	v := &structure.Value{ValueKey: structure.ValueKey{Owner: owner, Key: key}, At: moment(20)}
	if json != "" {
		v.JSON = []byte(json)
	}
	return v
}

// seenAt returns a value of a context, set when its tip was at a span.
func seenAt(context, key, json string, seen structure.SpanRef) *structure.Value {
	v := value(ofContext(context), key, json)
	v.Seen = seen
	return v
}

// exactly names an owner in a question. The String of an invalid owner may be that of a valid one.
func exactly(o structure.Owner) string {
	type fields structure.Owner
	return fmt.Sprintf("%+v", fields(o))
}

func (f Facts) values(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	for _, key := range seen.values.list() {
		got, err := r.Value(background, key)
		f.put(t, fmt.Sprintf("value %q of %s", key.Key, exactly(key.Owner)), answer(t, got, err))
		f.put(t, fmt.Sprintf("history of %q of %s", key.Key, exactly(key.Owner)), list(t, r.ValueHistory(background, key)))
		for _, other := range some(seen.values.list()) {
			for _, prefix := range prefixes(key.Key) {
				f.once(t, fmt.Sprintf("values %q… of %s after %q", prefix, exactly(key.Owner), other.Key), func() any {
					return list(t, r.Values(background, key.Owner, prefix, other.Key))
				})
			}
		}
		f.once(t, fmt.Sprint("values of ", exactly(key.Owner)), func() any { return list(t, r.Values(background, key.Owner, "", "")) })
	}
	for _, scope := range scopes {
		for _, after := range append(some(seen.owners.list()), "") {
			f.put(t, fmt.Sprintf("%vs with values after %q", scope, after), list(t, r.ValueOwners(background, scope, after)))
		}
	}
	for _, id := range seen.contexts.list() {
		f.put(t, fmt.Sprint("values in force in ", id), inForce(t, backend.NewContextValues(background, r, id), seen))
		for _, at := range append(some(seen.spans.list()), structure.SpanRef{}) {
			if got, err := r.Digest(background, at); err == nil || at.IsZero() {
				f.put(t, fmt.Sprintf("values in force in %v at %v", id, at), inForce(t, backend.NewContextValuesAt(background, r, id, at), seen))
			} else if answer(t, got, err) == nil {
				f.put(t, fmt.Sprintf("values in force in %v at %v", id, at), nil)
			}
		}
	}
}

// inForce lists the effective values and compares each with a lookup by key.
func inForce(t tester, v *backend.ContextValues, seen *Census) any {
	t.Helper()
	all := []backend.Value{}
	for one, err := range v.All("", "") {
		if err != nil {
			refused := answer(t, all, err)
			if refused != nil {
				require.Empty(t, all)
			}
			return refused
		}
		all = append(all, one)
	}
	listed := map[string]backend.Value{}
	for _, one := range all {
		listed[one.Key] = one
	}
	asked := map[string]bool{}
	for _, key := range seen.values.list() {
		if asked[key.Key] {
			continue
		}
		asked[key.Key] = true
		got, err := v.Value(key.Key)
		want, ok := listed[key.Key]
		said := answer(t, got, err)
		if said == nil {
			return all
		}
		require.Equal(t, said == backend.ErrNotFound.Error(), !ok)
		require.Equal(t, want, got)
	}
	return all
}

// testValues sets values of every scope, replaces and deletes them, and reads them by key,
// in order, and their history.
func testValues(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	in := thread("t").Incarnation
	owners := []structure.Owner{
		ofStore(), ofUser("a"), ofUser("a\x01"), ofUser("ab"), ofUser(strings.Repeat("u", structure.MaxValueName)),
		{Scope: structure.ApplicationScope, Name: "a"}, ofThread("t"), ofContext("c"),
	}
	keys := []string{"a", "b", "a\x01", "ab", "a b", "naïve 雪", "\U0010ffff", strings.Repeat("k", structure.MaxValueName)}
	var all []structure.Record
	for i, owner := range owners {
		for k, key := range keys[:len(keys)-i%3] {
			v := value(owner, key, fmt.Sprintf("[%d, %d]", i, k))
			if owner.Scope == structure.ThreadScope {
				v.Incarnation = in
			}
			all = append(all, v)
		}
	}
	s.apply(all...)
	s.apply(value(ofStore(), "a", `{"is": "new"}`), value(ofUser("a"), "b", ""))
	s.apply(value(ofStore(), "a", ""), value(ofUser("a"), "b", "1"), value(ofUser("a"), "b", "2")) // the last one counts
	s.apply(value(ofStore(), "a", "null"), value(ofUser("ab"), "never set", ""))
	large := bytes.Repeat([]byte("[],"), structure.MaxInlineValue)
	large[len(large)-1] = ']'
	large[0] = '['
	inBlock := value(ofUser("b"), "large", "")
	inBlock.Content = content.Sum(large)
	s.apply(text(string(large)), inBlock, value(ofUser("b"), "largest", `"`+strings.Repeat("x", structure.MaxInlineValue-2)+`"`))
	s.apply(&structure.Deletion{Subject: structure.KindBlock, Content: inBlock.Content, At: moment(21)}) // the value remains, with erased content
	s.restart()
	s.check()
	for _, odd := range []structure.Owner{
		{}, {Scope: 9}, ofUser(""), ofUser("a\x00"), ofUser("a\x00a"), ofUser("\xff"), {Scope: structure.StoreScope, Name: "a"},
		{Scope: structure.ThreadScope, Thread: id[structure.ThreadID]("t"), Name: "a"},
	} {
		s.seen.values.add(structure.ValueKey{Owner: odd, Key: "a"})
	}
	for _, odd := range []string{"a\x00", "a\x00b", "", "\xff"} {
		s.seen.values.add(structure.ValueKey{Owner: ofUser("a"), Key: odd})
	}
	s.seen.owners.add("a\x00b")
	s.check()
}

// testRefusedValues applies values that are invalid or refer to missing things.
func testRefusedValues(t *testing.T, c Config) {
	begin := func(s *store) {
		s.apply(talk()...)
		s.apply(value(ofStore(), "k", "1"))
	}
	with := func(v *structure.Value, change func(*structure.Value)) *structure.Value {
		change(v)
		return v
	}
	var cases []refusal
	for _, tt := range []struct {
		name  string
		want  error
		value *structure.Value
	}{
		{"no scope", backend.ErrInvalid, value(structure.Owner{}, "k", "1")},
		{"an unknown scope", backend.ErrInvalid, value(structure.Owner{Scope: 6}, "k", "1")},
		{"no key", backend.ErrInvalid, value(ofStore(), "", "1")},
		{"a long key", backend.ErrInvalid, value(ofStore(), strings.Repeat("k", structure.MaxValueName+1), "1")},
		{"a key with NUL", backend.ErrInvalid, value(ofStore(), "a\x00b", "1")},
		{"a key that is not UTF-8", backend.ErrInvalid, value(ofStore(), "\xff", "1")},
		{"nobody", backend.ErrInvalid, value(ofUser(""), "k", "1")},
		{"a long name", backend.ErrInvalid, value(ofUser(strings.Repeat("u", structure.MaxValueName+1)), "k", "1")},
		{"a name with NUL", backend.ErrInvalid, value(ofUser("a\x00b"), "k", "1")},
		{"a name of the store", backend.ErrInvalid, value(structure.Owner{Scope: structure.StoreScope, Name: "a"}, "k", "1")},
		{"two owners", backend.ErrInvalid, value(structure.Owner{Scope: structure.UserScope, Name: "a", Thread: id[structure.ThreadID]("t")}, "k", "1")},
		{"not JSON", backend.ErrInvalid, value(ofStore(), "k", "{")},
		{"two JSON values", backend.ErrInvalid, value(ofStore(), "k", "1 2")},
		{"empty JSON", backend.ErrInvalid, with(value(ofStore(), "k", ""), func(v *structure.Value) { v.JSON = []byte{} })},
		{"large JSON", backend.ErrInvalid, value(ofStore(), "k", `"`+strings.Repeat("x", structure.MaxInlineValue)+`"`)},
		{"JSON and content", backend.ErrInvalid, with(value(ofStore(), "k", "1"), func(v *structure.Value) { v.Content = content.Sum([]byte("one")) })},
		{"missing content", backend.ErrNotFound, with(value(ofStore(), "k", ""), func(v *structure.Value) { v.Content = content.Sum([]byte("missing")) })},
		{"an incarnation without a thread", backend.ErrInvalid, with(value(ofStore(), "k", "1"), func(v *structure.Value) { v.Incarnation = 1 })},
		{"a missing thread", backend.ErrNotFound, value(ofThread("missing"), "k", "1")},
		{"an earlier thread", backend.ErrConflict, with(value(ofThread("t"), "k", "1"), func(v *structure.Value) { v.Incarnation = 7 })},
		{"a missing context", backend.ErrNotFound, value(ofContext("missing"), "k", "1")},
		{"a span seen by no context", backend.ErrInvalid, with(value(ofThread("t"), "k", "1"), func(v *structure.Value) { v.Seen = at("r", 1) })},
		{"a missing span seen", backend.ErrNotFound, seenAt("c", "k", "1", at("r", 9))},
		{"an invalid span seen", backend.ErrInvalid, seenAt("c", "k", "1", structure.SpanRef{Run: id[structure.RunID]("r")})},
	} {
		cases = append(cases, refusal{tt.name, tt.want, [][]structure.Record{{tt.value}, {text("before"), tt.value}}})
	}
	s := refuses(t, c, begin, cases)
	s.apply(seenAt("c", "k", "1", structure.CollectedSpan))
}

// testExpectedValues applies commits with expected values.
func testExpectedValues(t *testing.T, c Config) {
	s := newStore(t, c)
	key := structure.ValueKey{Owner: ofUser("ada"), Key: "k"}
	expect := func(commit uint64) backend.Options {
		return backend.Options{Values: []backend.ExpectValue{{Key: key, Commit: commit}}}
	}
	s.refuseCommit(backend.ErrNotFound, s.commit(thread("t")), expect(1))
	first := s.applyCommit(s.commit(value(key.Owner, "k", "1")), expect(0)).Number
	s.refuseCommit(backend.ErrExists, s.commit(thread("t")), expect(0))
	s.refuseCommit(backend.ErrConflict, s.commit(thread("t")), expect(first+1))
	s.applyCommit(s.commit(value(ofUser("ad"), "ak", "1")), expect(first))
	second := s.applyCommit(s.commit(value(key.Owner, "k", "")), expect(first)).Number
	s.refuseCommit(backend.ErrConflict, s.commit(value(key.Owner, "k", "2")), expect(first))
	s.refuseCommit(backend.ErrExists, s.commit(value(key.Owner, "k", "2")), expect(0))
	s.applyCommit(s.commit(value(key.Owner, "k", "2")), expect(second))
}

// testValuesOfForks reads the values that forks inherit: those set when their base was
// added, no matter how records are grouped into commits.
func testValuesOfForks(t *testing.T, c Config) {
	say := func(run string, seq uint64) []structure.Record {
		return []structure.Record{text("one"), says(at(run, seq), "one")}
	}
	forked := func(name, of string, base structure.SpanRef) *structure.Context {
		v := view(name, "t", base)
		v.Parent = id[structure.ContextID](of)
		return v
	}
	main := view("main", "t", structure.SpanRef{})
	steps := [][]structure.Record{
		{thread("t"), main, run("r", structure.SpanRef{})},
		{seenAt("main", "k", `"v1"`, structure.SpanRef{}), seenAt("main", "gone", "1", structure.SpanRef{})},
		append(say("r", 1), move("main", at("r", 1))),
		{seenAt("main", "k", `"v2"`, at("r", 1)), seenAt("main", "gone", "", at("r", 1)), seenAt("main", "late", "1", at("r", 1))},
		append(say("r", 2), move("main", at("r", 2))),
		{forked("empty", "main", structure.SpanRef{}), forked("one", "main", at("r", 1)), forked("two", "main", at("r", 2))},
		{seenAt("main", "k", `"v3"`, at("r", 2))},
		{value(ofContext("one"), "late", "")},
		{seenAt("two", "k", "", at("r", 2)), seenAt("two", "own", "2", at("r", 2))},
		{forked("of one", "one", at("r", 1)), forked("of two", "two", at("r", 2)), forked("earlier of two", "two", at("r", 1))},
		append(append([]structure.Record{run("q", at("r", 2))}, say("q", 1)...), move("two", at("q", 1)), seenAt("two", "k", `"v4"`, at("q", 1))),
		append(say("q", 2), forked("late of two", "two", at("q", 2))),
	}
	inForce := func(t *testing.T, s *store, context string) map[string]string {
		all := map[string]string{}
		for v, err := range backend.NewContextValues(background, s, id[structure.ContextID](context)).All("", "") {
			require.NoError(t, err)
			all[v.Key] = string(v.JSON)
		}
		return all
	}
	want := map[string]map[string]string{
		"main":           {"k": `"v3"`, "late": "1"},
		"empty":          {"k": `"v1"`, "gone": "1"},
		"one":            {"k": `"v1"`, "gone": "1"},
		"two":            {"k": `"v4"`, "late": "1", "own": "2"},
		"of one":         {"k": `"v1"`, "gone": "1"},
		"of two":         {"k": `"v2"`, "late": "1"}, // the values of two when its tip was the base
		"earlier of two": {"k": `"v1"`, "gone": "1"},
		"late of two":    {"k": `"v4"`, "late": "1", "own": "2"},
	}
	for name, together := range map[string]bool{"apart": false, "together": true} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, c)
			var all, set []structure.Record
			for _, records := range steps {
				if !together {
					s.apply(records...)
				}
				for _, r := range records {
					if r.Kind() == structure.KindValue {
						set = append(set, r)
					} else {
						all = append(all, r)
					}
				}
			}
			if together { // as in a bundle, where values follow all other records
				s.apply(all...)
				for _, v := range set {
					s.apply(v)
				}
			}
			for context, values := range want {
				require.Equal(t, values, inForce(t, s, context), context)
			}
			s.restart()
			s.check()
			// A rewind leaves values as they are, and a fork without its parent has only
			// its own.
			s.apply(move("main", at("r", 1)), reflog("main", at("r", 2), at("r", 1)))
			require.Equal(t, want["main"], inForce(t, s, "main"))
			s.apply(deleteContext("two"))
			require.Empty(t, inForce(t, s, "of two"))
			s.refuse(backend.ErrExists, forked("two", "of two", at("r", 2))) // a child of its child
			s.apply(forked("two", "main", at("r", 2)), value(ofContext("of two"), "k", "5"), value(ofContext("two"), "l", "6"))
			require.Equal(t, map[string]string{"k": "5", "l": "6", "late": "1"}, inForce(t, s, "of two"))
		})
	}
}

// testValuesGoWithOwners deletes threads and contexts and creates them again.
func testValuesGoWithOwners(t *testing.T, c Config) {
	s := newStore(t, c)
	again := thread("t")
	again.Incarnation = 9
	inAgain := value(ofThread("t"), "k", "3")
	inAgain.Incarnation = 9
	s.apply(talk()...)
	s.apply(value(ofThread("t"), "k", "1"), value(ofContext("c"), "k", "1"), value(ofUser("t"), "k", "1"))
	s.apply(value(ofThread("t"), "k", "2"), value(ofContext("c"), "k", "2"), value(ofThread("t"), "l", ""))
	s.apply(deleteThread("t"))
	s.refuse(backend.ErrNotFound, value(ofThread("t"), "k", "3"))
	s.apply(again, view("c", "t", at("r", 3)))
	s.refuse(backend.ErrConflict, value(ofThread("t"), "k", "3"))
	s.apply(inAgain, value(ofContext("c"), "l", "3"))
	s.restart()
	s.check()
	s.apply(deleteContext("c"))
	s.apply(view("c", "t", at("r", 3)))
	// The same in one commit.
	s.apply(value(ofContext("c"), "k", "4"), inAgain, deleteThread("t"), again, view("c", "t", at("r", 3)), value(ofContext("c"), "m", "5"))
	s.apply(inAgain, deleteContext("c"), view("c", "t", at("r", 3)), value(ofContext("c"), "n", "6"), value(ofContext("c"), "n", "7"))
	again.Incarnation++ // as if it was created again
	s.apply(again)
	s.restart()
	s.check()
}
