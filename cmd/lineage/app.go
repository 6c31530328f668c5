package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

// app is what every command uses: its input and output, and the flags of all commands.
type app struct {
	stdin  io.Reader
	getenv func(string) string
	// out is where results go and err where everything else does.
	out, err *screen.Screen
	buffer   *bufio.Writer

	// Flags of all commands.
	store      string
	threadName string
	json       bool
	wait       time.Duration
	// durability is "full" or "normal".
	durability string

	// rebuilt holds the warnings about an index that was rebuilt when the store was opened.
	rebuilt []string

	// args is the command line.
	args []string
	// began is set when the command itself runs: errors before that are about the command line.
	began bool
	// keeps is set while a store is open for changes: an interrupted command keeps those it has made.
	keeps bool
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) *app {
	a := &app{stdin: stdin, getenv: getenv, out: screen.Of(stdout, getenv), err: screen.Of(stderr, getenv)}
	a.buffer = bufio.NewWriterSize(stdout, 64<<10)
	a.out.W = screen.NewFilter(a.buffer)
	return a
}

// run runs a command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	a.args = args
	root.SetArgs(args)
	root.SetContext(ctx)
	c, err := root.ExecuteContextC(ctx)
	if err != nil && !a.began {
		err = &usageError{err}
	}
	if asUsage := (*usageError)(nil); errors.As(err, &asUsage) && hintOf(err) == "" {
		err = hint(err, "'%s --help' shows the usage", c.CommandPath())
	}
	// What was printed before an error is printed whole.
	if flushed := a.flush(); err == nil && flushed != nil {
		err = fmt.Errorf("write output: %w", flushed)
	}
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		err = errInterrupted
		if by := (*interruption)(nil); errors.As(context.Cause(ctx), &by) {
			err = by
		}
		if a.keeps {
			err = hint(err, "what was done so far is kept")
		}
	}
	return a.fail(err)
}

// namedThread returns the thread that the user named, empty for none.
func (a *app) namedThread() string { return cmp.Or(a.threadName, a.getenv("LINEAGE_THREAD")) }

// namedStore returns the store or database that the user named, empty for none.
func (a *app) namedStore() string { return cmp.Or(a.store, a.getenv("LINEAGE_STORE")) }

// root returns the command that all others are below.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "lineage",
		Short: "Keep, fork and trace the conversations of LLM agents",
		Long: `Lineage stores the conversations of LLM agents. A fork costs one pointer, the
same bytes are stored once, and the origin of everything is recorded.

A store is a directory. It is the one given by --store or LINEAGE_STORE, or else
the nearest .lineage in the current folder or one above it. It may also be kept by a PostgreSQL
server: --store 'postgres://HOST/DATABASE?store=NAME'. A thread is a conversation with
branches; commands work on the one given by --thread or LINEAGE_THREAD, or else the one
chosen by 'lineage thread use', or the one that changed last, which is listed first. A thread is
named by its id, the 8 digits that are shown of it, or its title. Fewer digits are
looked up by reading all threads.

Positions are written as names: a branch (main), a checkpoint, an id or the beginning of
one as it is listed (3f9ac2d1, 3f9a), the address of a message (3f9ac2d1/12), THREAD/BRANCH, or @
for the active branch. Steps lead on from there: main~2 and main@{2} are two messages
back, main:3 is the third message, and main@{-1} is where main pointed before it was
last moved. Alone they start at the active branch: @{1}, :3.`,
		Example: `  lineage init
  lineage append "Plan a weekend in Lisbon." --role user
  lineage log`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
	}
	version := root.Flags().Bool("version", false, "show the version of the program")
	root.RunE = a.does(func(context.Context, []string) error {
		if *version {
			return runVersion(a)
		}
		return root.Help()
	})
	root.SetOut(a.out.W)
	root.SetErr(a.err.W)
	root.SetIn(a.stdin)
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", "", "the store's directory, or its URL (LINEAGE_STORE)")
	flags.StringVar(&a.threadName, "thread", "", "the thread to work on: its id or title (LINEAGE_THREAD)")
	flags.BoolVar(&a.json, "json", false, "print JSON records, one a line")
	flags.DurationVar(&a.wait, "wait", 3*time.Second, "how long to wait while another process has the store open")
	flags.StringVar(&a.durability, "durability", "full", "when a change counts as done: full (on disk), normal (in the kernel)")
	root.CompletionOptions.DisableDefaultCmd = true
	help := helpCommand(a)
	root.SetHelpCommand(help)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		// The flags after the wrong one were not read.
		a.json = a.json || slices.Contains(a.args, "--json")
		return flagFailure(err)
	})
	for _, g := range groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title + ":"})
	}
	for _, g := range groups() {
		for _, make := range g.commands {
			c := make(a)
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	help.GroupID = "program"
	if err := root.RegisterFlagCompletionFunc("thread", a.completion((*session).threadNames)); err != nil {
		panic(err) // the flag is bound above
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	each(root, func(c *cobra.Command) { c.Long = wrapHelp(c.Long) })
	each(root, a.completeArguments)
	each(root, checkArguments)
	return root
}

// helpWidth is the width of help in columns.
const helpWidth = 80

// wrapHelp wraps the paragraphs of a text. Indented lines stay as they are.
func wrapHelp(text string) string {
	var lines, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			lines = append(lines, screen.Wrap(strings.Join(paragraph, " "), helpWidth)...)
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			end()
			lines = append(lines, line)
			continue
		}
		paragraph = append(paragraph, line)
	}
	end()
	return strings.Join(lines, "\n")
}

// each does something to a command and those below it.
func each(c *cobra.Command, do func(*cobra.Command)) {
	for _, below := range c.Commands() {
		each(below, do)
	}
	do(c)
}

// knownCommand refuses a command that does not exist, and suggests one with a similar name.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usagef("unknown command %q", args[0])
	var names []string
	for _, below := range c.Commands() {
		if !below.Hidden {
			names = append(append(names, below.Name()), below.Aliases...)
		}
	}
	if c.Parent() == nil && elsewhere[args[0]] != "" {
		return hint(err, "did you mean '%s %s'?", c.CommandPath(), elsewhere[args[0]])
	}
	if near := refs.Nearest(args[0], names); len(near) > 0 {
		return hint(err, "did you mean '%s %s'?", c.CommandPath(), near[0])
	}
	return hint(err, "'%s --help' lists the commands", c.CommandPath())
}

// elsewhere has what commands of other programs are called here.
var elsewhere = map[string]string{
	"add": "append", "branches": "branch", "checkout": "switch", "clone": "copy", "co": "switch", "commit": "append", "create": "init", "du": "stats",
	"find": "search", "get": "show", "grep": "search", "history": "log", "list": "thread list", "ls": "thread list", "mv": "rename", "new": "append",
	"print": "cat", "purge": "gc", "query": "search", "remove": "delete", "reset": "rewind", "revert": "rewind", "rm": "delete", "sessions": "thread list",
	"status": "info", "tag": "checkpoint", "threads": "thread list", "vacuum": "pack", "view": "show",
}

// group is a group of commands in the help.
type group struct {
	id, title string
	commands  []func(*app) *cobra.Command
}

// does returns what cobra calls for a command.
func (a *app) does(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		a.began = true
		return run(c.Context(), args)
	}
}

// note prints a remark for a person.
func (a *app) note(format string, args ...any) {
	if a.err.Terminal && !a.json {
		a.flush() // results that were printed before come first
		fmt.Fprintln(a.err.W, a.err.Paint(screen.Dim, fmt.Sprintf(format, args...)))
	}
}

// noteAfter prints a remark for a person if done is not called within a time.
func (a *app) noteAfter(wait time.Duration, format string, args ...any) (done func()) {
	noted := make(chan struct{})
	timer := time.AfterFunc(wait, func() {
		defer close(noted)
		a.note(format, args...)
	})
	return func() {
		if !timer.Stop() {
			<-noted
		}
	}
}

// warn prints a problem that does not end the command.
func (a *app) warn(format string, args ...any) {
	if a.json {
		line, _ := records.Encode(&records.Warning{Warning: fmt.Sprintf(format, args...)}) // strings always marshal
		a.err.W.Write(line)
		return
	}
	fmt.Fprintln(a.err.W, a.err.Paint(screen.Yellow, "lineage: "+screen.Line(fmt.Sprintf(format, args...))))
}

// flush writes the results that are buffered.
func (a *app) flush() error { return errors.Join(a.out.W.Flush(), a.buffer.Flush()) }

// raw returns the writer for results that are content themselves: as they are, but for a
// terminal.
func (a *app) raw() io.Writer {
	if a.out.Terminal {
		return a.out.W
	}
	return a.buffer
}

// progress returns a line that shows the progress of something.
func (a *app) progress(what string, format func(int64) string) *screen.Progress {
	to := a.err
	if a.json {
		to = screen.Of(io.Discard, a.getenv)
	}
	return screen.NewProgress(to, what, format)
}
