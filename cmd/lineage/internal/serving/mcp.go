package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/awaited"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/mcp"
)

type mcpOptions struct {
	all   bool
	write []string
}

// MCPCommand answers an agent.
func MCPCommand(a *app.App) *cobra.Command {
	o := &mcpOptions{}
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent search and read conversations (MCP)",
		Long: `Answers an agent by the Model Context Protocol on standard input and output: it can search, read,
list and compare conversations, see their trees, and what they cost. An agent starts this itself:
'lineage mcp install' says how it is told to.

An agent reads the conversations of the project that it works in only: of sessions that began in one
of the folders that it names as its roots or, if it names none, in the working directory. --all is for
the whole store. Text of a conversation can be an attack on the agent that reads it: with --all, text
of one project can lead it to others.

Nothing is changed, unless --write names tools: ` + strings.Join(mcp.WriteTools(), ", ") + `.`,
		Example: `  lineage mcp < /dev/null
  lineage mcp --write fork,append < /dev/null`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(ctx context.Context, _ []string) error { return runMCP(ctx, a, o) }),
	}
	f := c.Flags()
	f.BoolVar(&o.all, "all", false, "read the conversations of all projects")
	f.StringSliceVar(&o.write, "write", nil, "offer these tools that change the store: "+strings.Join(mcp.WriteTools(), ", "))
	c.AddCommand(mcpInstallCommand(a))
	return c
}

func runMCP(ctx context.Context, a *app.App, o *mcpOptions) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	mode := app.Reading | app.NoThread
	if len(o.write) > 0 {
		mode = app.Changing | app.NoThread
	}
	return a.Open(ctx, mode, func(ctx context.Context, s *app.OpenStore) (err error) {
		indexes := &sharedIndexes{store: s.Store, dir: s.Dir}
		defer func() { err = errors.Join(err, indexes.close()) }()
		logger := logline.New(slog.LevelWarn, func(line string) { s.Warn("%s", line) })
		return mcpService(s, indexes, logger).Run(ctx, *client, io.NopCloser(awaited.NewReader(ctx, a.Stdin)), nopWriteCloser{a.Raw(), a.Flush})
	})
}

// client returns the rights of the client on standard input and output.
func (o *mcpOptions) client() (*mcp.Client, error) {
	if err := mcp.CheckWrites(o.write); err != nil {
		return nil, app.Usagef("--write: %w", err)
	}
	if o.all {
		return &mcp.Client{Scope: mcp.Everything, Writes: o.write}, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, app.Hint(fmt.Errorf("working directory: %w", err), "--all reads the conversations of all projects")
	}
	return &mcp.Client{Scope: mcp.Project(dir), Writes: o.write}, nil
}

// nopWriteCloser writes to standard output, each message at once.
type nopWriteCloser struct {
	io.Writer
	flush func() error
}

func (w nopWriteCloser) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	return n, errors.Join(err, w.flush())
}

func (nopWriteCloser) Close() error { return nil }

// mcpService returns the service of the store.
func mcpService(s *app.OpenStore, indexes *sharedIndexes, logger *slog.Logger) *mcp.Service {
	build, _ := debug.ReadBuildInfo()
	return mcp.New(mcp.Options{Store: s.Store, Version: app.NewVersion(build).Version, Logger: logger, Search: indexes.find, Usage: indexes.report})
}

// mcpRoute returns the route for agents.
func mcpRoute(s *app.OpenStore, logger *slog.Logger, indexes *sharedIndexes, write []string) server.Route {
	return server.Route{Pattern: "/mcp", Scoped: true, BodySize: mcp.MaxRequest, Handler: mcpService(s, indexes, logger).Handler(write)}
}

// find is mcp.Options.Search.
func (p *sharedIndexes) find(ctx context.Context, q mcp.SearchQuery) (hits []mcp.Hit, err error) {
	query := search.Query{Text: q.Text, Thread: q.Thread, Among: q.Among, Roles: q.Roles, Limit: q.Limit}
	found, err := p.searchTexts(ctx, query, q.Behind)
	for i := range found {
		h := &found[i]
		hits = append(hits, mcp.Hit{Entry: h.Entry, Role: h.Role, Summary: h.Summary, SummarizedAt: h.SummarizedAt, Text: h.Text, Threads: h.Threads, Rank: h.Rank, Snippet: h.Snippet})
	}
	return hits, err
}

// report is mcp.Options.Usage.
func (p *sharedIndexes) report(ctx context.Context, q mcp.UsageQuery) (rows []*records.Usage, total *records.Usage, err error) {
	index, err := p.openCosts(ctx)
	if err != nil {
		return nil, nil, err
	}
	var by []usage.By
	for _, name := range q.By {
		by = append(by, usage.By(name))
	}
	report, err := index.Report(ctx, usage.Query{By: by, Since: q.Since, Until: q.Until, Thread: q.Thread, Users: q.Users, Projects: q.Projects})
	if err != nil {
		return nil, nil, err
	}
	return report.Records(by), report.TotalRecord(), nil
}
