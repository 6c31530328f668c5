package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/difference"
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

// on returns the function that cobra calls for a command on the documents of a context.
func (o *documentOptions) on(a *app.App, run func(context.Context, *app.OpenStore, *lineage.Context, []string) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error {
		return a.OpenContext(ctx, app.Reading, o.context, func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
			return run(ctx, s, found.Context, args)
		})
	})
}

// revisionNumber parses the number of a revision, 0 for an empty text.
func revisionNumber(text string) (uint64, error) {
	n, ok := app.Ordinal(text)
	if !ok {
		return 0, app.Usagef("%s: not the number of a revision", text)
	}
	return n, nil
}

func runDocumentList(ctx context.Context, s *app.OpenStore, c *lineage.Context, args []string) error {
	revisions, err := c.Revisions(ctx, app.Arg(args, 0))
	if err != nil {
		return err
	}
	list := s.List("DOCUMENT", "REVISION", "ID", "CREATED", "SAYS")
	for _, r := range revisions {
		e, err := s.Store.RevisionEntry(ctx, &r)
		if err != nil {
			return err
		}
		m, err := show.Listed(ctx, s, e)
		if err != nil {
			return err
		}
		_, text := m.Line()
		list.Add(m, app.PlainCell(m.Document), app.CountCell(m.Revision), app.IDCell(show.ShortID(m.ID)), app.TimeCell(m.CreatedAt), app.PlainCell(text))
	}
	return list.End("no revisions; 'lineage append --document NAME TEXT' adds one")
}

func runDocumentShow(ctx context.Context, s *app.OpenStore, c *lineage.Context, args []string) error {
	number, err := revisionNumber(app.Arg(args, 1))
	if err != nil {
		return err
	}
	e, err := c.Revision(ctx, args[0], number)
	switch {
	case err != nil:
		return err
	case s.JSON:
		return show.EmitEntry(ctx, s, e)
	}
	return runCat(ctx, s, e.Content.String())
}

func runDocumentDiff(ctx context.Context, s *app.OpenStore, c *lineage.Context, args []string) error {
	name := args[0]
	from, err := revisionNumber(args[1])
	if err != nil {
		return err
	}
	to, err := revisionNumber(app.Arg(args, 2))
	if err != nil {
		return err
	}
	old, _, err := difference.RevisionLines(ctx, s.Store, c, name, from)
	if err != nil {
		return err
	}
	current, to, err := difference.RevisionLines(ctx, s.Store, c, name, to)
	if err != nil {
		return err
	}
	lines := difference.Lines(old, current)
	if s.JSON {
		return s.Emit(&records.DocumentDiff{Document: name, From: from, To: to, Lines: lines})
	}
	styles := map[byte]screen.Style{'-': screen.Red, '+': screen.Green}
	for _, line := range lines {
		s.Printf("%s\n", s.Out.Paint(styles[line[0]], line[:1]+screen.Line(line[1:])))
	}
	return nil
}
