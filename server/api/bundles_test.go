package api

import (
	"bytes"
	"net/http"
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
	inventory, err := bundle.Take(t.Context(), from.store)
	require.NoError(t, err)
	from.do("POST", "/v1/threads/=a/contexts/main/messages", `{"messages":[{"text":"later"}]}`).is(201)
	var rest bytes.Buffer
	_, err = bundle.Write(t.Context(), from.store, &rest, bundle.WriteOptions{Have: inventory})
	require.NoError(t, err)
	invalid(rest.String())
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
