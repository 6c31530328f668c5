package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

// allCommands returns every command, each before those below it.
func allCommands(a *app.App) []*cobra.Command {
	var list []*cobra.Command
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		list = append(list, c)
		for _, below := range c.Commands() {
			add(below)
		}
	}
	root := root(a)
	root.InitDefaultHelpCmd()
	add(root)
	return list
}

// manual returns the reference of all commands as Markdown.
func manual(a *app.App) string {
	var b strings.Builder
	b.WriteString("# Command line\n\nThis page is generated from the commands: `lineage COMMAND --help` prints the same text.\n")
	root := root(a)
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(root.Long))
	b.WriteString("\n## Output\n\n" + strings.TrimSpace(outputText) + "\n")
	b.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, c := range app.ExitCodes() {
		fmt.Fprintf(&b, "| %d | %s |\n", c.Code, c.Meaning)
	}
	b.WriteString("\n## Flags of all commands\n\n")
	flagTable(&b, root.PersistentFlags())
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		for _, make := range g.commands {
			commandText(&b, make(a), "lineage")
		}
	}
	commandText(&b, helpCommand(a), "lineage")
	return b.String()
}

const outputText = `
Results go to standard output, everything else to standard error. On a terminal lines are
cut to its width and coloured, unless NO_COLOR is set; progress is shown there and nowhere else. In pipes
nothing is cut. With --json every result is a record on a line of its own, described in
[json.md](json.md), and so is an error, on standard error.

Stored text cannot control a terminal. Results and errors show control characters (C0 but newline and tab, DEL, C1) and
characters that are not shown or reorder text (Unicode's Cf, Zl, Zp, but for U+200C and U+200D) as pictures or as U+FFFD,
and bytes that are not UTF-8 as U+FFFD, in pipes as on a terminal. JSON has \u escapes for them, so its values are
what is stored. Only 'cat', 'export' and 'resolve --format' write content unchanged, and only to a pipe or a file:
show such output with a program that escapes it.

'thread delete', 'delete', 'erase' and 'gc' cannot be undone. They show what they would destroy and ask for confirmation
on a terminal. With --json, and where standard input or standard error is no terminal, they need --yes.

SIGINT and SIGTERM end every command within two seconds, with an exit code of its own, and a second one ends it at
once. A store keeps every change that was acknowledged; what was still being done can be started again.
`

func commandText(b *strings.Builder, c *cobra.Command, parent string) {
	name := parent + " " + c.Name()
	fmt.Fprintf(b, "\n### %s\n\n", name)
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s %s\n```\n", strings.TrimSpace(text), parent, c.Use)
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: %s\n", strings.Join(c.Aliases, ", "))
	}
	if c.HasAvailableLocalFlags() {
		b.WriteByte('\n')
		flagTable(b, c.Flags())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
	}
	for _, below := range c.Commands() {
		commandText(b, below, name)
	}
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning | default |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value := f.DefValue
		if value == "[]" || value == "false" || value == "0" {
			value = ""
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, strings.ReplaceAll(f.Usage, "|", "\\|"), value)
	})
}

func unindent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
