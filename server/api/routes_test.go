package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
)

// request is how a route is called in the test: {NAME} stands for what the store has.
type request struct {
	query, body string
	// others is what somebody who may not read the thread is answered with; 0 is 404.
	others int
	// free is set for routes that are not of one thread: others get what is theirs.
	free bool
	// upload is set for a body of bytes.
	upload bool
}

// requests is a row for each route: TestScopes fails for a route without one.
var requests = map[string]request{
	"GET /v1/openapi.json": {free: true},
	"GET /v1/threads":      {free: true},
	"POST /v1/threads":     {body: `{"title":"New"}`, free: true},
	"GET T":                {},
	"PATCH T":              {body: `{"title":"Other"}`},
	"DELETE T":             {},
	"POST T/copy":          {body: `{"title":"Copy"}`},
	"GET T/branches":       {}, "POST T/branches": {body: `{"name":"new","from":"main~1"}`},
	"PATCH T/branches/{branch}":                 {body: `{"name":"renamed","active":true}`},
	"DELETE T/branches/{branch}":                {},
	"GET T/checkpoints":                         {},
	"POST T/checkpoints":                        {body: `{"name":"c","at":"{message}"}`},
	"DELETE T/checkpoints/{checkpoint}":         {},
	"GET T/contexts":                            {},
	"POST T/contexts":                           {body: `{"from":"main:1","subagent":true}`},
	"GET T/graph":                               {},
	"GET /v1/chats":                             {free: true},
	"GET T/chat/messages":                       {query: "to=s-1"},
	"POST T/chat/messages":                      {body: `{"id":"m","parent":"s-1","role":"user","data":{"a":1}}`},
	"GET T/chat/branches":                       {},
	"POST T/chat/branches":                      {body: `{"id":"b","name":"new","head":"s-1"}`},
	"PATCH T/chat/branches/{id}":                {body: `{"active":true,"head":"s-1"}`},
	"GET T/chat/checkpoints":                    {},
	"POST T/chat/checkpoints":                   {body: `{"name":"c","message":"s-1"}`},
	"GET T/chat/graph":                          {},
	"GET T/chat/search":                         {query: "q=secret"},
	"GET T/export":                              {query: "format=markdown"},
	"GET T/native":                              {others: 404},
	"POST T/resume":                             {body: `{"dry_run":true}`, others: 403},
	"POST /v1/contexts":                         {body: `{}`, others: 403},
	"POST /v1/batch":                            {body: `{"operations":[{"op":"append","thread":"{thread}","context":"main","messages":[{"text":"b"}]}]}`},
	"POST /v1/content":                          {body: "bytes", others: 403, upload: true},
	"GET /v1/content/{content}/uses":            {},
	"GET /v1/content/{content}/provenance":      {},
	"DELETE /v1/content/{content}":              {others: 403},
	"GET /v1/stats":                             {others: 403},
	"DELETE /v1/users/{user}":                   {},
	"GET /v1/search":                            {query: "q=secret", free: true},
	"GET /v1/usage":                             {query: "by=model", free: true},
	"POST /v1/import":                           {body: "{}", others: 403, upload: true},
	"GET /v1/bundle":                            {query: "thread={thread}", others: 403},
	"GET /v1/bundle/inventory":                  {others: 403},
	"POST /v1/bundle/against":                   {query: "thread={thread}", body: "{inventory}", others: 403, upload: true},
	"POST /v1/bundle":                           {body: "{bundle}", others: 403, upload: true},
	"GET C":                                     {},
	"PATCH C":                                   {body: `{"model":"m"}`},
	"DELETE C":                                  {},
	"GET C/messages":                            {query: "limit=1"},
	"POST C/messages":                           {body: `{"messages":[{"text":"more"}]}`},
	"POST C/files":                              {query: "name=f", body: "bytes", upload: true},
	"GET C/follow":                              {},
	"POST C/move":                               {body: `{"to":":1"}`},
	"POST C/undo":                               {},
	"GET C/moves":                               {},
	"GET C/resolved":                            {},
	"GET C/diff":                                {query: "with={other}"},
	"GET C/documents":                           {},
	"GET C/documents/{document}":                {},
	"GET C/documents/{document}/diff":           {query: "from=1"},
	"POST C/erase":                              {body: `{"at":"{message}"}`, others: 403},
	"POST C/merge":                              {body: `{"from":"{other}"}`},
	"POST C/edits":                              {body: `{"at":"{message}","message":{"text":"edited"},"branch":""}`},
	"POST C/return":                             {body: `{"message":{"text":"found"}}`},
	"POST C/send":                               {body: `{"to":"{other}"}`},
	"GET C/alternatives":                        {},
	"POST C/alternatives":                       {body: `{"count":1}`},
	"POST C/choose":                             {body: `{"alternative":"{alternative}"}`},
	"GET C/summaries":                           {},
	"POST C/summaries":                          {body: `{"text":"short"}`},
	"DELETE C/summaries/{summary}":              {},
	"GET V/values":                              {},
	"GET V/values/{key}":                        {},
	"GET V/values/{key}/history":                {},
	"PUT V/values/{key}":                        {body: `{"x":2}`},
	"DELETE V/values/{key}":                     {},
	"GET /v1/users/{user}/values":               {},
	"GET /v1/users/{user}/values/{key}":         {},
	"GET /v1/users/{user}/values/{key}/history": {},
	"PUT /v1/users/{user}/values/{key}":         {body: `1`},
	"DELETE /v1/users/{user}/values/{key}":      {},
	"GET W/values":                              {others: 403},
	"GET W/values/{key}":                        {others: 403},
	"GET W/values/{key}/history":                {others: 403},
	"PUT W/values/{key}":                        {body: `1`, others: 403},
	"DELETE W/values/{key}":                     {others: 403},
}

// rowOf returns the row of a route: the shortest name of its path.
func rowOf(pattern string) (request, bool) {
	for _, short := range []struct{ long, short string }{
		{"", ""}, {"/v1/threads/{thread}/contexts/{context}/values", "V/values"}, {"/v1/contexts/{context}/values", "V/values"},
		{"/v1/threads/{thread}/values", "V/values"}, {"/v1/applications/{application}/values", "W/values"}, {"/v1/store/values", "W/values"},
		{"/v1/threads/{thread}/contexts/{context}", "C"}, {"/v1/contexts/{context}", "C"}, {"/v1/threads/{thread}", "T"},
	} {
		name := pattern
		if short.long != "" {
			name = strings.Replace(pattern, short.long, short.short, 1)
		}
		if r, ok := requests[name]; ok {
			return r, true
		}
	}
	return request{}, false
}

// fixtureOptions are the options of an API with every route.
func fixtureOptions() Options {
	return Options{
		Search: func(_ context.Context, q SearchQuery) ([]*records.Hit, error) {
			if !q.Scope.All() && !slices.Contains(q.Scope.Users, "ada") {
				return nil, nil
			}
			return []*records.Hit{{ID: "x/1", Kind: "message", Threads: []records.HitThread{}}}, nil
		},
		SearchChat: func(context.Context, string, string, chat.SearchOptions) iter.Seq2[chat.SearchResult, error] {
			return func(yield func(chat.SearchResult, error) bool) {
				yield(chat.SearchResult{Message: chat.Message{ID: "s-1", Data: json.RawMessage(`"secret"`)}}, nil)
			}
		},
		Usage: func(context.Context, UsageQuery) ([]*records.Usage, error) {
			return []*records.Usage{{Total: true}}, nil
		},
		Import: func(context.Context, ImportQuery) (*records.Imported, error) {
			return &records.Imported{Formats: []string{}, Skipped: []records.SkippedItem{}, Repaired: []records.SkippedItem{}, Ignored: []string{}}, nil
		},
		Resume: func(context.Context, ResumeQuery) (*records.Resumed, error) {
			return &records.Resumed{Commands: [][]string{}}, nil
		},
	}
}

// fixture is a store with a thread of ada in which there is one of everything.
func fixture(t *testing.T) (*harness, *strings.Replacer) {
	h := open(t, func(o *Options) {
		store := o.Store
		*o = fixtureOptions()
		o.Store = store
	})
	thread := h.do("POST", "/v1/threads", `{"user":"ada","title":"Plans","id":"ada-1","metadata":{"archive_project":"x"}}`).is(201)["id"].(string)
	c := "/v1/threads/" + thread + "/contexts/main"
	added := h.do("POST", c+"/messages", `{"messages":[{"text":"secret","id":"s-1"},{"role":"assistant","text":"answer"},{"text":"thanks"}]}`).is(201)
	main := h.do("GET", c, nil).is(200)["id"].(string)
	h.do("POST", "/v1/threads/"+thread+"/branches", `{"name":"side","from":"main~1"}`).is(201)
	h.do("POST", "/v1/threads/"+thread+"/checkpoints", `{"name":"start","at":"main:1"}`).is(201)
	fork := h.do("POST", "/v1/threads/"+thread+"/contexts", `{"from":"main~1","subagent":true}`).is(201)["id"].(string)
	h.do("POST", "/v1/contexts/"+fork+"/messages", `{"messages":[{"document":"plan","text":"secret"},{"text":"found","role":"assistant"}]}`).is(201)
	h.do("POST", "/v1/contexts/"+fork+"/move", `{"to":"~1"}`).is(200)
	h.do("POST", "/v1/contexts/"+fork+"/undo", nil).is(200)
	offered := h.do("POST", "/v1/contexts/"+fork+"/alternatives", `{"count":1}`).is(201)["items"].([]any)[0].(map[string]any)["context"].(string)
	h.do("POST", "/v1/contexts/"+offered+"/messages", `{"messages":[{"text":"instead","role":"assistant"}]}`).is(201)
	summary := h.do("POST", "/v1/contexts/"+fork+"/summaries", `{"text":"short","first":1,"last":2}`).is(201)["id"].(string)
	for _, of := range []string{c, "/v1/contexts/" + fork, "/v1/threads/" + thread, "/v1/users/ada", "/v1/applications/app", "/v1/store"} {
		h.do("PUT", of+"/values/k", `{"secret":1}`).is(200)
	}
	content := h.do("GET", c+"/messages", nil).items()[0]["content_id"].(string)
	message := added["ids"].([]any)[0].(string)
	require.NotEmpty(t, main)
	return h, strings.NewReplacer("{thread}", thread, "{context}", fork, "{branch}", "side", "{checkpoint}", "start", "{summary}", summary, "{key}", "k",
		"{content}", content, "{document}", "plan", "{bundle}", emptyBundle(), "{inventory}", emptyInventory(), "{user}", "ada", "{application}", "app", "{message}", message, "{other}", main, "{id}", main, "{alternative}", offered)
}

// emptyInventory returns the inventory of an empty store.
var emptyInventory = sync.OnceValue(func() string {
	var b strings.Builder
	if _, err := bundle.NewInventory().WriteTo(&b); err != nil {
		panic(err)
	}
	return b.String()
})

// emptyBundle returns the bundle of an empty store.
var emptyBundle = sync.OnceValue(func() string {
	ctx := context.Background()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	var b strings.Builder
	if err == nil {
		_, err = bundle.Write(ctx, store, &b, bundle.WriteOptions{})
		err = errors.Join(err, store.Close())
	}
	if err != nil {
		panic(err)
	}
	return b.String()
})

// TestScopes calls every route as somebody who may use the whole store, as the user of the thread, as another user, for a
// project that it is not of, and with a token for reading. Others do not learn whether the thread is there.
func TestScopes(t *testing.T) {
	var patterns []string
	for _, r := range New(fixtureOptions()).routes {
		if r.serve != nil {
			patterns = append(patterns, r.pattern)
		}
	}
	for _, pattern := range patterns {
		row, ok := rowOf(pattern)
		if !ok {
			t.Errorf("%s: the table of the test has no row for it", pattern)
			continue
		}
		if strings.HasSuffix(pattern, "/follow") {
			continue // TestFollow
		}
		t.Run(strings.ReplaceAll(pattern, "/", "|"), func(t *testing.T) { testScope(t, pattern, row) })
	}
}

func testScope(t *testing.T, pattern string, row request) {
	h, names := fixture(t)
	method, template, _ := strings.Cut(pattern, " ")
	for _, who := range []string{"bob", "proj", "reads", "ada", ""} { // those who may not change anything come first
		if who == "" && method != http.MethodGet {
			h, names = fixture(t)
		}
		path := names.Replace(template)
		if row.query != "" {
			path += "?" + names.Replace(row.query)
		}
		var body any
		if row.body != "" {
			body = names.Replace(row.body)
		}
		before, err := h.store.View().Head(t.Context())
		require.NoError(t, err)
		a := h.do(method, path, body, "Caller: "+who)
		after, err := h.store.View().Head(t.Context())
		require.NoError(t, err)
		said := fmt.Sprintf("%s %s as %q: %d %s", method, path, who, a.Status, a.Body)
		whole := row.others == http.StatusForbidden
		writes := method != "GET" && pattern != "POST /v1/bundle/against"
		switch {
		case pattern == "GET /v1/threads/{thread}/native": // the thread is not of a file
			require.Equal(t, 404, a.Status, said)
		case who == "reads" && writes:
			require.Equal(t, 403, a.Status, said)
		case who == "" || who == "reads" || who == "ada" && !whole:
			require.Less(t, a.Status, 300, said)
		case whole:
			require.Equal(t, 403, a.Status, said)
		case row.free:
			require.NotContains(t, string(a.Body), "secret", said)
			require.NotContains(t, string(a.Body), names.Replace("{thread}"), said)
		default:
			require.Equal(t, 404, a.Status, said)
			const none = "00000000-0000-7000-8000-000000000000"
			elsewhere := strings.NewReplacer(names.Replace("{thread}"), none, names.Replace("{context}"), none,
				names.Replace("{content}"), strings.Repeat("0", 64), "users/ada", "users/nobody")
			if text, ok := body.(string); ok {
				body = elsewhere.Replace(text)
			}
			nowhere := h.do(method, elsewhere.Replace(path), body, "Caller: "+who)
			require.Equal(t, string(nowhere.Body), string(a.Body), "it cannot be told whether it is there: %s", said)
		}
		if a.Status >= 300 || !writes {
			require.Equal(t, before, after, said)
		}
	}
}

// TestOpenAPIIsCurrent compares the document with the one in the repository.
func TestOpenAPIIsCurrent(t *testing.T) {
	got := New(fixtureOptions()).openAPI()
	file := filepath.Join("testdata", "openapi.json")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(file, got, 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "LINEAGE_UPDATE_GOLDEN=1 rewrites it")
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(got, &document))
	require.Greater(t, len(slices.Collect(maps.Keys(document.Paths))), 50)
}
