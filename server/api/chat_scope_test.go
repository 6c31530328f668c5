package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// TestChatsOfAToken: a token of one user finds the chats, branches and messages that it made, by the ids that it chose, also those that
// are given no chat. A second user has all of the same ids.
func TestChatsOfAToken(t *testing.T) {
	h := open(t)
	for _, who := range []string{"ada", "bob"} {
		do := func(method, path string, body any) *answer { return h.do(method, path, body, "Caller: "+who) }
		const at = "/v1/threads/=deepagents%2Fc/chat/"
		require.Equal(t, "deepagents/c", do("POST", "/v1/threads", `{"id":"deepagents/c","keep":true}`).is(201)["source_id"])
		do("POST", at+"messages", `{"id":"q","role":"user","data":"`+who+`"}`).is(204)
		main := do("GET", at+"branches?active=true", nil).items()[0]["id"].(string)
		do("POST", at+"branches", `{"id":"b","name":"side","head":"q"}`).is(204)
		do("POST", at+"checkpoints", `{"id":"k","name":"k","message":"q"}`).is(204)
		do("POST", "/v1/threads/=deepagents%2Fc/branches", `{"name":"made","id":"m"}`).is(201)
		for _, query := range []string{"source_prefix=deepagents/", "message=q&source_prefix=deepagents/", "branch=b", "branch=m", "branch=" + main, "user=" + who} {
			require.Equal(t, []any{"deepagents/c"}, idsOf(do("GET", "/v1/chats?"+query, nil).items(), "id"), "%s %s", who, query)
		}
		for _, query := range []string{"source_prefix=scope:", "message=q&source_prefix=other", "branch=k"} {
			require.Empty(t, do("GET", "/v1/chats?"+query, nil).items(), query)
		}
		require.Equal(t, []any{main, "b", "m"}, idsOf(do("GET", at+"branches", nil).items(), "id"))
		require.Equal(t, []any{"k"}, idsOf(do("GET", at+"checkpoints", nil).items(), "id"))
		require.Equal(t, "deepagents/c", do("GET", at+"graph", nil).is(200)["chat"])
		for _, branch := range []string{main, "b", "m"} {
			do("PATCH", at+"branches/"+branch, `{"head":"q","active":true}`).is(204)
		}
		taken := do("POST", at+"branches", `{"id":"b","name":"other"}`).is(409)["detail"]
		missing := do("POST", at+"messages", `{"id":"x","parent":"none","role":"user","data":1}`).is(404)["detail"]
		do("POST", at+"messages", `{"id":"x","role":"user","data":1}`).is(204)
		moved := do("PATCH", at+"branches/b", `{"head":"x","along":true}`).is(412)["detail"]
		for _, detail := range []any{taken, missing, moved, do("PATCH", at+"branches/none", `{"active":true}`).is(404)["detail"]} {
			require.NotContains(t, detail, "scope:")
		}
		require.Contains(t, missing, `in chat "deepagents/c"`)
	}
	// The whole store has both, and makes branches that each finds by their ids.
	for _, one := range h.do("GET", "/v1/chats", nil).items() {
		at := "/v1/threads/" + url.PathEscape("="+one["id"].(string)) + "/chat/branches"
		h.do("POST", at, `{"id":"of `+one["user"].(string)+`","name":"n"}`).is(204)
		h.do("POST", at, `{"id":"b","name":"n"}`).is(409)
	}
	for _, who := range []string{"ada", "bob"} {
		h.do("POST", "/v1/threads", `{"id":"second"}`, "Caller: "+who).is(201)
		h.do("POST", "/v1/threads/=second/chat/branches", `{"id":"of `+who+`","name":"n"}`, "Caller: "+who).is(204)
		h.do("PATCH", "/v1/threads/=deepagents%2Fc/chat/branches/of%20"+who, `{"active":true}`, "Caller: "+who).is(204)
		require.Len(t, h.do("GET", "/v1/chats?branch=of+"+who, nil, "Caller: "+who).items(), 2)
	}
}

// TestPagesOfChats: a request looks at a limited number of threads, also those that are left out, and its pages lead to all that are
// asked for. Their tokens name no thread of others.
func TestPagesOfChats(t *testing.T) {
	h := open(t, func(o *Options) { o.looked = 3 })
	tokens := map[string]string{}
	for i := range 12 {
		user := "bob"
		if i == 0 || i == 8 {
			user = "ada"
		}
		at := time.UnixMilli(int64(1000 + i/2))
		thread, err := h.store.CreateThread(t.Context(), lineage.ThreadOptions{
			SourceID: fmt.Sprint(i), UserID: user, Keep: true, CreatedAt: at, UpdatedAt: at, Metadata: fmt.Appendf(nil, `{"a":{"b":%d}}`, i%6),
		})
		require.NoError(t, err)
		if user == "bob" {
			id := thread.ID()
			tokens[string(id[:])] = fmt.Sprint(i)
		}
		_, err = thread.AddAfter(t.Context(), lineage.SpanRef{}, lineage.Item{Role: "user", Body: []byte("1"), SourceID: "1", CreatedAt: at})
		require.NoError(t, err)
	}
	all := func(who, path string) (ids []any) {
		for after, pages := "", 0; ; pages++ {
			require.Less(t, pages, 20)
			a := h.do("GET", path+after, nil, "Caller: "+who)
			page := a.is(200)
			member := "id"
			if strings.HasPrefix(path, "/v1/threads") {
				member = "source_id"
			}
			ids = append(ids, idsOf(a.items(), member)...)
			next, more := page["next"].(string)
			if !more {
				return ids
			}
			if who != "" {
				token, _, _ := strings.Cut(next, skipMark)
				b, err := base64.RawURLEncoding.DecodeString(token)
				require.NoError(t, err)
				for id, of := range tokens {
					require.NotContains(t, string(b), id, "%s %s names thread %s", who, path, of)
				}
			}
			after = "&after=" + url.QueryEscape(next)
		}
	}
	many := *h.callers["ada"]
	many.Scope.Users = []string{"ada", "carl"} // so that the store looks at all threads
	h.callers["many"] = &many
	for _, who := range []string{"ada", "many"} {
		require.ElementsMatch(t, []any{"0", "8"}, all(who, "/v1/chats?limit=50"), who)
		require.ElementsMatch(t, []any{"0", "8"}, all(who, "/v1/threads?limit=50"), who)
		require.ElementsMatch(t, []any{"0", "8"}, all(who, "/v1/threads?oldest=true"), who)
		require.Len(t, all(who, "/v1/chats?offset=1"), 1)
		require.Empty(t, all(who, "/v1/chats?offset=2000000000"))
		require.Equal(t, []any{"8"}, all(who, "/v1/chats?metadata=a.b=2"))
	}
	require.Len(t, all("", "/v1/chats?limit=2"), 12)
	require.Len(t, all("", "/v1/chats?offset=7"), 5)
	require.ElementsMatch(t, []any{"5", "11"}, all("", "/v1/chats?metadata=a.b=5"))
	require.Empty(t, h.do("GET", "/v1/chats?metadata=a.b=9", nil).items())
	require.NotEmpty(t, h.do("GET", "/v1/chats?metadata=a.b=9", nil).is(200)["next"], "it has not looked at all threads")
	h.do("GET", "/v1/chats?after=x", nil).is(400)
	h.do("GET", "/v1/chats?message=1&after=x", nil).is(400)

	require.Len(t, all("", "/v1/chats?message=1&limit=2"), 12)
	require.Equal(t, []any{"8"}, all("", "/v1/chats?message=1&metadata=a.b=2&user=ada"))
	h.do("GET", "/v1/chats?message=1", nil, "Caller: proj").is(409)
	whole := openOf(t, h.store)
	require.Empty(t, whole.do("GET", "/v1/chats?message=1", nil, "Caller: proj").items())
	require.ElementsMatch(t, []any{"0", "8"}, idsOf(whole.do("GET", "/v1/chats?message=1", nil, "Caller: ada").items(), "id"))
	first := whole.do("GET", "/v1/chats?message=1&limit=1", nil, "Caller: ada").is(200)
	require.NotEmpty(t, first["next"])
	require.Len(t, whole.do("GET", "/v1/chats?message=1&after="+first["next"].(string), nil, "Caller: ada").items(), 1)
}

// TestChatOfAThreadID: a source id that is the id of another thread leads no route of that thread to the other chat.
func TestChatOfAThreadID(t *testing.T) {
	h := open(t)
	ada := h.do("POST", "/v1/threads", `{"user":"ada","keep":true}`).is(201)["id"].(string)
	h.do("POST", "/v1/threads/"+ada+"/chat/messages", `{"id":"q","role":"user","data":1}`, "Caller: ada").is(204)
	h.do("POST", "/v1/threads", `{"id":"`+ada+`","user":"bob","keep":true}`).is(201)
	bob := "/v1/threads/=" + ada + "/chat/"
	h.do("POST", bob+"messages", `{"id":"m","role":"user","data":2}`, "Caller: bob").is(204)
	at := "/v1/threads/" + ada + "/chat/"
	for _, path := range []string{"messages?id=m", "messages?to=m", "graph", "branches", "checkpoints"} {
		h.do("GET", at+path, nil, "Caller: ada").is(404)
	}
	h.do("POST", at+"messages", `{"id":"x","role":"user","data":1}`, "Caller: ada").is(404)
	require.Equal(t, []any{"m"}, idsOf(h.do("GET", bob+"messages?to=m", nil, "Caller: bob").items(), "id"))
	require.Len(t, h.do("GET", bob+"graph", nil, "Caller: bob").is(200)["nodes"], 1)
}

// TestSearchOfAChatIsBounded: an answer has about as much text as any other page, and no more messages are read.
func TestSearchOfAChatIsBounded(t *testing.T) {
	read := 0
	h := open(t, func(o *Options) {
		o.SearchChat = func(context.Context, string, string, chat.SearchOptions) iter.Seq2[chat.SearchResult, error] {
			return func(yield func(chat.SearchResult, error) bool) {
				for read = 1; yield(chat.SearchResult{Message: chat.Message{ID: "m", Data: json.RawMessage(`"` + strings.Repeat("x", maxTexts/3) + `"`)}}, nil); read++ {
				}
			}
		}
	})
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	require.Len(t, h.do("GET", "/v1/threads/=t/chat/search?q=x&limit=1000", nil).items(), 2)
	require.Equal(t, 3, read)
}
