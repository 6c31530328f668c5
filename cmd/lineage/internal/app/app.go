// Package app has what all commands share: input and output, flags, errors and exit codes, and the opening of stores
// and databases.
package app

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

// App is what all commands share: input and output, and the flags of all commands.
type App struct {
	Stdin  io.Reader
	getenv func(string) string
	// Out is for results, Err for everything else.
	Out, Err *screen.Screen
	buffer   *bufio.Writer

	// Flags of all commands.
	Store      string
	ThreadName string
	JSON       bool
	Wait       time.Duration
	// Durability is "full" or "normal".
	Durability string

	// elsewhere says that there is another store, empty if there is none.
	elsewhere string

	// Rebuilt are the warnings about an index that was rebuilt when the store was opened.
	Rebuilt []string

	// Args is the command line.
	Args []string
	// Began is set when the command itself starts. Errors before that concern the command line.
	Began bool
	// Keeps is set while a store is open for changes. An interrupted command keeps the changes that it has made.
	Keeps bool
}

// New returns an App for one command line.
func New(stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) *App {
	a := &App{Stdin: stdin, getenv: getenv, Out: screen.Of(stdout, getenv), Err: screen.Of(stderr, getenv)}
	a.buffer = bufio.NewWriterSize(stdout, 64<<10)
	a.Out.W = screen.NewSanitizer(a.buffer)
	return a
}

// NamedThread returns the thread that the user named, empty for none.
func (a *App) NamedThread() string { return cmp.Or(a.ThreadName, a.getenv("LINEAGE_THREAD")) }

// NamedStore returns the store or database that the user named, empty for none.
func (a *App) NamedStore() string { return cmp.Or(a.Store, a.getenv("LINEAGE_STORE")) }

// Each calls do for a command and all commands below it.
func Each(c *cobra.Command, do func(*cobra.Command)) {
	for _, below := range c.Commands() {
		Each(below, do)
	}
	do(c)
}

// KnownCommand refuses a command that does not exist, and suggests one with a similar name.
func KnownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := Usagef("unknown command %q", args[0])
	var names []string
	for _, below := range c.Commands() {
		if !below.Hidden {
			names = append(append(names, below.Name()), below.Aliases...)
		}
	}
	if c.Parent() == nil && Elsewhere[args[0]] != "" {
		return Hint(err, "did you mean '%s %s'?", c.CommandPath(), Elsewhere[args[0]])
	}
	if near := refs.Nearest(args[0], names); len(near) > 0 {
		return Hint(err, "did you mean '%s %s'?", c.CommandPath(), near[0])
	}
	return Hint(err, "'%s --help' lists the commands", c.CommandPath())
}

// Elsewhere maps names that commands have in other programs to their names here.
var Elsewhere = map[string]string{
	"add": "append", "branches": "branch", "checkout": "switch", "clone": "copy", "co": "switch", "commit": "append", "create": "init", "du": "stats",
	"browse": "serve", "continue": "resume", "cost": "usage", "costs": "usage", "gui": "serve", "open": "serve", "page": "serve", "ui": "serve", "web": "serve",
	"find": "search", "get": "show", "grep": "search", "history": "log", "list": "thread list", "ls": "thread list", "mv": "rename", "new": "append",
	"print": "cat", "purge": "gc", "query": "search", "remove": "delete", "reset": "rewind", "revert": "rewind", "rm": "delete", "sessions": "thread list",
	"status": "info", "tag": "checkpoint", "threads": "thread list", "vacuum": "pack", "view": "show",
}

// Does returns the function that cobra calls for a command.
func (a *App) Does(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		a.Began = true
		return run(c.Context(), args)
	}
}

// Note prints a remark for people.
func (a *App) Note(format string, args ...any) {
	if a.Err.Terminal && !a.JSON {
		a.Flush() // earlier results come first
		fmt.Fprintln(a.Err.W, a.Err.Paint(screen.Dim, fmt.Sprintf(format, args...)))
	}
}

// noteAfter prints a remark for people unless done is called within a time.
func (a *App) noteAfter(wait time.Duration, format string, args ...any) (done func()) {
	noted := make(chan struct{})
	timer := time.AfterFunc(wait, func() {
		defer close(noted)
		a.Note(format, args...)
	})
	return func() {
		if !timer.Stop() {
			<-noted
		}
	}
}

// Warn prints a problem that does not end the command.
func (a *App) Warn(format string, args ...any) {
	if a.JSON {
		line, _ := records.Encode(&records.Warning{Warning: fmt.Sprintf(format, args...)}) // strings always marshal
		a.Err.W.Write(line)
		return
	}
	fmt.Fprintln(a.Err.W, a.Err.Paint(screen.Yellow, "lineage: "+screen.Line(fmt.Sprintf(format, args...))))
}

// Flush writes the results that are buffered.
func (a *App) Flush() error { return errors.Join(a.Out.W.Flush(), a.buffer.Flush()) }

// Progress returns a line that shows the progress of a task.
func (a *App) Progress(what string, format func(int64) string) *screen.Progress {
	to := a.Err
	if a.JSON {
		to = screen.Of(io.Discard, a.getenv)
	}
	return screen.NewProgress(to, what, format)
}
