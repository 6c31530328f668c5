package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// TestKeysOfTwoServers sends each request with a key to two servers of one store at once, whose clocks are at two sides of
// midnight: it is applied once, and both answer alike.
func TestKeysOfTwoServers(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	at := time.Date(2026, 11, 28, 23, 59, 59, 0, time.UTC)
	servers := []*harness{
		openOf(t, store, func(o *Options) { o.now = func() time.Time { return at } }),
		openOf(t, store, func(o *Options) { o.now = func() time.Time { return at.Add(2 * time.Second) } }),
	}
	servers[0].do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const path = "/v1/threads/=t/contexts/main/messages"
	for i := range 20 {
		var answers [2]*answer
		var all sync.WaitGroup
		for n, h := range servers {
			all.Go(func() {
				answers[n] = h.do("POST", path, fmt.Sprintf(`{"messages":[{"text":"%d"}]}`, i), fmt.Sprintf("Idempotency-Key: key %d", i))
			})
		}
		all.Wait()
		require.Equal(t, string(answers[0].Body), string(answers[1].Body))
		replayed := answers[0].Header.Get("Idempotency-Replayed") + answers[1].Header.Get("Idempotency-Replayed")
		require.Equal(t, "true", replayed, "one applied it")
	}
	require.Len(t, servers[1].do("GET", path, nil).items(), 20)
}

// TestKeyAfterRestart repeats a request whose answer was lost with the server.
func TestKeyAfterRestart(t *testing.T) {
	dir := t.TempDir()
	const body = `{"operations":[{"op":"create_thread","id":"t","title":"x"},{"op":"append","thread":"#0","context":"main","messages":[{"text":"a"}]}]}`
	var first string
	for range 3 {
		store, err := lineage.Open(t.Context(), dir, lineage.Options{})
		require.NoError(t, err)
		h := openOf(t, store)
		a := h.do("POST", "/v1/batch", body, "Idempotency-Key: once")
		a.is(200)
		if first == "" {
			first = string(a.Body)
		}
		require.Equal(t, first, string(a.Body))
		require.Len(t, h.do("GET", "/v1/threads/=t/contexts/main/messages", nil).items(), 1)
		require.NoError(t, store.Close())
	}
}

// TestKeysKeepNothing erases what was said: the answers that are kept for repeated requests do not have it.
func TestKeysKeepNothing(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/batch", `{"operations":[{"op":"create_thread","id":"t","title":"hidden title"},
		{"op":"append","thread":"#0","context":"main","messages":[{"text":"hidden text"}]},
		{"op":"set_value","thread":"#0","key":"k","value":"hidden value"},
		{"op":"summarize","thread":"#0","context":"main","text":"hidden summary"}]}`, "Idempotency-Key: k").is(200)
	for v, err := range h.store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: keysOf}).All(t.Context(), "") {
		require.NoError(t, err)
		require.NotContains(t, string(v.JSON), "hidden")
	}
}

// TestKeysEnd uses keys over days: those of the day before are still known, older ones are deleted.
func TestKeysEnd(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	h := open(t, func(o *Options) { o.now = func() time.Time { return at } })
	keys := func() (n int) {
		for _, err := range h.store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: keysOf}).All(t.Context(), "") {
			require.NoError(t, err)
			n++
		}
		return n
	}
	create := func(key string) *answer { return h.do("POST", "/v1/threads", `{}`, "Idempotency-Key: "+key) }
	first := create("a").is(201)
	at = at.Add(day)
	require.Equal(t, first["id"], create("a").is(201)["id"])
	create("b").is(201)
	require.Equal(t, 2, keys())
	at = at.Add(day)
	create("c").is(201)
	require.Equal(t, 2, keys(), "the key of the first day is deleted")
	require.NotEqual(t, first["id"], create("a").is(201)["id"])
	h.do("POST", "/v1/threads", `{}`, "Idempotency-Key: "+strings.Repeat("k", 256)).is(400)
	h.do("POST", "/v1/threads", `{}`, "Idempotency-Key: ").is(400)
	h.do("GET", "/v1/applications/lineage%2Fidempotency/values", nil).is(409)
}

// A repeated request is answered with what its caller may read now: what is of another project since is not there.
func TestRepeatedOutOfScope(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"a","metadata":{"cwd":"/projects/a"}}`, "Caller: proj").is(201)
	batch := `{"operations":[{"op":"append","thread":"=a","context":"main","messages":[{"text":"a"},{"text":"b"}]},{"op":"set_value","thread":"=a","key":"k","value":1},
		{"op":"create_branch","thread":"=a","name":"x"},{"op":"set_checkpoint","thread":"=a","name":"c"},{"op":"move","thread":"=a","context":"x","to":":1"},
		{"op":"alternatives","thread":"=a","context":"x","count":1},{"op":"fork","thread":"=a","from":"x"},{"op":"summarize","thread":"=a","context":"main","text":"short"},
		{"op":"merge","thread":"=a","context":"x","from":"main"},{"op":"send","thread":"=a","context":"main","to":"x"},{"op":"update_thread","thread":"=a","title":"a title"}]}`
	headers := []string{"Caller: proj", "Idempotency-Key: k"}
	first := h.do("POST", "/v1/batch", batch, headers...).is(200)
	require.Equal(t, first, h.do("POST", "/v1/batch", batch, headers...).is(200))
	thread := "/v1/threads/" + h.do("GET", "/v1/threads/=a", nil, "Caller: proj").is(200)["id"].(string)
	h.do("PATCH", thread, `{"merge":{"cwd":"/projects/b"}}`).is(200)
	require.Equal(t, make([]any, 11), h.do("POST", "/v1/batch", batch, headers...).is(200)["items"])
	h.do("PATCH", thread, `{"merge":{"cwd":"/projects/a"}}`).is(200)
	again := h.do("POST", "/v1/batch", batch, headers...)
	require.Equal(t, "true", again.Header.Get("Idempotency-Replayed"))
	require.NotContains(t, again.is(200)["items"], nil)
}

// A copy has the values as they are in the transaction: those of operations before it as well.
func TestCopyInBatch(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	h.do("PUT", "/v1/threads/=t/values/a", `1`).is(200)
	h.do("PUT", "/v1/threads/=t/values/gone", `1`).is(200)
	h.do("PUT", "/v1/threads/=t/contexts/main/values/b", `2`).is(200)
	done := h.do("POST", "/v1/batch", `{"operations":[{"op":"set_value","thread":"=t","key":"a","value":"new"},{"op":"set_value","thread":"=t","key":"c","value":3},
		{"op":"delete_value","thread":"=t","key":"gone"},{"op":"set_value","thread":"=t","context":"main","key":"d","value":4},{"op":"copy_thread","thread":"=t","id":"u"},
		{"op":"create_thread","id":"v"},{"op":"set_value","thread":"#5","key":"e","value":5},{"op":"set_value","thread":"#5","context":"main","key":"f","value":6},{"op":"copy_thread","thread":"#5","id":"w"}]}`).is(200)
	require.Len(t, done["items"], 9)
	values := func(of string) map[string]any {
		all := make(map[string]any)
		for _, v := range h.do("GET", of+"/values", nil).items() {
			all[v["key"].(string)] = v["value"]
		}
		return all
	}
	require.Equal(t, map[string]any{"a": "new", "c": 3.0}, values("/v1/threads/=u"))
	require.Equal(t, map[string]any{"b": 2.0, "d": 4.0}, values("/v1/threads/=u/contexts/main"))
	require.Equal(t, map[string]any{"e": 5.0}, values("/v1/threads/=w"))
	require.Equal(t, map[string]any{"f": 6.0}, values("/v1/threads/=w/contexts/main"))
}
