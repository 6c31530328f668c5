package api

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// TestReuseBranch opens a branch that is there, or creates it, from two servers of a store at once.
func TestReuseBranch(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	servers := []*harness{openOf(t, store), openOf(t, store)}
	h := servers[0]
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	first := h.do("POST", "/v1/threads/=t/contexts/main/messages", `{"messages":[{"text":"a"},{"text":"b"}]}`).is(201)["ids"].([]any)[0]
	const branches = "/v1/threads/=t/branches"
	for i := range 20 {
		body := fmt.Sprintf(`{"name":"b%d","from":"main:1","reuse":true}`, i)
		var answers [2]*answer
		var all sync.WaitGroup
		for n, h := range servers {
			all.Go(func() {
				answers[n] = h.do("POST", branches, body)
				h.do("POST", fmt.Sprintf("/v1/threads/=t/contexts/b%d/messages", i), `{"messages":[{"text":"c"}]}`).is(201)
			})
		}
		all.Wait()
		require.ElementsMatch(t, []int{200, 201}, []int{answers[0].Status, answers[1].Status}, "%s %s", answers[0].Body, answers[1].Body)
		got := h.do("POST", branches, body).is(200)
		require.Len(t, h.do("GET", fmt.Sprintf("/v1/threads/=t/contexts/b%d/messages", i), nil).items(), 3)
		for _, a := range answers {
			require.Equal(t, got["id"], a.is(a.Status)["id"])
		}
	}
	taken := h.do("POST", branches, `{"name":"b0","from":"main:2","reuse":true}`).is(409)
	require.Equal(t, "urn:lineage:problem:exists", taken["type"])
	require.Contains(t, taken["detail"], "does not continue from message")
	h.do("POST", branches, `{"name":"b0","from":"main:1"}`).is(409)
	h.do("POST", branches, `{"name":"b0","from":"main:1","id":"own","reuse":true}`).is(409)
	h.do("POST", branches, `{"name":"b0","empty":true,"reuse":true}`).is(200)
	h.do("POST", branches, `{"name":"","reuse":true}`).is(400)
	own := h.do("POST", branches, `{"name":"own","from":"main:1","id":"own","reuse":true}`).is(201)
	require.Equal(t, own["id"], h.do("POST", branches, `{"name":"own","from":"`+first.(string)+`","id":"own","reuse":true}`).is(200)["id"])

	// In a batch, a branch that was there can be used as one that was made.
	batch := `{"operations":[{"op":"create_branch","thread":"=t","name":"batched","from":"main:1","reuse":true},{"op":"append","context":"#0","messages":[{"text":"d"}]}]}`
	h.do("POST", "/v1/batch", batch).is(200)
	h.do("POST", "/v1/batch", batch).is(200)
	require.Len(t, h.do("GET", "/v1/threads/=t/contexts/batched/messages", nil).items(), 3)
}

// No branch can be made inactive: another one is made active. A change that says so changes nothing else.
func TestBranchesAreNotMadeInactive(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const at = "/v1/threads/=t/"
	h.do("POST", at+"branches", `{"name":"b","switch":true}`).is(201)
	id := h.do("GET", at+"chat/branches?active=true", nil).items()[0]["id"].(string)
	for path, body := range map[string]string{at + "branches/b": `{"active":false,"name":"c"}`, at + "branches/main": `{"active":false}`, at + "chat/branches/" + id: `{"active":false,"head":""}`} {
		require.Contains(t, h.do("PATCH", path, body).is(400)["detail"], "make another branch active", path)
	}
	for name, active := range map[string]bool{"main": false, "b": true} {
		found := false
		for _, b := range h.do("GET", at+"branches", nil).items() {
			if b["name"] == name {
				found = true
				require.Equal(t, active, b["active"], name)
			}
		}
		require.True(t, found, name)
	}
	h.do("PATCH", at+"branches/main", `{"active":true}`).is(200)
	h.do("PATCH", at+"branches/b", `{"name":"c"}`).is(200)
}
