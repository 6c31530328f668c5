package api

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// idsOf returns a member of records.
func idsOf(all []map[string]any, member string) (ids []any) {
	for _, one := range all {
		ids = append(ids, one[member])
	}
	return ids
}

// TestChatsByIDs: two threads of two users have messages with equal ids, which are no positions, and are kept apart.
func TestChatsByIDs(t *testing.T) {
	h := open(t)
	odd := "main~1/=é %00\u0001"
	at := map[string]string{}
	for _, user := range []string{"ada", "bob"} {
		at[user] = "/v1/threads/" + url.PathEscape("=chat/"+user)
		h.do("POST", "/v1/threads", fmt.Sprintf(`{"id":"chat/%s","user":%q,"keep":true,"metadata":{"of":{"user":%q}}}`, user, user, user)).is(201)
		for i, m := range []map[string]any{
			{"id": odd, "role": "user", "data": map[string]any{"of": user}},
			{"id": "main", "parent": odd, "role": "assistant", "data": "as a branch", "kind": "other"},
			{"id": "aside", "parent": odd, "role": "assistant", "data": nil},
		} {
			key := fmt.Sprintf("Idempotency-Key: %s-%d", user, i)
			for range 2 {
				h.do("POST", at[user]+"/chat/messages", m, key).is(204)
			}
			h.do("POST", at[user]+"/chat/messages", m).is(204) // the same is no error
		}
		branch := h.do("GET", at[user]+"/chat/branches?active=true", nil).items()[0]["id"].(string)
		h.do("PATCH", at[user]+"/chat/branches/"+branch, `{"head":"main","along":true}`).is(204)
		h.do("PATCH", at[user]+"/chat/branches/"+branch, `{"head":"aside","along":true}`).is(412)
		h.do("PATCH", at[user]+"/chat/branches/"+branch, `{}`).is(400)
		h.do("POST", at[user]+"/chat/branches", map[string]any{"id": "of " + user, "name": "~1", "head": "aside", "active": true}).is(204)
		h.do("POST", at[user]+"/chat/branches", map[string]any{"id": "other", "name": "~1"}).is(409)
		for _, on := range []string{"main", odd} {
			h.do("POST", at[user]+"/chat/checkpoints", map[string]any{"id": "k " + user, "name": "k", "message": on}).is(204)
		}
	}
	ada := at["ada"] + "/chat/"
	require.Equal(t, []any{"chat/bob", "chat/ada"}, idsOf(h.do("GET", "/v1/chats", nil).items(), "id"))
	require.Equal(t, []any{"chat/ada"}, idsOf(h.do("GET", "/v1/chats?offset=1", nil).items(), "id"))
	require.Equal(t, []any{"chat/ada"}, idsOf(h.do("GET", "/v1/chats?metadata=of.user%3Dada", nil).items(), "id"))
	require.Len(t, h.do("GET", "/v1/chats?message="+url.QueryEscape(odd), nil).items(), 2)
	require.Equal(t, []any{"chat/ada"}, idsOf(h.do("GET", "/v1/chats?message="+url.QueryEscape(odd), nil, "Caller: ada").items(), "id"))
	require.Equal(t, []any{"chat/bob"}, idsOf(h.do("GET", "/v1/chats?branch=of+bob", nil).items(), "id"))
	require.Empty(t, h.do("GET", "/v1/chats?branch=of+bob", nil, "Caller: ada").items())
	require.Empty(t, h.do("GET", "/v1/chats?offset=1", nil, "Caller: ada").items())

	root := h.do("GET", ada+"messages?id="+url.QueryEscape(odd), nil).items()[0]
	require.Equal(t, map[string]any{"of": "ada"}, root["data"])
	require.Equal(t, true, root["followed"])
	require.Empty(t, h.do("GET", ada+"messages?id=none", nil).items())
	require.Empty(t, h.do("GET", ada+"messages?to=none", nil).items())
	h.do("GET", ada+"messages", nil).is(400)
	first := h.do("GET", ada+"messages?to=main&limit=1", nil).is(200)
	require.Equal(t, odd, first["next"])
	require.Equal(t, []any{odd}, idsOf(h.do("GET", ada+"messages?to=main&limit=1&after="+url.QueryEscape(odd), nil).items(), "id"))

	// What only the chat of another user has is missing, also for a change.
	only := map[string]any{"id": "only bob", "role": "user", "data": 1}
	h.do("POST", at["bob"]+"/chat/messages", only).is(204)
	under := map[string]any{"id": "under", "parent": "only bob", "role": "user", "data": 1}
	require.Contains(t, h.do("POST", ada+"messages", under).is(400)["detail"], "different chat")
	require.Contains(t, h.do("POST", ada+"messages", under, "Caller: ada").is(404)["detail"], `"only bob"`)
	h.do("PATCH", ada+"branches/of%20bob", `{"active":true}`, "Caller: ada").is(404)
	h.do("POST", ada+"messages", map[string]any{"id": "self", "parent": "self", "role": "user", "data": 1}).is(400)
	h.do("POST", ada+"messages", map[string]any{"id": "main", "parent": odd, "role": "assistant", "data": "changed", "kind": "other"}).is(409)

	h.do("DELETE", at["ada"]+"?user=bob", nil).is(404)
	g := h.do("GET", ada+"graph", nil).is(200)
	require.Len(t, g["nodes"], 3)
	require.Equal(t, []any{map[string]any{"name": "k", "message": odd}}, g["checkpoints"])
	require.Equal(t, []any{"k ada"}, idsOf(h.do("GET", ada+"checkpoints?name=k", nil).items(), "id"))
	require.Equal(t, []any{"main", "~1"}, idsOf(h.do("GET", ada+"branches", nil).items(), "name"))
	require.Equal(t, []any{2.0, 2.0}, idsOf(h.do("GET", ada+"branches", nil).items(), "length"))
	set := func(user, name string) map[string]any {
		return map[string]any{"op": "set_chat_checkpoint", "thread": "=chat/" + user, "id": "same", "name": name, "message": odd}
	}
	h.do("POST", "/v1/batch", map[string]any{"operations": []any{set("ada", "1"), set("bob", "1")}}).is(200) // unique in the chat
	h.do("POST", "/v1/batch", map[string]any{"operations": []any{set("ada", "2")}}).is(409)
	h.do("DELETE", at["ada"]+"?user=ada", nil).is(204)
	require.Equal(t, []any{"chat/bob"}, idsOf(h.do("GET", "/v1/chats", nil).items(), "id"))
}

// TestChatReplies: a reply that grows takes the id each time until something follows it, and a batch adds, moves and names at once.
func TestChatReplies(t *testing.T) {
	h := open(t)
	thread := h.do("POST", "/v1/threads", `{"keep":true}`).is(201)["id"].(string)
	at := "/v1/threads/" + thread + "/chat/"
	branch := h.do("GET", at+"branches", nil).items()[0]["id"].(string)
	add := func(id, parent, data string, replace bool) map[string]any {
		return map[string]any{"op": "add_chat_message", "thread": thread, "id": id, "parent": parent, "role": "r", "data": data, "replace": replace}
	}
	move := func(head string) map[string]any {
		return map[string]any{"op": "update_chat_branch", "thread": thread, "branch": branch, "head": head, "along": true}
	}
	batch := func(status int, all ...any) { h.do("POST", "/v1/batch", map[string]any{"operations": all}).is(status) }
	batch(200, add("q", "", "?", false), add("a", "q", "1", true), move("a"))
	batch(200, add("a", "q", "1 2", true), move("a"))
	batch(200, add("a", "q", "1 2 3", true), add("b", "a", "next", false), move("b"))
	require.Equal(t, []any{"next", "1 2 3", "?"}, idsOf(h.do("GET", at+"messages?to=b", nil).items(), "data"))
	batch(409, add("a", "q", "1 2 3 4", true)) // something follows it
	batch(409, add("b", "q", "elsewhere", true))
	batch(412, add("late", "q", "from an old head", true), move("late"))
	require.Empty(t, h.do("GET", at+"messages?id=late", nil).items())
	h.do("POST", "/v1/threads/"+thread+"/chat/messages", add("late", "q", "x", false)).is(400) // op is no member of a body
	nodes := h.do("GET", at+"graph", nil).is(200)["nodes"].([]any)
	require.Len(t, nodes, 5, "with what a was before, twice")
	require.Equal(t, "b", h.do("PATCH", at+"branches/"+branch, `{"head":"q","along":true}`).is(412)["tip"], "b would be on no branch")
	h.do("PATCH", at+"branches/"+branch, `{"head":"q"}`).is(204)
	for _, n := range []any{nil, 1, 2, 1} { // only what is no text differs, and an earlier state comes back
		grown := map[string]any{"id": "n", "parent": "b", "role": "r", "data": map[string]any{"text": "same", "n": n}, "replace": true}
		h.do("POST", at+"messages", grown).is(204)
		h.do("PATCH", at+"branches/"+branch, `{"head":"n","along":true}`).is(204)
		got := h.do("GET", at+"messages?to=n&limit=1", nil).items()[0]["data"].(map[string]any)
		require.EqualValues(t, n, got["n"])
	}
	require.Len(t, h.do("GET", at+"graph", nil).is(200)["nodes"], 9)
	batch(200, add("twice", "n", "1", true), add("twice", "n", "1 2", true), move("twice"))
	require.Equal(t, "1 2", h.do("GET", at+"messages?to=twice&limit=1", nil).items()[0]["data"])
	h.do("PATCH", at+"branches/"+branch, `{"head":""}`).is(204)
	require.Nil(t, h.do("GET", at+"branches?active=true", nil).items()[0]["head"])
}

// Branches and checkpoints of a chat come in pages, in the order of their creation, whatever is created and deleted in between.
func TestPagesOfBranches(t *testing.T) {
	h := open(t)
	chat := "/v1/threads/=c/chat/"
	h.do("POST", "/v1/threads", `{"id":"c","keep":true}`).is(201)
	h.do("POST", chat+"messages", `{"id":"m","role":"user","data":1}`).is(204)
	branches, checkpoints := []any{"main"}, []any{}
	for i := range 23 { // names in no order, and times that are equal or go back
		name, at := fmt.Sprintf("n%d", i*7%23), fmt.Sprintf("2026-01-01T00:00:%02d.5Z", 59-i/8)
		if i/8 == 0 {
			at = "0001-01-01T00:00:01Z"
		}
		h.do("POST", chat+"branches", map[string]any{"id": "b" + name, "name": name, "head": "m"}).is(204)
		h.do("POST", chat+"checkpoints", map[string]any{"name": name, "message": "m", "created_at": at}).is(204)
		branches, checkpoints = append(branches, name), append(checkpoints, name)
	}
	walk := func(path string, between func(n int)) (all []any) {
		for next, n := "", 0; ; n++ {
			page := h.do("GET", path+"&after="+url.QueryEscape(next), nil).is(200)
			for _, one := range page["items"].([]any) {
				all = append(all, one.(map[string]any)["name"])
			}
			if page["next"] == nil {
				return all
			}
			next = page["next"].(string)
			between(n)
		}
	}
	none := func(int) {}
	for _, limit := range []string{"?limit=1", "?limit=5", "?limit=6", "?limit=24", "?limit=1000", "?"} {
		require.Equal(t, branches, walk(chat+"branches"+limit, none), limit)
		whole := idsOf(h.do("GET", chat+"checkpoints", nil).items(), "name")
		require.ElementsMatch(t, checkpoints, whole)
		require.Equal(t, whole, walk(chat+"checkpoints"+limit, none), limit)
	}
	whole := h.do("GET", chat+"checkpoints", nil).items()
	require.Equal(t, "n13", whole[0]["name"], "the newest by its time: the last of those with an equal one")
	require.Equal(t, "n0", whole[len(whole)-1]["name"])
	require.Equal(t, 1.0, h.do("GET", chat+"branches?limit=2", nil).items()[1]["length"])
	// The last one of a page is deleted before the next is read, and one is created.
	seen := walk(chat+"branches?limit=5", func(n int) {
		if n == 0 {
			h.do("DELETE", "/v1/threads/=c/branches/"+branches[4].(string), nil).is(204)
			h.do("POST", chat+"branches", `{"name":"a new one"}`).is(204)
		}
	})
	require.Equal(t, append(branches, "a new one"), seen)
	for _, after := range []string{"x", "1.2.3", "1.2.3.x", "1.2.-3.019c0000-0000-7000-8000-000000000000", "99999999999999999999.0.0.019c0000-0000-7000-8000-000000000000"} {
		h.do("GET", chat+"branches?after="+after, nil).is(400)
		h.do("GET", chat+"checkpoints?after="+after, nil).is(400)
	}
}
