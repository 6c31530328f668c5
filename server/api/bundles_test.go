package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/bundle"
)

// TestBundles moves threads between two stores, and then what both have added.
func TestBundles(t *testing.T) {
	from, to := open(t), open(t)
	for _, id := range []string{"a", "b"} {
		from.do("POST", "/v1/threads", `{"id":"`+id+`","title":"Title of `+id+`"}`).is(201)
		from.do("POST", "/v1/threads/="+id+"/contexts/main/messages", `{"messages":[{"text":"said in `+id+`"},{"role":"assistant","content":[{"type":"text" , "text":"yes"}]}]}`).is(201)
		from.do("POST", "/v1/threads/="+id+"/branches", `{"name":"side","from":"main:1"}`).is(201)
	}
	get := func(query string) string {
		a := from.do("GET", "/v1/bundle"+query, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		require.Equal(t, "application/octet-stream", a.Header.Get("Content-Type"))
		require.True(t, bundle.Is(a.Body))
		return string(a.Body)
	}
	one, all := get("?thread=%3Da"), get("")
	require.Equal(t, all, get(""), "the same threads give the same bytes")
	from.do("GET", "/v1/bundle?thread=%3Da&thread=%3Dnone", nil).is(404)

	added := to.do("POST", "/v1/bundle", one).is(200)
	require.EqualValues(t, 1, added["threads"])
	to.do("GET", "/v1/threads/=b", nil).is(404)
	added = to.do("POST", "/v1/bundle", all).is(200)
	require.EqualValues(t, 1, added["threads"])
	for _, path := range []string{"/v1/threads/=a", "/v1/threads/=b", "/v1/threads/=b/branches", "/v1/threads/=a/contexts/main/messages", "/v1/threads/=b/contexts/side/messages"} {
		require.Equal(t, string(from.do("GET", path, nil).Body), string(to.do("GET", path, nil).Body), path)
	}
	before, err := to.store.View().Head(t.Context())
	require.NoError(t, err)
	added = to.do("POST", "/v1/bundle", all).is(200)
	require.EqualValues(t, 0, added["threads"])
	require.Equal(t, []any{}, added["conflicts"])
	unchanged := func() {
		t.Helper()
		after, err := to.store.View().Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
	unchanged()

	// What is no whole bundle, or one for another store, is refused.
	invalid := func(body string) {
		t.Helper()
		require.Equal(t, "urn:lineage:problem:invalid", to.do("POST", "/v1/bundle", body).is(400)["type"])
		unchanged()
	}
	for n := 0; n < len(all); n += 1 + len(all)/50 {
		invalid(all[:n])
		damaged := []byte(all)
		damaged[n] ^= 0x20
		invalid(string(damaged))
	}
	from.do("POST", "/v1/threads/=a/contexts/main/messages", `{"messages":[{"text":"theirs"}]}`).is(201)
	newer := inventoryOf(from)
	from.do("POST", "/v1/threads/=a/contexts/main/messages", `{"messages":[{"text":"later"}]}`).is(201)
	invalid(against(from, "", newer))
	to.do("POST", "/v1/bundle?on_conflict=mine", all).is(400)
	to.do("POST", "/v1/bundle", all, "Idempotency-Key: k").is(400)
	unchanged()

	to.do("POST", "/v1/threads/=a/contexts/main/messages", `{"messages":[{"text":"ours"}]}`).is(201)
	require.Equal(t, "urn:lineage:problem:conflict", to.do("POST", "/v1/bundle?on_conflict=fail", get("")).is(409)["type"])
	both := to.do("POST", "/v1/bundle", get("")).is(200)
	require.Len(t, both["conflicts"], 1)
	require.Len(t, to.do("GET", "/v1/threads/=a/branches", nil).items(), 3, "theirs became a branch")
	require.Equal(t, "ours", to.do("GET", "/v1/threads/=a/contexts/main/messages?last=1", nil).items()[0]["text"])
}

func inventoryOf(h *harness) string {
	h.Helper()
	a := h.do("GET", "/v1/bundle/inventory", nil)
	require.Equal(h, http.StatusOK, a.Status, "%s", a.Body)
	return string(a.Body)
}

// against returns the bundle of what a store with an inventory lacks.
func against(h *harness, query, inventory string) string {
	h.Helper()
	a := h.do("POST", "/v1/bundle/against"+query, inventory)
	require.Equal(h, http.StatusOK, a.Status, "%s", a.Body)
	return string(a.Body)
}

// TestInventories brings a second store up to date by bundles of what it lacks.
func TestInventories(t *testing.T) {
	from, to := open(t), open(t)
	for _, id := range []string{"a", "b"} {
		from.do("POST", "/v1/threads", `{"id":"`+id+`"}`).is(201)
	}
	const path = "/v1/threads/=a/contexts/main/messages"
	for n := range 4 {
		for _, id := range []string{"a", "b"} {
			from.do("POST", "/v1/threads/="+id+"/contexts/main/messages", fmt.Sprintf(`{"messages":[{"text":%q}]}`, fmt.Sprint(n, id, strings.Repeat(" said", 1000*(4-n))))).is(201)
		}
		whole := string(from.do("GET", "/v1/bundle", nil).Body)
		rest := against(from, "", inventoryOf(to))
		require.Equal(t, n == 0, len(rest) == len(whole), "an empty store lacks everything, and then it has the larger texts")
		to.do("POST", "/v1/bundle", rest).is(200)
		require.Equal(t, string(from.do("GET", path, nil).Body), string(to.do("GET", path, nil).Body))
		require.Equal(t, whole, string(to.do("GET", "/v1/bundle", nil).Body))
		require.Equal(t, inventoryOf(from), inventoryOf(to))
	}
	require.Less(t, len(against(from, "?thread=%3Da", emptyInventory())), len(against(from, "", emptyInventory())))

	got := inventoryOf(to)
	for n := 0; n < len(got); n += 1 + len(got)/30 {
		damaged := []byte(got)
		damaged[n] ^= 0x20
		for _, body := range []string{got[:n], string(damaged)} {
			require.Equal(t, "urn:lineage:problem:invalid", from.do("POST", "/v1/bundle/against", body).is(400)["type"])
		}
	}
	from.do("POST", "/v1/bundle/against?thread=%3Dnone", got).is(404)
	from.do("POST", "/v1/bundle/against", got, "Idempotency-Key: k").is(400)
	large := got + strings.Repeat("a", smallBody)
	from.api.bodies.Add(maxBodies)
	from.do("POST", "/v1/bundle/against", large).is(503)
	from.do("POST", "/v1/bundle/against", "small").is(400)
	from.api.bodies.Add(-maxBodies)
	from.do("POST", "/v1/bundle/against", large).is(400)
	require.Zero(t, from.api.bodies.Load(), "all is given back")
}
