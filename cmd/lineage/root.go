package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

// execute runs a command line and returns the exit code.
func execute(ctx context.Context, a *app.App, args []string) int {
	root := root(a)
	a.Args = args
	root.SetArgs(args)
	root.SetContext(ctx)
	c, err := root.ExecuteContextC(ctx)
	if err != nil && !a.Began {
		err = &app.UsageError{Err: aboutFlags(err)}
	}
	if asUsage := (*app.UsageError)(nil); errors.As(err, &asUsage) && app.HintOf(err) == "" {
		err = app.Hint(err, "'%s --help' shows the usage", c.CommandPath())
	}
	// Everything printed before an error is written completely.
	if flushed := a.Flush(); err == nil && flushed != nil {
		err = fmt.Errorf("write output: %w", flushed)
	}
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		err = app.ErrInterrupted
		if interruption := (*app.Interruption)(nil); errors.As(context.Cause(ctx), &interruption) {
			err = interruption
		}
		if a.Keeps {
			err = app.Hint(err, "what was done so far is kept")
		}
	}
	return a.Fail(err)
}

// flagGroup matches cobra's errors about flags that exclude or need one another.
var flagGroup = regexp.MustCompile(`^if any flags in the group \[(.*)\] are set (?:none of the others can be; \[(.*)\] were all set|they must all be set; missing \[(.*)\])$`)

// neededFlags matches cobra's error about flags of which one must be given.
var neededFlags = regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`)

// aboutFlags returns an error of cobra in the words of this program.
func aboutFlags(err error) error {
	named := func(names string) string { return "--" + strings.ReplaceAll(names, " ", ", --") }
	if needed := neededFlags.FindStringSubmatch(err.Error()); needed != nil {
		return fmt.Errorf("%s: at least one of them is needed", named(needed[1]))
	}
	found := flagGroup.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	if found[2] != "" {
		return fmt.Errorf("%s: only one of them", named(found[2]))
	}
	return fmt.Errorf("%s: all of them or none, and %s is missing", named(found[1]), named(found[3]))
}

// root returns the root command.
func root(a *app.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "lineage",
		Short: "Keep, fork and trace the conversations of LLM agents",
		Long: `Lineage keeps the conversations of LLM agents: the sessions of the coding agents on this
machine, archives, and what programs write. The same bytes are stored once, and a fork costs one
small record.

A store is a directory. It is the one given by --store or LINEAGE_STORE, or else
the nearest .lineage in the current folder or one above it, or else the one in the
home directory. It may also be kept by a PostgreSQL
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
  lineage follow --once
  lineage thread list
  lineage log
  lineage resume`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          app.KnownCommand,
	}
	version := root.Flags().Bool("version", false, "show the version of the program")
	root.RunE = a.Does(func(context.Context, []string) error {
		if *version {
			return runVersion(a)
		}
		return root.Help()
	})
	root.SetOut(a.Out.W)
	root.SetErr(a.Err.W)
	root.SetIn(a.Stdin)
	addFlags(a, root)
	root.CompletionOptions.DisableDefaultCmd = true
	help := helpCommand(a)
	root.SetHelpCommand(help)
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
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	app.Each(root, func(c *cobra.Command) { c.Long = wrapHelp(c.Long) })
	app.Each(root, a.CompleteArguments)
	app.Each(root, app.CheckArguments)
	return root
}

// addFlags adds the flags of all commands.
func addFlags(a *app.App, root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.Store, "store", "", "the store's directory, or its URL (LINEAGE_STORE)")
	flags.StringVar(&a.ThreadName, "thread", "", "the thread to work on: its id or title (LINEAGE_THREAD)")
	flags.BoolVar(&a.JSON, "json", false, "print JSON records, one a line")
	flags.DurationVar(&a.Wait, "wait", 3*time.Second, "how long to wait while another process has the store open")
	flags.StringVar(&a.Durability, "durability", "full", "when a change counts as done: full (on disk), normal (in the kernel)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		// Flags after the wrong one were not read.
		a.JSON = a.JSON || slices.Contains(a.Args, "--json")
		return app.FlagFailure(err)
	})
	if err := root.RegisterFlagCompletionFunc("thread", a.Completion((*app.OpenStore).ThreadNames)); err != nil {
		panic(err) // the flag is bound above
	}
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
