package api

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// TestPagesOfValues reads values in pages: each once and in order, also those that a fork inherits, hides and has deleted. A
// page costs its values, wherever it is.
func TestPagesOfValues(t *testing.T) {
	engine, err := embedded.Open(t.Context(), "", embedded.Options{InMemory: true})
	require.NoError(t, err)
	counted := backendtest.NewCounting(engine)
	store := lineage.New(counted)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := openOf(t, store)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const keys = 600
	key := func(i int) string { return fmt.Sprintf("k%03d", i) }
	set := func(owner string, i int, value string) map[string]any {
		o := map[string]any{"op": "set_value", "key": key(i), "value": value}
		switch owner {
		case "user":
			o["user"] = "ada"
		case "main", "fork":
			o["thread"], o["context"] = "=t", owner
		}
		return o
	}
	all := func(owner string, each func(i int) map[string]any) {
		var operations []map[string]any
		for i := range keys {
			if o := each(i); o != nil {
				operations = append(operations, o)
			}
		}
		h.do("POST", "/v1/batch", map[string]any{"operations": operations}).is(200)
	}
	for _, owner := range []string{"user", "store", "main"} {
		all(owner, func(i int) map[string]any { return set(owner, i, owner) })
	}
	h.do("POST", "/v1/threads/=t/branches", `{"name":"fork"}`).is(201)
	all("fork", func(i int) map[string]any {
		switch i % 3 {
		case 0:
			return set("fork", i, "fork")
		case 1:
			return map[string]any{"op": "delete_value", "thread": "=t", "context": "fork", "key": key(i)}
		}
		return nil
	})
	h.do("POST", "/v1/threads/=t/contexts/main/messages", `{"messages":[{"text":"later"}]}`).is(201)
	all("main", func(i int) map[string]any { return set("main", i, "later") })
	for path, want := range map[string]func(i int) string{
		"/v1/users/ada/values":                func(int) string { return "user" },
		"/v1/store/values":                    func(int) string { return "store" },
		"/v1/threads/=t/contexts/main/values": func(int) string { return "later" },
		"/v1/threads/=t/contexts/fork/values": func(i int) string { return []string{"fork", "", "main"}[i%3] },
	} {
		var costs []int64
		at := 0
		for next := ""; ; {
			var page map[string]any
			costs = append(costs, counted.Cost(func() {
				page = h.do("GET", path+"?limit=20&prefix=k&after="+url.QueryEscape(next), nil).is(200)
			}))
			for _, one := range page["items"].([]any) {
				for want(at) == "" {
					at++
				}
				value := one.(map[string]any)
				require.Equal(t, key(at), value["key"], path)
				require.Equal(t, want(at), value["value"], path)
				at++
			}
			var more bool
			if next, more = page["next"].(string); !more {
				break
			}
		}
		require.Equal(t, keys, at, path)
		require.Greater(t, len(costs), 10)
		require.Less(t, slices.Max(costs), int64(300), "%s: %v", path, costs)
	}
}

// A head has the headers of a body.
func TestHeads(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t","title":"`+fmt.Sprintf("%2000s", "x")+`"}`).is(201)
	h.do("POST", "/v1/threads/=t/contexts/main/messages", `{"messages":[{"text":"a"}]}`).is(201)
	for _, path := range []string{"/v1/threads", "/v1/threads/=t", "/v1/threads/=t/contexts/main", "/v1/threads/=t/contexts/main/messages", "/v1/openapi.json", "/v1/stats"} {
		for _, headers := range [][]string{nil, {"Accept-Encoding: gzip"}} {
			body, head := h.do("GET", path, nil, headers...), h.do("HEAD", path, nil, headers...)
			require.Equal(t, 200, head.Status, path)
			require.NotEmpty(t, body.Header.Get("ETag"), path)
			require.Equal(t, body.Header, head.Header, path)
			require.Equal(t, 304, h.do("HEAD", path, nil, append(headers, "If-None-Match: "+head.Header.Get("ETag"))...).Status, path)
		}
	}
}
