package api

import (
	"bufio"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// Two histories are compared page after page, and the pages together have what one has.
func TestDiff(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	c := "/v1/threads/=t/contexts/"
	h.do("POST", c+"main/messages", `{"messages":[{"text":"one"},{"text":"two"},{"text":"three"},{"text":"four"}]}`).is(201)
	h.do("POST", "/v1/threads/=t/branches", `{"name":"other","from":"main:1"}`).is(201)
	h.do("POST", c+"other/messages", `{"messages":[{"text":"TWO"},{"text":"three"},{"text":"five"}]}`).is(201)
	h.do("POST", c+"other/messages", `{"together":true,"messages":[{"text":"six"},{"text":"seven"}]}`).is(201)
	texts := func(query string) (all []string) {
		for next := ""; ; {
			page := h.do("GET", c+"main/diff?with=other"+query+next, nil).is(200)
			for _, item := range page["items"].([]any) {
				if m, ok := item.(map[string]any)["message"].(map[string]any); ok {
					all = append(all, item.(map[string]any)["side"].(string)+" "+m["text"].(string))
				} else {
					require.EqualValues(t, 1, item.(map[string]any)["common"])
					require.EqualValues(t, 2, item.(map[string]any)["only_a"])
					require.EqualValues(t, 4, item.(map[string]any)["only_b"])
					require.EqualValues(t, 1, item.(map[string]any)["same"])
				}
			}
			after, more := page["next"].(string)
			if !more {
				return all
			}
			next = "&after=" + after
		}
	}
	want := []string{"a two", "a four", "b TWO", "b five", "b six", "b seven"}
	require.Equal(t, want, texts(""))
	for _, limit := range []string{"1", "2", "3", "5", "6"} {
		require.Equal(t, want, texts("&limit="+limit))
	}
	// Another thread with the same messages, which were said there again.
	h.do("POST", "/v1/threads", `{"id":"u"}`).is(201)
	h.do("POST", "/v1/threads/=u/contexts/main/messages", `{"messages":[{"text":"one"},{"text":"three"}]}`).is(201)
	items := h.do("GET", c+"main/diff?at=:3&with=main&with_thread=%3Du", nil).items()
	require.Len(t, items, 2)
	require.Equal(t, map[string]any{"type": "diff_summary", "common": 1.0, "only_a": 1.0, "only_b": 0.0, "same": 1.0}, items[1])
	for _, query := range []string{"", "?with=none", "?with=other&after=x", "?with=other&after=c:1", "?with=other&after=a:1", "?with=other&after=a:1:x:-", "?with=main&with_thread=%3Dnone"} {
		require.GreaterOrEqual(t, h.do("GET", c+"main/diff"+query, nil).Status, 400, query)
	}
}

// The pages of a comparison are those of the histories that the first page compared, whatever is added and moved meanwhile.
func TestPagesOfDiff(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t","user":"ada"}`).is(201)
	c := "/v1/threads/=t/contexts/"
	h.do("POST", c+"main/messages", `{"messages":[{"text":"one"},{"text":"two"},{"text":"three"},{"text":"four"}]}`).is(201)
	h.do("POST", "/v1/threads/=t/branches", `{"name":"other","from":"main:1"}`).is(201)
	h.do("POST", c+"other/messages", `{"messages":[{"text":"TWO"},{"text":"five"}]}`).is(201)
	h.do("POST", "/v1/threads/=t/branches", `{"name":"empty","empty":true}`).is(201)
	walk := func(path string, between func()) (all []any) {
		for next := ""; ; between() {
			page := h.do("GET", path+"&limit=1"+next, nil, "Caller: ada").is(200)
			for _, item := range page["items"].([]any) {
				if m, ok := item.(map[string]any)["message"].(map[string]any); ok {
					all = append(all, m["text"])
				} else {
					all = append(all, item.(map[string]any)["only_a"], item.(map[string]any)["only_b"])
				}
			}
			after, more := page["next"].(string)
			if !more {
				return all
			}
			next = "&after=" + url.QueryEscape(after)
		}
	}
	require.Equal(t, []any{"two", "three", "four", "TWO", "five", 3.0, 2.0}, walk(c+"main/diff?with=other", func() {
		h.do("POST", c+"other/messages", `{"messages":[{"text":"four"},{"text":"three"}]}`).is(201)
		h.do("POST", c+"main/messages", `{"messages":[{"text":"TWO"}]}`).is(201)
	}))
	require.Equal(t, 4, len(walk(c+"empty/diff?with=main:3", func() {
		h.do("POST", c+"empty/messages", `{"messages":[{"text":"no more"}]}`).is(201)
	}))-1)
	n := 0
	require.Equal(t, []any{"two", "three", 2.0, 0.0}, walk(c+"main/diff?at=:3&with=:1", func() {
		if n++; n == 1 {
			h.do("POST", c+"main/move", `{"to":":1"}`).is(200)
		}
	}))
}

func TestDocuments(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	c := "/v1/threads/=t/contexts/main"
	h.do("POST", c+"/messages", `{"messages":[{"document":"the/plan","text":"a\nb\nc\n"},{"text":"hm"},{"document":"the/plan","text":"a\nB\nc\n"},{"document":"other","text":"x"}]}`).is(201)
	require.Len(t, h.do("GET", c+"/documents", nil).items(), 3)
	require.Len(t, h.do("GET", c+"/documents?name=the%2Fplan", nil).items(), 2)
	page := h.do("GET", c+"/documents?limit=2", nil).is(200)
	require.Len(t, page["items"], 2)
	h.do("POST", c+"/messages", `{"messages":[{"document":"a","text":"added meanwhile"}]}`).is(201)
	page = h.do("GET", c+"/documents?limit=2&after="+page["next"].(string), nil).is(200)
	require.Len(t, page["items"], 1)
	require.Equal(t, []any{"the/plan", 2.0}, []any{page["items"].([]any)[0].(map[string]any)["document"], page["items"].([]any)[0].(map[string]any)["revision"]})
	require.NotContains(t, page, "next")
	h.do("GET", c+"/documents?after=x", nil).is(400)
	require.Equal(t, "a\nB\nc\n", h.do("GET", c+"/documents/the%2Fplan", nil).is(200)["text"])
	require.Equal(t, "a\nb\nc\n", h.do("GET", c+"/documents/the%2Fplan?revision=1", nil).is(200)["text"])
	require.Equal(t, []any{" a", "-b", "+B", " c"}, h.do("GET", c+"/documents/the%2Fplan/diff?from=1", nil).is(200)["lines"])
	h.do("GET", c+"/documents/the%2Fplan?revision=3", nil).is(404)
	h.do("GET", c+"/documents/none", nil).is(404)
	h.do("GET", c+"/documents/the%2Fplan/diff", nil).is(400)
}

func TestProvenance(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	c := "/v1/threads/=t/contexts/main"
	h.do("POST", c+"/messages", `{"messages":[{"text":"a week"}]}`).is(201)
	fork := h.do("POST", c+"/edits", `{"at":":1","message":{"text":"two weeks"},"branch":"longer"}`).is(201)["id"].(string)
	edited := h.do("GET", "/v1/contexts/"+fork+"/messages", nil).items()[0]["content_id"].(string)
	chain := h.do("GET", "/v1/content/"+edited+"/provenance", nil).items()
	require.Len(t, chain, 2)
	require.Equal(t, h.do("GET", c+"/messages", nil).items()[0]["content_id"], chain[1]["id"])
	h.do("GET", "/v1/content/"+strings.Repeat("0", 64)+"/provenance", nil).is(404)

	// In the thread of another user the chain ends at what only that user has.
	h.do("POST", "/v1/threads", `{"id":"ada","user":"ada"}`).is(201)
	h.do("POST", "/v1/threads/=ada/contexts/main/messages", `{"messages":[{"content_id":"`+edited+`"}]}`).is(201)
	require.Len(t, h.do("GET", "/v1/content/"+edited+"/provenance", nil, "Caller: ada").items(), 1)
}

// What others have of a content does not show in what it was derived from: neither that they said it first, nor when, nor
// as what, nor that they have it from something that both have.
func TestProvenanceOfOthers(t *testing.T) {
	edit := func(t *testing.T, h *harness, user string) {
		h.do("POST", "/v1/threads", `{"id":"`+user+`","user":"`+user+`"}`).is(201)
		c := "/v1/threads/=" + user + "/contexts/main"
		h.do("POST", c+"/messages", `{"messages":[{"role":"assistant","text":"a week"}]}`).is(201)
		h.do("POST", c+"/edits", `{"at":":1","message":{"role":"assistant","text":"two weeks"},"branch":"longer"}`).is(201)
	}
	said := func(t *testing.T, h *harness) (chain []map[string]any, messages []map[string]any) {
		h.do("POST", "/v1/threads", `{"id":"bob","user":"bob"}`).is(201)
		c := "/v1/threads/=bob/contexts/main/messages"
		h.do("POST", c, `{"messages":[{"text":"a week"},{"text":"two weeks"}]}`, "Caller: bob").is(201)
		messages = h.do("GET", c, nil, "Caller: bob").items()
		return h.do("GET", "/v1/content/"+messages[1]["content_id"].(string)+"/provenance", nil, "Caller: bob").items(), messages
	}
	alone := open(t)
	want, _ := said(t, alone)
	require.Len(t, want, 1)
	h := open(t)
	edit(t, h, "ada")
	got, messages := said(t, h)
	require.Equal(t, messages[1]["created_at"], got[0]["created_at"])
	for _, chain := range [][]map[string]any{want, got} {
		delete(chain[0], "created_at")
	}
	require.Equal(t, want, got)

	// What the caller has derived shows, with the time and kind of the caller's own message.
	edit(t, h, "bob-2") // by somebody who may use the whole store
	h.do("PATCH", "/v1/threads/=bob-2", `{"metadata":{"cwd":"/projects/a"}}`).is(200)
	id := messages[1]["content_id"].(string)
	chain := h.do("GET", "/v1/content/"+id+"/provenance", nil, "Caller: proj").items()
	require.Len(t, chain, 2)
	require.Equal(t, "assistant", chain[0]["origin"].(map[string]any)["kind"])
	require.Equal(t, messages[0]["content_id"], chain[1]["id"])
}

// Uses that are not looked at count as unreadable: nothing of the content shows, also as what another one was derived from.
func TestProvenanceOfManyUses(t *testing.T) {
	h := open(t)
	said := make([]lineage.Item, access.MaxUses)
	for i := range said {
		said[i] = lineage.Item{Role: "user", Type: "text/x-bob", Body: []byte("a week")}
	}
	thread, err := h.store.CreateThread(t.Context(), lineage.ThreadOptions{UserID: "bob"})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	_, err = main.Extend(t.Context(), said...)
	require.NoError(t, err)
	h.do("POST", "/v1/threads", `{"id":"t"}`, "Caller: ada").is(201)
	c := "/v1/threads/=t/contexts/main"
	h.do("POST", c+"/messages", `{"messages":[{"text":"a week"}]}`, "Caller: ada").is(201)
	h.do("POST", c+"/edits", `{"at":":1","message":{"text":"two weeks"},"branch":"longer"}`, "Caller: ada").is(201)
	week := h.do("GET", c+"/messages", nil, "Caller: ada").items()[0]["content_id"].(string)
	edited := h.do("GET", "/v1/threads/=t/contexts/longer/messages", nil, "Caller: ada").items()[0]["content_id"].(string)
	h.do("GET", "/v1/content/"+week+"/provenance", nil, "Caller: ada").is(404)
	h.do("GET", "/v1/content/x/provenance", nil, "Caller: ada").is(404)
	chain := h.do("GET", "/v1/content/"+edited+"/provenance", nil, "Caller: ada").items()
	require.Equal(t, []any{edited}, idsOf(chain, "id"))
	require.NotContains(t, chain[0], "missing")
	require.NotEqual(t, "0001-01-01T00:00:00Z", chain[0]["created_at"])
	require.Len(t, h.do("GET", "/v1/content/"+edited+"/provenance", nil).items(), 2)
}

// Erasing a message leaves what another message has of it; what is to be erased can be seen before.
func TestErase(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t","title":"my secret"}`).is(201)
	c := "/v1/threads/=t/contexts/main"
	h.do("POST", c+"/messages", `{"messages":[{"text":"my secret"},{"text":"fine"},{"text":"fine"}]}`).is(201)
	would := h.do("POST", c+"/erase", `{"at":":1","dry_run":true}`).items()
	require.Len(t, would, 1)
	require.Equal(t, false, would[0]["erased"])
	require.Len(t, would[0]["titles"], 1)
	require.Equal(t, "my secret", h.do("GET", c+"/messages", nil).items()[0]["text"])
	h.do("POST", c+"/erase", `{"at":":1"}`, "Idempotency-Key: k").is(400)
	h.do("POST", c+"/erase", `{}`).is(400)
	require.Equal(t, "my secret", h.do("GET", c+"/messages", nil).items()[0]["text"])
	require.Equal(t, true, h.do("POST", c+"/erase", `{"at":":1"}`).items()[0]["erased"])
	require.Equal(t, true, h.do("GET", c+"/messages", nil).items()[0]["erased"])

	fine := h.do("GET", c+"/messages", nil).items()[1]["content_id"].(string)
	require.EqualValues(t, 2, h.do("DELETE", "/v1/content/"+fine+"?dry_run=true", nil).items()[0]["uses"])
	require.Equal(t, "fine", h.do("GET", c+"/messages", nil).items()[2]["text"])
	h.do("DELETE", "/v1/content/"+fine, nil).items()
	require.Equal(t, true, h.do("GET", c+"/messages", nil).items()[2]["erased"])
	h.do("DELETE", "/v1/content/"+strings.Repeat("0", 64), nil).is(404)
}

// What a message has twice is its own. What another has, too, is told to stay.
func TestEraseTellsWhatStays(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	c := "/v1/threads/=t/contexts/main"
	const image, other = `{"type":"file","mediaType":"image/png","url":"data:image/png;base64,R3Jhcw"}`, `{"type":"file","mediaType":"image/png","url":"data:image/png;base64,SGVybg"}`
	said := func(text string, files ...string) {
		h.do("POST", c+"/messages", `{"messages":[{"role":"assistant","content":{"role":"assistant","parts":[{"type":"text","text":"`+text+`"},`+strings.Join(files, ",")+`]}}]}`).is(201)
	}
	said("one", image, image)
	items := h.do("POST", c+"/erase", `{"at":":1","dry_run":true}`).items()
	require.Len(t, items, 2)
	for _, item := range items {
		require.EqualValues(t, 1, item["uses"])
		require.NotContains(t, item, "stays")
	}
	said("two", other, image)
	items = h.do("POST", c+"/erase", `{"at":":2"}`).items()
	require.Len(t, items, 3)
	require.Equal(t, true, items[0]["erased"])
	require.Equal(t, true, items[1]["erased"])
	require.Equal(t, []any{false, true, 2.0}, []any{items[2]["erased"], items[2]["stays"], items[2]["uses"]})
	for i, want := range []error{lineage.ErrErased, lineage.ErrErased, nil} {
		id, err := content.ParseID(items[i]["content_id"].(string))
		require.NoError(t, err)
		_, err = h.store.Body(t.Context(), id)
		require.ErrorIs(t, err, want)
	}
}

func TestValueHistory(t *testing.T) {
	h := open(t)
	for _, v := range []string{`1`, `"two"`} {
		h.do("PUT", "/v1/store/values/k", v).is(200)
	}
	h.do("DELETE", "/v1/store/values/k", nil).is(204)
	var values []any
	for _, v := range h.do("GET", "/v1/store/values/k/history", nil).items() {
		values = append(values, v["value"])
	}
	require.Equal(t, []any{nil, "two", 1.0}, values)

	values = nil
	for after := ""; ; {
		page := h.do("GET", "/v1/store/values/k/history?limit=2"+after, nil).is(200)
		for _, item := range page["items"].([]any) {
			values = append(values, item.(map[string]any)["value"])
		}
		next, more := page["next"].(string)
		if !more {
			break
		}
		require.Empty(t, after)
		after = "&after=" + next
	}
	require.Equal(t, []any{nil, "two", 1.0}, values)
	h.do("GET", "/v1/store/values/k/history?after=x", nil).is(400)
}

// routesOf says by which routes a program does what a command does; a command without any says why.
var routesOf = map[string]string{
	"thread": "GET T", "thread create": "POST /v1/threads", "thread delete": "DELETE T", "thread list": "GET /v1/threads", "thread set": "PATCH T",
	"thread show": "GET T", "thread use": "- is the command line's", "import": "POST /v1/import", "export": "GET T/export, GET T/native", "resume": "POST T/resume",
	"init": "- maintenance", "info": "- maintenance", "follow": "- reads files of this machine: lineage serve --follow",
	"bundle": "GET /v1/bundle", "bundle create": "GET /v1/bundle, POST /v1/bundle/against", "bundle import": "POST /v1/bundle", "bundle inventory": "GET /v1/bundle/inventory",
	"log": "GET C/messages", "show": "GET C/messages", "tree": "GET T/graph", "contexts": "GET T/contexts", "usage": "GET /v1/usage", "cat": "GET /v1/content/{content}",
	"document": "GET C/documents", "document diff": "GET C/documents/{document}/diff", "document list": "GET C/documents", "document show": "GET C/documents/{document}",
	"diff": "GET C/diff", "common-prefix": "GET C/diff", "resolve": "GET C/resolved", "search": "GET /v1/search", "where": "GET /v1/content/{content}/uses",
	"provenance": "GET /v1/content/{content}/provenance", "reflog": "GET C/moves", "watch": "GET C/follow, GET /v1/events",
	"append": "POST C/messages, POST C/files", "edit": "POST C/edits", "set": "PATCH C", "value": "GET V/values", "value delete": "DELETE V/values/{key}",
	"value get": "GET V/values/{key}", "value history": "GET V/values/{key}/history", "value list": "GET V/values", "value set": "PUT V/values/{key}",
	"summarize": "POST C/summaries, GET C/summaries, DELETE C/summaries/{summary}", "send": "POST C/send",
	"fork": "POST T/contexts, POST T/branches", "subagent": "POST T/contexts", "return": "POST C/return", "alternatives": "GET C/alternatives, POST C/alternatives",
	"choose": "POST C/choose", "branch": "GET T/branches, POST T/branches", "switch": "PATCH T/branches/{branch}", "rename": "PATCH T/branches/{branch}",
	"delete": "DELETE T/branches/{branch}, DELETE C, DELETE T/checkpoints/{checkpoint}", "rewind": "POST C/move, POST T/branches", "aside": "POST T/contexts", "checkpoint": "GET T/checkpoints, POST T/checkpoints",
	"restore-checkpoint": "POST C/move, POST T/branches", "merge": "POST C/merge", "undo": "POST C/undo",
	"erase": "POST C/erase, DELETE /v1/content/{content}", "stats": "GET /v1/stats",
}

// TestCommandsHaveRoutes compares the commands that work on conversations with the routes: what the command line can do, a program can.
func TestCommandsHaveRoutes(t *testing.T) {
	routes := make(map[string]bool)
	for _, r := range New(fixtureOptions()).routes {
		routes[strings.NewReplacer("/v1/threads/{thread}/contexts/{context}", "C", "/v1/threads/{thread}", "T", "/v1/store/values", "V/values").Replace(r.pattern)] = true
	}
	f, err := os.Open(filepath.Join("..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	defer f.Close()
	group, heading := "", regexp.MustCompile(`^(##|###) (?:lineage )?(.+)$`)
	var known []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := heading.FindStringSubmatch(lines.Text())
		switch {
		case m == nil:
		case m[1] == "##":
			group = m[2]
		case slices.Contains([]string{"Stores and threads", "Read", "Write", "Branch"}, group) || slices.Contains([]string{"follow", "usage", "resume", "erase", "stats"}, m[2]):
			known = append(known, m[2])
			by, ok := routesOf[m[2]]
			require.True(t, ok, "lineage %s: the table has no row for it", m[2])
			if strings.HasPrefix(by, "- ") {
				continue
			}
			for pattern := range strings.SplitSeq(by, ", ") {
				require.True(t, routes[pattern], "lineage %s: there is no route %s", m[2], pattern)
			}
		}
	}
	require.Len(t, known, len(routesOf), "the table has rows for commands that are not there")
}
