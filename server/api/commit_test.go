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
