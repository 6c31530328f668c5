package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
)

// TestBodiesAreLimited has bodies in memory up to the limit: a large one is refused until there is room, a small one is not.
func TestBodiesAreLimited(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const path = "/v1/threads/=t/contexts/main/messages"
	large := `{"messages":[{"text":"` + strings.Repeat("a", smallBody) + `"}]}`
	h.api.bodies.Add(maxBodies)
	refused := h.do("POST", path, large)
	refused.is(503)
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	h.do("POST", path, `{"messages":[{"text":"a"}]}`).is(201)
	h.api.bodies.Add(-maxBodies)
	h.do("POST", path, large).is(201)
	require.Zero(t, h.api.bodies.Load(), "all is given back")
}

// An id that is too long is refused, with the limit, and is otherwise that of no thread.
func TestLongIDsAreRefused(t *testing.T) {
	h := open(t)
	long := strings.Repeat("x", 4097)
	for _, more := range []string{"", `,"reuse":true`} {
		a := h.do("POST", "/v1/threads", `{"id":"`+long+`"`+more+`}`)
		a.is(400)
		require.Contains(t, string(a.Body), "4096")
	}
	h.do("GET", "/v1/threads/="+long, "").is(404)
	h.do("POST", "/v1/threads", `{"id":"`+long[1:]+`"}`).is(201)
	h.do("GET", "/v1/threads/="+long[1:], "").is(200)
}

// TestHostile sends what no client of ours does.
func TestHostile(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t","user":"ada"}`).is(201)
	const path = "/v1/threads/=t/contexts/main/messages"
	deep := strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000)
	for _, body := range []string{
		``, `null`, `[]`, `"x"`, `{`, `{"messages":null}`, `{"messages":{}}`, `{"messages":[1]}`, `{"messages":[null]}`, `{"messages":[{}]}`, `{"messages":[{"text":1}]}`,
		`{"messages":[{"text":"a","content":"b"}]}`, `{"messages":[{"data":"*"}]}`, `{"messages":[{"content_id":"x"}]}`, `{"messages":[{"text":"a","created_at":"now"}]}`,
		`{"messages":[{"text":"a"}]} {}`, `{"messages":[{"text":"a"}],"x":1}`, `{"messages":[{"text":"a","metadata":1}],"if_tip":"../x"}`, `{"messages":[` + deep + `]}`,
		"\x00", "\xff\xfe", `{"messages":[{"text":"a"}]}` + "\u00a0", "\v", `{"messages":[{"text":"a"}],"thread":"=other"}`,
	} {
		a := h.do("POST", path, body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%.80q: %s", body, a.Body)
	}
	for _, name := range []string{"..", "%2e%2e%2f", "=", "=%00", "%ff", "=" + strings.Repeat("a", 5000), "00000000-0000-0000-0000-000000000000", "#0", "t", "%3Cscript%3E"} {
		a := h.do("GET", "/v1/threads/"+name, nil)
		require.Contains(t, []int{400, 404, 301, 307}, a.Status, "%.80q: %s", name, a.Body)
		a = h.do("GET", "/v1/threads/=t/contexts/"+name, nil)
		require.Contains(t, []int{400, 404, 301, 307}, a.Status, "%.80q: %s", name, a.Body)
	}
	for _, query := range []string{"limit=-1", "limit=x", "limit=99999999999", "x=1", "first=-1", "after=x", "after=:1", "at=main~99", "dialect=x", "budget=1", "limit=1&limit=2", "dialect=openai&at=:1"} {
		a := h.do("GET", path+"?"+query, nil)
		require.Contains(t, []int{400, 404}, a.Status, "%q: %s", query, a.Body)
	}
	require.Empty(t, h.do("GET", path, nil).items(), "nothing was added")
	h.do("GET", path, "{}").is(200) // a body that nobody asked for

	// Text of the store is no control character of a terminal, and no markup.
	h.do("POST", path, `{"messages":[{"text":"\u001b]0;x\u0007\u202e<script>"}]}`).is(201)
	a := h.do("GET", path, nil)
	require.NotContains(t, string(a.Body), "\x1b")
	require.NotContains(t, string(a.Body), "\u202e")
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
}

// TestTokensCannotReach tries the ways out of the scope of a token that the routes themselves have.
func TestTokensCannotReach(t *testing.T) {
	h := open(t)
	ada := h.do("POST", "/v1/threads", `{"id":"ada-1","user":"ada"}`).is(201)["id"].(string)
	h.do("POST", "/v1/threads/=ada-1/contexts/main/messages", `{"messages":[{"text":"secret"}]}`).is(201)
	message := h.do("GET", "/v1/threads/=ada-1/contexts/main/messages", nil).items()[0]
	adasMain := h.do("GET", "/v1/threads/=ada-1/contexts/main", nil).is(200)["id"].(string)
	bob := func(method, path, body string) *answer {
		t.Helper()
		return h.do(method, path, body, "Caller: bob")
	}
	require.Equal(t, "bob", bob("POST", "/v1/threads", `{"id":"bob-1"}`).is(201)["user"], "what bob creates is bob's")
	const c = "/v1/threads/=bob-1/contexts/main"
	bob("POST", c+"/messages", `{"messages":[{"text":"mine"}]}`).is(201)
	bob("POST", "/v1/threads", `{"user":"ada"}`).is(403)
	bob("POST", c+"/messages", `{"messages":[{"content_id":"`+message["content_id"].(string)+`"}]}`).is(403)
	for _, at := range []string{message["id"].(string), "=ada-1/main", ada, ada + "/main", adasMain, adasMain + "~0", adasMain[len(adasMain)-8:], "ada-1/main"} {
		bob("POST", "/v1/threads/=bob-1/branches", `{"name":"x","from":"`+at+`"}`).is(404)
		bob("POST", "/v1/threads/=bob-1/contexts", `{"from":"`+at+`"}`).is(404)
		bob("POST", c+"/move", `{"to":"`+at+`"}`).is(404)
		bob("POST", c+"/merge", `{"from":"`+at+`"}`).is(404)
		bob("POST", c+"/send", `{"to":"`+at+`"}`).is(404)
		bob("POST", c+"/edits", `{"at":"`+at+`","message":{"text":"x"}}`).is(404)
		bob("POST", "/v1/threads/=bob-1/checkpoints", `{"name":"x","at":"`+at+`"}`).is(404)
		require.Equal(t, 404, h.do("GET", c+"/messages?at="+strings.ReplaceAll(at, "/", "%2F"), nil, "Caller: bob").Status, at)
	}
	bob("POST", "/v1/threads/=bob-1/contexts", `{"into":"=ada-1"}`).is(404)
	bob("PUT", "/v1/users/ada/values/k", `1`).is(404)
	bob("PUT", "/v1/users/bob/values/k", `1`).is(200)
	bob("POST", "/v1/batch", `{"operations":[{"op":"create_thread"},{"op":"append","thread":"=ada-1","context":"main","messages":[{"text":"x"}]}]}`).is(404)
	bob("POST", "/v1/batch", `{"operations":[{"op":"set_value","key":"k","value":1}]}`).is(403)
	bob("POST", "/v1/batch", `{"operations":[{"op":"create_context"}]}`).is(403)
	require.Len(t, h.do("GET", "/v1/threads", nil, "Caller: bob").items(), 1)

	// A subagent of bob's thread whose parent is ada's cannot return there.
	bobs := bob("GET", "/v1/threads/=bob-1", "").is(200)["id"].(string)
	fork := h.do("POST", "/v1/threads/=ada-1/contexts", `{"into":"`+bobs+`","empty":true}`).is(201)["id"].(string)
	bob("POST", "/v1/contexts/"+fork+"/messages", `{"messages":[{"text":"x"}]}`).is(201)
	bob("POST", "/v1/contexts/"+fork+"/return", `{}`).is(404)
	h.do("POST", "/v1/contexts/"+fork+"/return", `{}`).is(201)

	// A project is part of the metadata, which a token for it cannot change to another.
	project := func(method, path, body string) *answer { return h.do(method, path, body, "Caller: proj") }
	project("POST", "/v1/threads", `{"id":"p"}`).is(403)
}

// TestIDsOfOthers chooses ids that others have. Callers of a part of the store learn nothing of that: each gets what a free id
// gives, and finds what it made.
func TestIDsOfOthers(t *testing.T) {
	taken, free := open(t), open(t)
	taken.do("POST", "/v1/threads", `{"id":"x","user":"ada"}`).is(201)
	taken.do("POST", "/v1/threads", `{"id":"y","user":"ada"}`, "Caller: ada").is(201)
	taken.do("POST", "/v1/threads", `{"id":"x"}`, "Caller: ada").is(409)
	taken.do("POST", "/v1/threads/=x/branches", `{"name":"side","id":"b"}`).is(201)
	for i, who := range []string{"", "ada"} {
		at := fmt.Sprintf("/v1/threads/=%s/chat/", []string{"x", "y"}[i])
		taken.do("POST", at+"messages", `{"id":"q","role":"user","data":1}`, "Caller: "+who).is(204)
		taken.do("POST", at+"branches", fmt.Sprintf(`{"name":"n","id":"cb%d","head":"q"}`, i), "Caller: "+who).is(204)
		taken.do("POST", at+"checkpoints", fmt.Sprintf(`{"name":"k","id":"ck%d","message":"q"}`, i), "Caller: "+who).is(204)
	}
	plain := func(a *answer) string { // without times and random ids; ids that are derived from source ids are there
		found := a.is(a.Status)
		for _, key := range []string{"active", "created_at", "updated_at", "head"} {
			delete(found, key)
		}
		if found["type"] == "thread" {
			delete(found, "context")
		}
		return fmt.Sprint(a.Status, found)
	}
	for _, who := range []string{"bob", "proj"} {
		body := func(more string) string {
			if who == "proj" {
				more += `,"metadata":{"cwd":"/projects/a"}`
			}
			return `{"id":"x"` + more + `}`
		}
		for _, r := range [][3]string{
			{"GET", "/v1/threads/=x"}, {"POST", "/v1/threads", body("")}, {"POST", "/v1/threads", body("")}, {"POST", "/v1/threads", body(`,"reuse":true`)},
			{"GET", "/v1/threads/=x"}, {"POST", "/v1/threads/=x/branches", `{"name":"side","id":"b"}`}, {"POST", "/v1/threads/=x/branches", `{"name":"other","id":"b"}`},
			{"POST", "/v1/threads/=x/chat/messages", `{"id":"q","role":"user","data":1}`},
			{"PATCH", "/v1/threads/=x/chat/branches/cb0", `{"active":true}`}, {"PATCH", "/v1/threads/=x/chat/branches/cb1", `{"head":"q","along":true}`},
			{"POST", "/v1/threads/=x/chat/branches", `{"name":"n0","id":"cb0","head":"q"}`}, {"POST", "/v1/threads/=x/chat/branches", `{"name":"n1","id":"cb1"}`},
			{"POST", "/v1/threads/=x/chat/branches", `{"name":"again","id":"cb1"}`}, {"POST", "/v1/threads/=x/chat/branches", `{"name":"made","id":"b"}`},
			{"PATCH", "/v1/threads/=x/chat/branches/cb1", `{"head":"q","along":true}`}, {"PATCH", "/v1/threads/=x/chat/branches/b", `{"active":true}`},
			{"POST", "/v1/threads/=x/chat/checkpoints", `{"name":"k0","id":"ck0","message":"q"}`}, {"POST", "/v1/threads/=x/chat/checkpoints", `{"name":"k1","id":"ck1","message":"q"}`},
			{"POST", "/v1/threads/=x/chat/checkpoints", `{"name":"again","id":"ck1","message":"q"}`},
			{"POST", "/v1/threads/=x/copy", `{"id":"y"}`}, {"POST", "/v1/batch", `{"operations":[{"op":"create_thread",` + body("")[1:] + `]}`},
			{"POST", "/v1/batch", `{"operations":[{"op":"append","thread":"=y","context":"main","messages":[{"text":"a"}]}]}`},
		} {
			var in any
			if r[2] != "" {
				in = r[2]
			}
			got, want := taken.do(r[0], r[1], in, "Caller: "+who), free.do(r[0], r[1], in, "Caller: "+who)
			if strings.HasSuffix(r[1], "batch") {
				require.Equal(t, want.Status, got.Status)
				continue
			}
			require.Equal(t, plain(want), plain(got), "%s: %v", who, r)
		}
		require.Subset(t, idsOf(taken.do("GET", "/v1/threads/=x/chat/branches", nil, "Caller: "+who).items(), "id"), []any{"b", "cb0", "cb1"})
		require.ElementsMatch(t, []any{"ck0", "ck1"}, idsOf(taken.do("GET", "/v1/threads/=x/chat/checkpoints", nil, "Caller: "+who).items(), "id"))
		list := taken.do("GET", "/v1/threads?source_prefix=x", nil, "Caller: "+who).items()
		require.Len(t, list, 1)
		require.Equal(t, "x", list[0]["source_id"])
		require.Equal(t, list[0]["id"], taken.do("GET", "/v1/threads/=x", nil, "Caller: "+who).is(200)["id"])
		require.NotEqual(t, list[0]["id"], taken.do("GET", "/v1/threads/=x", nil).is(200)["id"])
	}
	// What somebody with the whole store made for ada is ada's too.
	require.Equal(t, "x", taken.do("GET", "/v1/threads/=x", nil, "Caller: ada").is(200)["source_id"])
}

// TestErrorsAreForCallers has errors that say what to change, in the words of the request.
func TestErrorsAreForCallers(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const messages = "/v1/threads/=t/contexts/main/messages"
	for _, wrong := range []struct {
		path, body string
		status     int
		detail     string
	}{
		{messages, `[]`, 400, "body: invalid: must be an object; this is of the type array"},
		{messages, `{"messages":"x"}`, 400, "body: invalid: messages must be an array; this is of the type string"},
		{"/v1/threads", `{"title":5}`, 400, "body: invalid: title must be a string; this is of the type number"},
		{"/v1/threads", `{"reuse":"yes"}`, 400, "body: invalid: reuse must be true or false; this is of the type string"},
		{"/v1/threads/=t/contexts", `{"last":-1}`, 400, "body: invalid: last must be a number from 0 on; this is of the type number -1"},
		{"/v1/threads/=t/chat/messages", `{"id":"a","role":"user","data":1,"created_at":"now"}`, 400, "body: invalid: a time must be like 2006-01-02T15:04:05Z"},
		{messages, `{"messages":[{"text":"a","rol":"assistant"}]}`, 400, `message 0: invalid: there is no member "rol"`},
		{messages, `{"messages":[{"content_id":"` + strings.Repeat("0", 64) + `"}]}`, 400, "message 0: invalid: content_id has 64 hexadecimal digits, not all of them 0"},
		{messages, `{"messages":[{"text":"a` + "\xff" + `"}]}`, 400, "body: invalid: JSON must be UTF-8"},
		{"/v1/batch", `{"operations":[{"op":"create_thread","title":5}]}`, 400, "operation 0: create_thread: invalid: title must be a string; this is of the type number"},
		{"/v1/batch", `{"operations":[{"op":"create_thread"},{"op":"delete_thread","thread":"=none"}]}`, 404, "operation 1: it is not in the store, or not for this caller"},
		{"/v1/batch", `{"operations":[{"op":"delete_branch","thread":"=t","branch":"main"},{"op":"create_thread"}]}`, 409, `operation 0: branch "main": protected: the main branch cannot be deleted`},
	} {
		a := h.do("POST", wrong.path, wrong.body)
		require.Equal(t, wrong.detail, a.is(wrong.status)["detail"], wrong.body)
	}
	require.Empty(t, h.do("GET", messages, nil).items(), "nothing was added")
}

// A body that does not arrive whole is the fault of the caller, whatever was made of it until then, and nothing is added.
func TestCutBodies(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	var log bytes.Buffer
	url, tokens := served(t, store, func(o *server.Options) {
		options := fixtureOptions()
		options.Store, options.Logger = store, slog.New(slog.NewTextHandler(&log, nil))
		options.Import = func(ctx context.Context, q ImportQuery) (*records.Imported, error) {
			if _, err := io.Copy(io.Discard, q.Archive); err != nil {
				<-ctx.Done() // as a loader that ends later
				return nil, ctx.Err()
			}
			return nil, lineage.ErrInvalid
		}
		o.Routes = New(options).Routes()
	})
	_, secret, err := tokens.Create(t.Context(), access.Token{Name: "me", Writes: true})
	require.NoError(t, err)
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: "t"})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	c := "/v1/threads/=t/contexts/main/"
	for _, path := range []string{c + "files?name=f", c + "files?name=f&as=document", c + "files?as=message", c + "messages", "/v1/content", "/v1/import", "/v1/bundle", "/v1/bundle/against"} {
		for _, framing := range []string{"Content-Length: 200000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n20000\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s%s", path, strings.TrimPrefix(url, "http://"), secret, framing, emptyBundle()+strings.Repeat("x", 100_000))
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			a, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err, path)
			body, err := io.ReadAll(a.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadRequest, a.StatusCode, "%s: %s", path, body)
			require.NoError(t, a.Body.Close())
			require.NoError(t, conn.Close())
		}
	}
	length, err := main.Len(t.Context())
	require.NoError(t, err)
	require.Zero(t, length)
	require.Empty(t, log.String())
}
