package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a store with a service.
type bench struct {
	t       testing.TB
	store   *lineage.Store
	service *Service
}

func newBench(t testing.TB) *bench {
	t.Helper()
	store := lineagetest.New(t, lineage.Options{})
	return &bench{t: t, store: store, service: serve(t, store)}
}

// serve returns a service of a store, with search and usage.
func serve(t testing.TB, store *lineage.Store) *Service {
	texts, err := search.Open(t.Context(), store, t.TempDir(), search.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, texts.Close()) })
	costs, err := usage.Open(t.Context(), store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, costs.Close()) })
	return New(Options{
		Store: store,
		Search: func(ctx context.Context, q SearchQuery) (hits []Hit, err error) {
			found, err := texts.Search(ctx, search.Query{Text: q.Text, Thread: q.Thread, Among: q.Among, Roles: q.Roles, Limit: q.Limit})
			for _, h := range found {
				hits = append(hits, Hit{Entry: h.Entry, Role: h.Role, Summary: h.Summary, SummarizedAt: h.SummarizedAt, Text: h.Text, Threads: h.Threads, Rank: h.Rank, Snippet: h.Snippet})
			}
			return hits, err
		},
		Usage: func(ctx context.Context, q UsageQuery) ([]*records.Usage, *records.Usage, error) {
			var by []usage.By
			for _, name := range q.By {
				by = append(by, usage.By(name))
			}
			report, err := costs.Report(ctx, usage.Query{By: by, Since: q.Since, Until: q.Until, Thread: q.Thread, Users: q.Users, Projects: q.Projects})
			if err != nil {
				return nil, nil, err
			}
			return report.Records(by), report.TotalRecord(), nil
		},
	})
}

// fixed is the scope of a client that has the same one for every call.
func fixed(scope access.Scope) func(context.Context, *sdk.ServerSession) (access.Scope, error) {
	return func(context.Context, *sdk.ServerSession) (access.Scope, error) { return scope, nil }
}

// thread creates a thread of a project and user.
func (b *bench) thread(name, project, user string, items ...lineage.Item) (*lineage.Thread, *lineage.Context, []lineage.SpanRef) {
	b.t.Helper()
	metadata, err := json.Marshal(map[string]string{"cwd": project, "agent": "codex"})
	require.NoError(b.t, err)
	if project == "" {
		metadata = nil
	}
	t, err := b.store.CreateThread(b.t.Context(), lineage.ThreadOptions{SourceID: "source-" + name, Title: "Title of " + name, UserID: user, Metadata: metadata})
	require.NoError(b.t, err)
	main, err := t.Active(b.t.Context())
	require.NoError(b.t, err)
	spans, err := main.Extend(b.t.Context(), items...)
	require.NoError(b.t, err)
	return t, main, spans
}

// client is a connected client.
type client struct {
	t testing.TB
	*sdk.ClientSession
}

// connect connects a client of a kind.
func (b *bench) connect(caller Client, options *sdk.ClientOptions) *client {
	b.t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	server, err := b.service.Server(caller).Connect(b.t.Context(), ours, nil)
	require.NoError(b.t, err)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options).Connect(b.t.Context(), theirs, nil)
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		_ = c.Close()
		_ = server.Wait()
	})
	return &client{b.t, c}
}

// reply is what a tool answered.
type reply struct {
	Text    string
	Failed  bool
	Records []map[string]any
	Next    map[string]any
	all     string
}

// call calls a tool.
func (c *client) call(tool string, args map[string]any) *reply {
	c.t.Helper()
	result, err := c.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(c.t, err)
	r := &reply{Failed: result.IsError}
	for _, content := range result.Content {
		r.Text += content.(*sdk.TextContent).Text
	}
	b, err := json.Marshal(result)
	require.NoError(c.t, err)
	r.all = string(b)
	if result.StructuredContent != nil {
		b, err := json.Marshal(result.StructuredContent)
		require.NoError(c.t, err)
		require.NoError(c.t, json.Unmarshal(b, r))
	}
	return r
}

// ok calls a tool that is to succeed.
func (c *client) ok(tool string, args map[string]any) *reply {
	c.t.Helper()
	r := c.call(tool, args)
	require.False(c.t, r.Failed, "%s %v: %s", tool, args, r.Text)
	return r
}

// fails calls a tool that is to fail, with a text in the error.
func (c *client) fails(tool string, args map[string]any, text string) {
	c.t.Helper()
	r := c.call(tool, args)
	require.True(c.t, r.Failed, "%s %v: %s", tool, args, r.Text)
	require.Contains(c.t, r.Text, text, "%s %v", tool, args)
}

// answered is a message of a model that states what it cost.
func answered(text, id string) lineage.Item {
	body := fmt.Sprintf(`{"type":"message","id":%q,"role":"assistant","model":"claude-opus-4-1","content":[{"type":"text","text":%q}],"usage":{"input_tokens":10,"output_tokens":7}}`, id, text)
	item := lineage.Assistant("")
	item.Body, item.Type = []byte(body), "application/json"
	return item
}

func short(r *lineage.Thread) string { return strings.ToLower(r.ID().Short()) }
