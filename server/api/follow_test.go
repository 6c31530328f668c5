package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
)

// event is an event of a stream.
type event struct{ Name, ID, Data string }

// following opens a stream, whose events it returns one by one. Without any more, next returns false.
func (h *harness) following(path string, headers ...string) (next func() (event, bool), end func()) {
	h.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mux.ServeHTTP(w, r.WithContext(access.With(r.Context(), h.callers[r.Header.Get("Caller")])))
	}))
	ctx, cancel := context.WithCancel(h.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	require.NoError(h, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	a, err := server.Client().Do(r)
	require.NoError(h, err)
	require.Equal(h, 200, a.StatusCode)
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	next = func() (event, bool) {
		var e event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.Name = value
			case "id":
				e.ID = value
			case "data":
				e.Data = value
			case "":
				if e.Name != "" {
					return e, true
				}
				e = event{}
			}
		}
		return e, false
	}
	return next, func() {
		cancel()
		a.Body.Close()
		server.CloseClientConnections()
		server.Close()
	}
}

// TestFollow follows a history over moves, and continues where a stream broke: nothing is missing and nothing twice.
func TestFollow(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	h := openOf(t, store)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const c = "/v1/threads/=t/contexts/main"
	add := func(texts ...string) {
		var all []map[string]string
		for _, text := range texts {
			all = append(all, map[string]string{"text": text})
		}
		h.do("POST", c+"/messages", map[string]any{"messages": all, "together": len(texts) > 1}).is(201)
	}
	add("a")
	next, end := h.following(c + "/follow?after=empty")
	texts := func(e event) (all []string) {
		var messages []map[string]any
		require.NoError(t, json.Unmarshal([]byte(e.Data), &messages), e.Data)
		for _, m := range messages {
			all = append(all, m["text"].(string))
		}
		return all
	}
	e, ok := next()
	require.True(t, ok)
	require.Equal(t, []string{"a"}, texts(e))
	add("b", "c")
	e, ok = next()
	require.True(t, ok)
	require.Equal(t, []string{"b", "c"}, texts(e), "a step is one event")
	end()
	add("d")

	// Another server of the store goes on from there.
	h = openOf(t, store)
	next, end = h.following(c+"/follow", "Last-Event-ID: "+e.ID)
	defer end()
	e, ok = next()
	require.True(t, ok)
	require.Equal(t, []string{"d"}, texts(e))
	h.do("POST", c+"/move", `{"to":":1"}`).is(200)
	e, ok = next()
	require.True(t, ok)
	require.Equal(t, "moved", e.Name)
	add("e")
	e, ok = next()
	require.True(t, ok)
	require.Equal(t, []string{"e"}, texts(e))
	h.do("DELETE", "/v1/threads/=t", nil).is(204)
	e, ok = next()
	require.True(t, ok)
	require.Equal(t, "deleted", e.Name)
	_, ok = next()
	require.False(t, ok, "the stream ends")
}

// A stream of a branch ends with the branch, even if another user's has its id then.
func TestFollowEndsWithItsBranch(t *testing.T) {
	h := open(t)
	thread := func(user string) *lineage.Thread {
		made, err := h.store.CreateThread(t.Context(), lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		return made
	}
	branch := func(in *lineage.Thread, text string) {
		made, err := in.CreateBranch(t.Context(), "one", lineage.BranchOptions{Empty: true, SourceID: "one"})
		require.NoError(t, err)
		_, err = made.Extend(t.Context(), lineage.User(text))
		require.NoError(t, err)
	}
	ada, bob := thread("ada"), thread("bob")
	for range 20 { // the stream may look before or after the other branch is made
		branch(ada, "of ada")
		next, end := h.following("/v1/threads/"+ada.ID().String()+"/contexts/one/follow?after=empty", "Caller: ada")
		e, ok := next()
		require.True(t, ok)
		require.Contains(t, e.Data, "of ada")
		require.NoError(t, ada.DeleteBranch(t.Context(), "one"))
		branch(bob, "of bob")
		e, ok = next()
		require.True(t, ok)
		require.Equal(t, event{Name: "deleted", Data: "{}"}, e)
		end()
		require.NoError(t, bob.DeleteBranch(t.Context(), "one"))
	}
}
