package mcp

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// secret is in everything that only the other project has.
const secret = "xylophone"

// wall is a store with two projects. Ours may not read theirs.
type wall struct {
	*bench
	ours, theirs    *lineage.Thread
	foreign         []lineage.SpanRef
	other           *lineage.Context
	fork            *lineage.Context // of theirs
	contents        []lineage.ContentID
	ownSpans        []lineage.SpanRef
	sharedContentID lineage.ContentID
}

func newWall(t *testing.T, user string) *wall {
	b := newBench(t)
	ctx := t.Context()
	w := &wall{bench: b}
	// Both have a message with the same text, and with the same id.
	var main *lineage.Context
	w.ours, main, w.ownSpans = b.thread("ours", "/src/a", "ada", lineage.User("said in both").WithID("m1"), answered("ours is ready", "msg_1"))
	w.theirs, w.other, w.foreign = b.thread(secret, "/src/b", user, lineage.User("said in both").WithID("m1"), answered(secret+" one", "msg_"+secret),
		lineage.User(secret+" two").WithID("id-"+secret), lineage.Item{Kind: lineage.Document, Document: secret + ".md", Body: []byte(secret + " document")},
		lineage.User(secret+" rewound"))
	require.NoError(t, w.other.MoveTo(ctx, w.foreign[3], "rewind"))
	_, err := w.theirs.SetCheckpoint(ctx, "point-"+secret, lineage.CheckpointOptions{At: w.foreign[1]})
	require.NoError(t, err)
	w.fork, err = w.theirs.CreateBranch(ctx, "branch-"+secret, lineage.BranchOptions{From: w.other, At: w.foreign[1]})
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("the last of ours"))
	require.NoError(t, err)
	for _, ref := range w.foreign {
		entries, err := b.store.Span(ctx, ref)
		require.NoError(t, err)
		w.contents = append(w.contents, entries[0].Content)
	}
	w.sharedContentID = w.contents[0]
	return w
}

// names are the names of everything that only theirs has, in every form.
func (w *wall) names() []string {
	names := []string{
		"source-" + secret, "Title of " + secret, "title OF " + secret, w.theirs.ID().String(), short(w.theirs), w.theirs.ID().String()[:18],
		"point-" + secret, "branch-" + secret, "id-" + secret, "id-" + secret + "~1",
		w.other.ID().String(), refs.Short(w.other.ID()), w.other.ID().String() + "@{-1}", refs.Short(w.other.ID()) + "~1", refs.Short(w.other.ID()) + ":1",
		w.fork.ID().String(), refs.Short(w.fork.ID()),
		"source-" + secret + "/main", "source-" + secret + "/point-" + secret, "Title of " + secret + "/main", short(w.theirs) + "/branch-" + secret, short(w.theirs) + "/main~1",
	}
	for _, ref := range w.foreign {
		run := ref.Run.String()
		names = append(names, ref.String(), refs.ShortSpan(ref), run[len(run)-6:]+ref.String()[len(run):], ref.String()+".0", ref.String()+"~1", w.theirs.ID().String()+"/"+ref.String())
	}
	return names
}

// TestProjectIsAWall asks by every tool, resource, completion and prompt for what another project has.
//
//test:norace
func TestProjectIsAWall(t *testing.T) {
	for name, c := range map[string]struct {
		user  string
		scope access.Scope
	}{
		"project":           {"ada", access.Scope{Projects: []string{"/src/a"}}},
		"several projects":  {"ada", access.Scope{Projects: []string{"/src/a", "/src/c"}}},
		"user":              {"bob", access.Scope{Users: []string{"ada"}}},
		"user and projects": {"ada", access.Scope{Users: []string{"ada", "eve"}, Projects: []string{"/src/a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWall(t, c.user)
			w.attack(t, c.scope)
		})
	}
}

// attack has a limited and an unlimited client ask for the same.
func (w *wall) attack(t *testing.T, scope access.Scope) {
	everything := w.connect(Client{Scope: Everything, Writes: WriteTools()}, nil)
	limited := w.connect(Client{Scope: fixed(scope), Writes: WriteTools()}, nil)
	before, err := w.store.View().Head(t.Context())
	require.NoError(t, err)
	w.attackNames(t, limited)
	w.findNames(t, everything)
	w.attackContents(t, limited, everything)
	w.attackLists(t, limited, everything)
	w.attackUsage(t, limited, everything, scope)
	w.attackListed(t, limited)
	after, err := w.store.View().Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing was changed")
}

// leaks reports whether an answer has something of the other project. What is asked for may be repeated in an answer; what is
// not may not.
func (w *wall) leaks(answer, asked string) bool {
	answer, asked = strings.ToLower(answer), strings.ToLower(asked)
	for _, step := range []string{"\x00", "~", ":", "@", "/", "."} { // a name is repeated without its steps
		if part, _, _ := strings.Cut(asked, step); part != "" {
			answer = strings.ReplaceAll(answer, part, "")
		}
	}
	return strings.Contains(answer, secret) || strings.Contains(answer, "/src/b") ||
		!strings.Contains(asked, short(w.theirs)) && strings.Contains(answer, short(w.theirs))
}

// attackNames asks for what has a name, by every name.
func (w *wall) attackNames(t *testing.T, limited *client) {
	ctx := t.Context()
	tried := 0
	for _, name := range w.names() {
		for _, call := range []struct {
			tool string
			args map[string]any
		}{
			{"read", map[string]any{"at": name}},
			{"read", map[string]any{"thread": name}},
			{"read", map[string]any{"at": name, "offset": 0}},
			{"read", map[string]any{"thread": short(w.ours), "at": name}},
			{"tree", map[string]any{"thread": name}},
			{"where", map[string]any{"content": name}},
			{"where", map[string]any{"thread": name, "content": ":1"}},
			{"diff", map[string]any{"a": name}},
			{"diff", map[string]any{"a": "@", "b": name}},
			{"search", map[string]any{"query": "said", "thread": name}},
			{"usage", map[string]any{"thread": name}},
			{"fork", map[string]any{"at": name}},
			{"fork", map[string]any{"thread": name}},
			{"fork", map[string]any{"at": name, "branch": "mine"}},
			{"append", map[string]any{"to": name, "role": "user", "text": "x"}},
			{"append", map[string]any{"thread": name, "role": "user", "text": "x"}},
			{"append", map[string]any{"role": "user", "text": "x", "after": name}},
			{"checkpoint", map[string]any{"name": "mine", "at": name}},
			{"checkpoint", map[string]any{"thread": name, "name": "mine"}},
			{"return", map[string]any{"context": name}},
			{"return", map[string]any{"context": name, "text": "x"}},
		} {
			r := limited.call(call.tool, call.args)
			require.True(t, r.Failed, "%s %v: %s", call.tool, call.args, r.all)
			require.False(t, w.leaks(r.all, name), "%s %v: %s", call.tool, call.args, r.all)
			tried++
		}
		for _, uri := range []string{uriPrefix + escape(name), uriPrefix + short(w.ours) + "/at/" + escape(name), uriPrefix + escape(name) + "/document/" + secret + ".md"} {
			_, err := limited.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
			require.Error(t, err, uri)
			require.False(t, w.leaks(err.Error(), escape(name)) && w.leaks(err.Error(), uri), "%s: %v", uri, err)
		}
		for prompt, argument := range map[string]string{"continue_from": "position", "compare": "a"} {
			_, err := limited.GetPrompt(ctx, &sdk.GetPromptParams{Name: prompt, Arguments: map[string]string{argument: name}})
			require.Error(t, err)
			require.False(t, w.leaks(err.Error(), name), "%s: %v", prompt, err)
			_, err = limited.GetPrompt(ctx, &sdk.GetPromptParams{Name: prompt, Arguments: map[string]string{"thread": name, "a": "@"}})
			require.Error(t, err)
		}
		for _, argument := range []string{"position", "name"} {
			template := map[string]string{"position": positionTemplate, "name": documentTemplate}[argument]
			r, err := limited.Complete(ctx, &sdk.CompleteParams{
				Ref: &sdk.CompleteReference{Type: "ref/resource", URI: template}, Argument: sdk.CompleteParamsArgument{Name: argument},
				Context: &sdk.CompleteContext{Arguments: map[string]string{"thread": name}},
			})
			require.Error(t, err, "%v", r)
			require.False(t, w.leaks(err.Error(), name))
		}
	}
	require.Greater(t, tried, 500)
}

// findNames requires that the names are those of something: who may read everything finds most of them.
func (w *wall) findNames(t *testing.T, everything *client) {
	found := 0
	for _, name := range w.names() {
		if !everything.call("read", map[string]any{"thread": w.theirs.ID().String(), "at": name}).Failed {
			found++
		}
	}
	require.Greater(t, found, len(w.names())*3/4)
}

// attackContents asks for messages by their content.
func (w *wall) attackContents(t *testing.T, limited, everything *client) {
	for i, id := range w.contents {
		for _, asked := range []string{id.String(), id.String()[:10]} {
			r := limited.call("where", map[string]any{"content": asked})
			if i == 0 { // it is in ours too
				require.Len(t, r.Records, 1, r.all)
				require.Equal(t, w.ownSpans[0].String(), r.Records[0]["id"])
				require.Len(t, everything.ok("where", map[string]any{"content": asked}).Records, 2)
			} else {
				require.True(t, r.Failed, r.all)
			}
			require.False(t, w.leaks(r.all, asked), r.all)
		}
	}
}

// attackLists asks for what is found by words, and for what is listed.
func (w *wall) attackLists(t *testing.T, limited, everything *client) {
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"search", map[string]any{"query": secret}},
		{"search", map[string]any{"query": "said OR " + secret + "*"}},
		{"search", map[string]any{"query": "said"}},
		{"threads", nil}, {"threads", map[string]any{"title": "Title"}}, {"threads", map[string]any{"agent": "codex", "limit": 1}},
		{"read", nil}, {"tree", nil}, {"diff", map[string]any{"a": ":1"}},
		{"read", map[string]any{"at": "Title of " + secret[:3]}},
	} {
		r := limited.call(c.tool, c.args)
		asked, _ := c.args["query"].(string)
		require.False(t, w.leaks(r.all, asked), "%s %v: %s", c.tool, c.args, r.all)
	}
	for tool, args := range map[string]map[string]any{"search": {"query": secret}, "threads": nil, "read": {"thread": short(w.theirs)}, "tree": {"thread": short(w.theirs)}} {
		require.True(t, w.leaks(everything.ok(tool, args).all, ""), tool)
	}
	require.Len(t, limited.ok("search", map[string]any{"query": "said"}).Records, 1)
	require.Empty(t, limited.ok("search", map[string]any{"query": secret}).Records)
	require.Len(t, limited.ok("threads", nil).Records, 1)
	require.Len(t, everything.ok("threads", nil).Records, 2)
}

// attackUsage asks for sums.
func (w *wall) attackUsage(t *testing.T, limited, everything *client, scope access.Scope) {
	for _, by := range [][]string{nil, {"day"}, {"model"}, {"project"}, {"thread"}, {"branch"}, {"user"}, {"agent"}} {
		args := map[string]any{}
		if by != nil {
			args["by"] = by
		}
		r := limited.call("usage", args)
		require.False(t, w.leaks(r.all, ""), r.all)
		if r.Failed { // for some users only
			require.NotEmpty(t, scope.Users)
			continue
		}
		require.EqualValues(t, 1, r.Records[0]["requests"], "the total is that of ours: %s", r.all)
		require.EqualValues(t, 2, everything.ok("usage", args).Records[0]["requests"])
	}
}

// attackListed asks for the resources, and for completions of their names.
func (w *wall) attackListed(t *testing.T, limited *client) {
	ctx := t.Context()
	listed, err := limited.ListResources(ctx, nil)
	require.NoError(t, err)
	require.Len(t, listed.Resources, 1)
	require.Equal(t, uriPrefix+w.ours.ID().String(), listed.Resources[0].URI)
	for _, text := range []string{"", "title of " + secret, short(w.theirs)[:4], short(w.theirs)} {
		r, err := limited.Complete(ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: historyTemplate}, Argument: sdk.CompleteParamsArgument{Name: "thread", Value: text}})
		require.NoError(t, err)
		require.NotContains(t, r.Completion.Values, short(w.theirs))
	}
}

// TestForkedHistoryIsRead reads what a conversation in scope has of another project's history: no message after the fork.
func TestForkedHistoryIsRead(t *testing.T) {
	w := newWall(t, "ada")
	_, err := w.ours.CreateBranch(t.Context(), "taken", lineage.BranchOptions{From: w.other, At: w.foreign[1]})
	require.NoError(t, err)
	limited := w.connect(Client{Scope: fixed(access.Scope{Projects: []string{"/src/a"}}), Writes: WriteTools()}, nil)
	r := limited.ok("read", map[string]any{"at": "taken"})
	require.Contains(t, r.Text, secret+" one")
	require.NotContains(t, r.all, secret+" two")
	limited.ok("read", map[string]any{"at": w.foreign[1].String()})
	limited.fails("read", map[string]any{"at": w.foreign[2].String()}, "not found")
	require.Len(t, limited.ok("search", map[string]any{"query": secret}).Records, 1)
	uses := limited.ok("where", map[string]any{"content": w.contents[1].String()})
	require.Len(t, uses.Records, 1)

	// A subagent in ours whose parent is in theirs does not return there.
	agent, err := w.other.Fork(t.Context(), lineage.ForkOptions{At: w.foreign[1], Thread: w.ours.ID()})
	require.NoError(t, err)
	limited.fails("return", map[string]any{"context": agent.ID().String(), "text": "x"}, "not found")
	everything := w.connect(Client{Scope: Everything, Writes: WriteTools()}, nil)
	everything.ok("return", map[string]any{"context": agent.ID().String(), "text": "x"})
}

// TestWriteTools offers only the tools that were named.
func TestWriteTools(t *testing.T) {
	b := newBench(t)
	b.thread("ours", "/src/a", "ada", lineage.User("hello"))
	names := func(c *client) (names []string) {
		for tool, err := range c.Tools(t.Context(), nil) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		return names
	}
	reading := []string{"diff", "read", "search", "threads", "tree", "usage", "where"}
	require.Equal(t, reading, names(b.connect(Client{Scope: Everything}, nil)))
	some := b.connect(Client{Scope: Everything, Writes: []string{"fork"}}, nil)
	require.ElementsMatch(t, append([]string{"fork"}, reading...), names(some))
	_, err := some.CallTool(t.Context(), &sdk.CallToolParams{Name: "append", Arguments: map[string]any{"role": "user", "text": "x"}})
	require.Error(t, err)
	require.ErrorIs(t, CheckWrites([]string{"fork", "delete"}), lineage.ErrInvalid)
	require.NoError(t, CheckWrites(WriteTools()))
	for _, name := range WriteTools() {
		require.False(t, slices.Contains(reading, name))
	}
}

func escape(name string) string { return url.PathEscape(name) }

// TestOwnIDs has two users whose callers chose the same id for a thread, beside one of somebody with the whole store. Each finds
// the own one by it, and sees it as it was chosen.
func TestOwnIDs(t *testing.T) {
	b := newBench(t)
	made := make(map[string]*lineage.Thread)
	for _, user := range []string{"", "ada", "bob"} {
		id := "same"
		if user != "" {
			scope := access.Scope{Users: []string{user}}
			id = scope.Names(id)[0]
		}
		thread, err := b.store.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: id, UserID: user})
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		_, err = main.Extend(t.Context(), lineage.User("lisbon of "+user))
		require.NoError(t, err)
		made[user] = thread
	}
	for user, thread := range made {
		scope := access.Scope{}
		if user != "" {
			scope.Users = []string{user}
		}
		c := b.connect(Client{Scope: fixed(scope)}, nil)
		require.Equal(t, "lisbon of "+user, c.ok("read", map[string]any{"thread": "same"}).Records[0]["text"], user)
		found := c.ok("search", map[string]any{"query": "lisbon"})
		listed := c.ok("threads", nil)
		if user == "" {
			require.Len(t, found.Records, 3)
			continue
		}
		require.Len(t, found.Records, 1)
		require.Equal(t, []any{map[string]any{"id": thread.ID().String(), "source_id": "same"}}, found.Records[0]["threads"])
		require.Len(t, listed.Records, 1)
		require.Equal(t, "same", listed.Records[0]["source_id"])
		require.NotContains(t, found.all+listed.all, "scope:")
	}
}

// An empty answer says where was looked, so that it is not taken for the whole store.
func TestAnswersNameTheScope(t *testing.T) {
	w := newWall(t, "ada")
	for said, scope := range map[string]access.Scope{
		`in the project \"/src/none\"`:                       {Projects: []string{"/src/none"}},
		`in the projects \"/src/none\", \"/src/nil\"`:        {Projects: []string{"/src/none", "/src/nil"}},
		`in the conversations of the user \"nobody\"`:        {Users: []string{"nobody"}},
		`in the conversations of the users \"no\", \"none\"`: {Users: []string{"no", "none"}},
	} {
		c := w.connect(Client{Scope: fixed(scope)}, nil)
		require.Contains(t, c.call("search", map[string]any{"query": "said"}).all, "0 results "+said+".")
		require.Contains(t, c.call("threads", nil).all, "0 conversations "+said+",")
	}
}
