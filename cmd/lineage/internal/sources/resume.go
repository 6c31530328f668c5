package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/resume"
)

type resumeOptions struct {
	position, agent, dir string
	dryRun, run, yes     bool
}

func ResumeCommand(a *app.App) *cobra.Command {
	o := &resumeOptions{}
	c := &cobra.Command{
		Use:   "resume [POSITION]",
		Short: "Continue a conversation in a coding agent",
		Long: `Creates a session of a coding agent that holds the history up to a position, and prints the
command that continues it. It is the agent that the thread came from, unless --agent names another: ` + strings.Join(resume.Agents(), ", ") + `.

A session of the same agent is written with its own lines, as 'lineage follow' has read them. A
history of another agent, service or program is translated: what the agent has no place for is listed
on standard error. The new session gets no permissions from the old one.

The session belongs to the folder that the thread worked in, or the current one if that is not there;
--dir chooses. With --dry-run nothing is written. With --run the agent is started there. If
'lineage follow' on this machine did not read all of the history, that asks first, or needs --yes.
The command is for a POSIX shell, and on Windows for PowerShell.

One new session file is created, and nothing of the agent's is changed. For OpenCode, which has its
sessions in a database, it is a file for 'opencode import' in this program's own folder. The store
remembers what the session was made of, and 'lineage follow' makes it a branch of the thread.`,
		Example: `  lineage resume :2 --agent codex
  lineage resume --agent pi --dry-run
  lineage resume main --agent claude-code --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.position = app.Arg(args, 0)
			return runResume(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.agent, "agent", "", "the agent that continues")
	f.StringVar(&o.dir, "dir", "", "the folder in which it continues")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show what would be written")
	f.BoolVar(&o.run, "run", false, "start the agent")
	f.BoolVarP(&o.yes, "yes", "y", false, "start it without asking, whichever machine the thread came from")
	c.MarkFlagsMutuallyExclusive("dry-run", "run")
	return c
}

func runResume(ctx context.Context, a *app.App, o *resumeOptions) error {
	environment, machine, err := a.Machine()
	if err != nil {
		return err
	}
	var made *resume.Session
	var mode app.OpenMode
	if o.dryRun {
		mode = app.Reading
	}
	opened := false
	write := func(ctx context.Context, s *app.OpenStore) error {
		opened = true
		if made, err = newSession(ctx, s, o, environment); err != nil {
			return err
		}
		if o.run && !o.yes {
			if err := agreeToRun(ctx, s, made, machine); err != nil {
				return err
			}
		}
		return writeSession(ctx, s, o, made)
	}
	err = a.Open(ctx, mode, write)
	if unchanged := err; err != nil && !opened && !o.dryRun && !errors.Is(err, lineage.ErrLocked) {
		read := a.Open(ctx, app.Reading, func(ctx context.Context, s *app.OpenStore) error {
			s.Warn("the store does not remember the session: %s", app.Saying(unchanged))
			return write(ctx, s)
		})
		if opened {
			err = read
		}
	}
	if err != nil || !o.run {
		return err
	}
	if err := a.Flush(); err != nil {
		return err
	}
	return startAgent(made)
}

// newSession creates the session for the position on the command line.
func newSession(ctx context.Context, s *app.OpenStore, o *resumeOptions, environment *follow.Environment) (*resume.Session, error) {
	found, err := s.Refs.Find(ctx, o.position)
	if err != nil {
		return nil, err
	}
	options := resume.Options{Agent: o.agent, Environment: environment, Thread: threadOf(found)}
	if o.dir != "" {
		if options.Dir, err = filepath.Abs(o.dir); err != nil {
			return nil, err
		}
	}
	made, err := resume.New(ctx, s.Store, found.Span, options)
	if errors.Is(err, resume.ErrNoFolder) && o.dir == "" {
		s.Warn("%s: using the current one", err)
		if options.Dir, err = os.Getwd(); err == nil {
			made, err = resume.New(ctx, s.Store, found.Span, options)
		}
	}
	unknown := (*follow.UnknownAgentError)(nil)
	switch {
	case errors.As(err, &unknown):
		return nil, app.Hint(app.Usagef("no agent %q", unknown.Name), "--agent names one of %s", strings.Join(resume.Agents(), ", "))
	case errors.Is(err, resume.ErrNoWayIn):
		return nil, app.Hint(err, "--agent names one of %s; 'lineage resolve --format openai' prints the messages for any other program", strings.Join(resume.Agents(), ", "))
	case errors.Is(err, resume.ErrNoFolder):
		return nil, app.Hint(err, "--dir names the folder in which the agent continues")
	}
	return made, err
}

// threadOf returns the thread in which a name was found, zero for none.
func threadOf(found *refs.Ref) lineage.ThreadID {
	if found.Thread == nil {
		return lineage.ThreadID{}
	}
	return found.Thread.ID()
}

// agreeToRun asks whether to start an agent with a history that was not read from session files of this machine.
func agreeToRun(ctx context.Context, s *app.OpenStore, made *resume.Session, machine follow.Machine) error {
	if local, err := made.IsFrom(ctx, machine); err != nil || local {
		return err
	}
	from := "from elsewhere"
	if made.Machine != "" {
		from = "that says it is from the machine " + made.Machine
	}
	return s.Ask(ctx, fmt.Sprintf("start %s in %s with a thread %s", made.Agent.Title, made.Dir, from), "")
}

// writeSession writes a session, or only shows it.
func writeSession(ctx context.Context, s *app.OpenStore, o *resumeOptions, made *resume.Session) error {
	var lost show.Losses
	for _, l := range made.Losses {
		lost.Add(l)
	}
	lost.Warn(s.App)
	r := ResumedRecord(made, !o.dryRun)
	if o.dryRun {
		size, err := made.Content(ctx, io.Discard)
		if err != nil {
			return err
		}
		r.Lines, r.Bytes = size.Lines, size.Bytes
		return s.Facts(r, [][2]string{
			{"agent", made.Agent.Title}, {"folder", r.Dir}, {"file", r.File},
			{"lines", amount.Count(r.Lines) + ", " + amount.Bytes(r.Bytes)},
			{"messages", amount.Count(r.Messages) + ", of which " + amount.Count(r.Own) + " as the agent wrote them"},
			{"command", r.Command},
		}...)
	}
	size, err := made.Write(ctx)
	if err != nil {
		return err
	}
	r.Lines, r.Bytes = size.Lines, size.Bytes
	program := made.Commands[0][0]
	if _, err := exec.LookPath(program); err != nil {
		s.Warn("%s is not in PATH", program)
	}
	return s.Print(r, "%s\n", r.Command)
}

// ResumedRecord returns the record of a session, without its size.
func ResumedRecord(made *resume.Session, written bool) *records.Resumed {
	return &records.Resumed{
		Agent: made.Agent.Name, Session: made.ID, Dir: made.Dir, File: made.File(), Command: made.Shell(), Commands: made.Commands,
		Messages: made.Messages, Own: made.Own, Losses: len(made.Losses), Machine: made.Machine, Written: written,
	}
}

// startAgent runs the commands of an agent on the terminal, and waits for them. Interrupts are left to the agent.
func startAgent(made *resume.Session) error {
	for i, command := range made.Commands {
		c := exec.Command(command[0], command[1:]...)
		c.Dir, c.Stdin, c.Stdout, c.Stderr = made.Dir, os.Stdin, os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return app.Hint(fmt.Errorf("%s: %w", made.Agent.Title, err), "%s", screen.Line(made.Shell()))
		}
		if i == 0 && len(made.Commands) > 1 { // the agent has imported the file
			if err := os.Remove(made.File()); err != nil {
				return err
			}
		}
	}
	return nil
}
