package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type documentOptions struct{ context string }

func DocumentCommand(a *app.App) *cobra.Command {
	o := &documentOptions{}
	c := &cobra.Command{
		Use:     "document",
		Aliases: []string{"documents"},
		Short:   "List, print and compare revisions of documents",
		Long: `A history can hold documents, such as a plan that an agent works on. Each change is a revision, which
'lineage append --document NAME' adds. Without a subcommand, all revisions are listed.`,
		Example: `  lineage append --document plan -m "one" && lineage append --document plan -m "two"
  lineage document
  lineage document diff plan 1 2`,
		Args: app.KnownCommand,
		RunE: o.on(a, runDocumentList),
	}
	c.PersistentFlags().StringVar(&o.context, "context", "", "documents of this branch or context (default the active branch)")
	c.AddCommand(documentListCommand(a, o), documentShowCommand(a, o), documentDiffCommand(a, o))
	return c
}

func documentListCommand(a *app.App, o *documentOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List revisions, those of one document or of all",
		Example: `  lineage document list plan --json`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    o.on(a, runDocumentList),
	}
}

func documentShowCommand(a *app.App, o *documentOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME [REVISION]",
		Short:   "Print a revision, the latest unless another is given",
		Example: `  lineage append --document plan -m "one" && lineage document show plan 1`,
		Args:    cobra.RangeArgs(1, 2),
		RunE:    o.on(a, runDocumentShow),
	}
}

func documentDiffCommand(a *app.App, o *documentOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME FROM [TO]",
		Short: "Compare two revisions line by line",
		Long: `Compares two revisions line by line: lines only in FROM have a minus, those only in TO a plus. TO is the
latest revision unless another is given. Exits with 0 whether or not they differ.`,
		Example: `  lineage append --document plan -m "one" && lineage document diff plan 1`,
		Args:    cobra.RangeArgs(2, 3),
		RunE:    o.on(a, runDocumentDiff),
	}
}

// on returns what cobra calls for a command that works on the documents of a context.
func (o *documentOptions) on(a *app.App, run func(context.Context, *app.Session, *lineage.Context, []string) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error {
		return a.OpenContext(ctx, app.Reading, o.context, func(ctx context.Context, s *app.Session, found *refs.Ref) error {
			return run(ctx, s, found.Context, args)
		})
	})
}

// revisionNumber reads the number of a revision; 0 if none is given.
func revisionNumber(text string) (uint64, error) {
	n, ok := app.Ordinal(text)
	if !ok {
		return 0, app.Usagef("%s: not the number of a revision", text)
	}
	return n, nil
}

func runDocumentList(ctx context.Context, s *app.Session, c *lineage.Context, args []string) error {
	revisions, err := c.Revisions(ctx, app.Arg(args, 0))
	if err != nil {
		return err
	}
	list := s.List("DOCUMENT", "REVISION", "ID", "CREATED", "SAYS")
	for _, e := range revisions {
		m, err := show.Listed(ctx, s, e)
		if err != nil {
			return err
		}
		_, text := m.Line()
		list.Add(m, app.PlainCell(m.Document), app.CountCell(m.Revision), app.IDCell(show.ShortID(m.ID)), app.TimeCell(m.CreatedAt), app.PlainCell(text))
	}
	return list.End("no revisions; 'lineage append --document NAME TEXT' adds one")
}

// revision returns a revision of a document, the latest for the number 0.
func revision(ctx context.Context, c *lineage.Context, name string, number uint64) (*lineage.Entry, error) {
	revisions, err := c.Revisions(ctx, name)
	if err != nil {
		return nil, err
	}
	for i := len(revisions) - 1; i >= 0 && name != ""; i-- {
		if e := revisions[i]; number == 0 || e.Revision == number {
			return e, nil
		}
	}
	which := "revision"
	if number > 0 {
		which = fmt.Sprintf("revision %d", number)
	}
	return nil, &lineage.SubjectError{Subject: "document", ID: name, Err: lineage.ErrNotFound, Detail: which}
}

func runDocumentShow(ctx context.Context, s *app.Session, c *lineage.Context, args []string) error {
	number, err := revisionNumber(app.Arg(args, 1))
	if err != nil {
		return err
	}
	e, err := revision(ctx, c, args[0], number)
	switch {
	case err != nil:
		return err
	case s.JSON:
		return show.EmitEntry(ctx, s, e)
	}
	return runCat(ctx, s, e.Content.String())
}

func runDocumentDiff(ctx context.Context, s *app.Session, c *lineage.Context, args []string) error {
	name := args[0]
	from, err := revisionNumber(args[1])
	if err != nil {
		return err
	}
	to, err := revisionNumber(app.Arg(args, 2))
	if err != nil {
		return err
	}
	old, _, err := revisionLines(ctx, s, c, name, from)
	if err != nil {
		return err
	}
	current, to, err := revisionLines(ctx, s, c, name, to)
	if err != nil {
		return err
	}
	lines := diffLines(old, current)
	if s.JSON {
		return s.Emit(&records.DocumentDiff{Document: name, From: from, To: to, Lines: lines})
	}
	styles := map[byte]screen.Style{'-': screen.Red, '+': screen.Green}
	for _, line := range lines {
		s.Printf("%s\n", s.Out.Paint(styles[line[0]], line[:1]+screen.Line(line[1:])))
	}
	return nil
}

// revisionLines returns the lines of a revision, without their ends, and its number.
func revisionLines(ctx context.Context, s *app.Session, c *lineage.Context, name string, number uint64) (lines []string, of uint64, err error) {
	e, err := revision(ctx, c, name, number)
	if err != nil {
		return nil, 0, err
	}
	if e.Size > lineage.MostText {
		return nil, 0, &lineage.SubjectError{Subject: "document", ID: name, Err: lineage.ErrTooLarge, Detail: fmt.Sprintf("revision %d has %d bytes", e.Revision, e.Size)}
	}
	text, err := s.Store.Text(ctx, e)
	if err != nil || text == "" {
		return nil, e.Revision, err
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), e.Revision, nil
}

// diffLines returns the lines of both, with the prefixes of records.DocumentDiff.
func diffLines(old, current []string) (diff []string) {
	add := func(prefix string, lines []string) {
		for _, line := range lines {
			diff = append(diff, prefix+line)
		}
	}
	at := 0
	for _, d := range lcs.DiffLines(old, current) {
		add(" ", old[at:d.Start])
		add("-", old[d.Start:d.End])
		add("+", current[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	add(" ", old[at:])
	return diff
}
