package serving

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
	"github.com/lineage-store/lineage/server/mcp"
	"github.com/lineage-store/lineage/server/mcp/install"
)

type mcpInstallOptions struct {
	write, all bool
	tools      []string
}

func mcpInstallCommand(a *app.App) *cobra.Command {
	o := &mcpInstallOptions{}
	c := &cobra.Command{
		Use:   "install AGENT",
		Short: "Tell a coding agent to start 'lineage mcp'",
		Long: `Prints the entry that makes a coding agent start 'lineage mcp' with this store, and the file that it
belongs into; --write adds it to that file. Everything else in the file stays as it is, comments
included. A file that cannot be read is not changed, and neither is an entry of the same name that
says something else. For Claude Code it prints the command that adds the entry.

Agents are named as 'lineage follow' names them: claude-code, codex, opencode, copilot, vscode, qwen,
gemini.`,
		Example: `  lineage mcp install gemini
  lineage mcp install claude-code --tools fork,append`,
		Args: cobra.ExactArgs(1),
		RunE: a.Does(func(_ context.Context, args []string) error { return runMCPInstall(a, o, args[0]) }),
	}
	f := c.Flags()
	f.BoolVar(&o.write, "write", false, "add the entry to the agent's file")
	f.BoolVar(&o.all, "all", false, "let the agent read the conversations of all projects")
	f.StringSliceVar(&o.tools, "tools", nil, "offer these tools that change the store: "+strings.Join(mcp.WriteTools(), ", "))
	return c
}

func runMCPInstall(a *app.App, o *mcpInstallOptions, agent string) error {
	if err := mcp.CheckWrites(o.tools); err != nil {
		return app.Usagef("--tools: %w", err)
	}
	started, err := o.server(a)
	if err != nil {
		return err
	}
	environment, err := a.Environment()
	if err != nil {
		return err
	}
	p, err := install.For(agent, environment, started)
	if unknown := (*follow.UnknownAgentError)(nil); errors.As(err, &unknown) || errors.Is(err, install.ErrNoServers) || errors.Is(err, install.ErrByHand) {
		return &app.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	r := &records.AgentEntry{Agent: agent, Path: p.Path, Entry: p.Text, Command: p.Command}
	switch {
	case o.write && p.Command != nil:
		return app.Hint(app.Usagef("--write: %s adds servers itself", agent), "%s", resume.Shell(p.Command))
	case o.write:
		if r.Written, err = p.Write(); err != nil {
			return app.Hint(err, "without --write the entry is printed")
		}
		if !r.Written {
			a.Note("the entry is there already")
			return a.Print(r, "%s\n", screen.Line(p.Path))
		}
		return a.Print(r, "added to %s\n", screen.Line(p.Path))
	case p.Command != nil:
		return a.Print(r, "%s\n", screen.Line(resume.Shell(p.Command)))
	}
	a.Note("for %s; --write adds it", screen.Line(p.Path))
	return a.Print(r, "%s", p.Text)
}

// server returns the program that the agent starts: this one, with the store.
func (o *mcpInstallOptions) server(a *app.App) (install.Server, error) {
	named, err := a.StoreForFile(app.MustExist)
	if err != nil {
		return install.Server{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return install.Server{}, err
	}
	s := install.Server{Command: program, Args: []string{"mcp", "--store", named}}
	if o.all {
		s.Args = append(s.Args, "--all")
	}
	if len(o.tools) > 0 {
		s.Args = append(s.Args, "--write", strings.Join(o.tools, ","))
	}
	return s, nil
}
