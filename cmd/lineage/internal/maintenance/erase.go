package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/erasure"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type eraseOptions struct {
	name   string
	yes    bool
	dryRun bool
}

func EraseCommand(a *app.App) *cobra.Command {
	o := &eraseOptions{}
	c := &cobra.Command{
		Use:   "erase CONTENT",
		Short: "Erase a content from every history",
		Long: `Makes content unreadable for good. Histories that use it remain readable, with a marker in its
place. The content is named by a content id or its beginning, or by a message: then its text is
erased, and those of its other pieces (further texts, calls of tools and their results, files,
data) and of its metadata that no other message has. The command shows how often the content is
used and asks first, unless --yes is given; --dry-run only shows it. Other content that repeats it
is not erased, such as an edited message or a result that quotes it. The command lists summaries
of messages that use it and threads whose title is the start of its text, which may need to be
erased or changed, too.

Ids, times, numbers and names are not erased: those of people, models, tools, threads, documents and attached files, and the keys of
JSON. 'lineage thread set' changes titles and metadata of threads, 'lineage thread delete' deletes a whole thread.

The bytes remain in the files of the store until 'lineage gc' rewrites them, and in projected databases until
'lineage project' runs again. Earlier backups, bundles and exports keep them: create them again, and delete
the old ones.`,
		Example: `  lineage erase :2 --dry-run
  lineage erase :2 --yes && lineage gc --yes`,
		Args: cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.name = args[0]
			if o.dryRun {
				return a.Open(ctx, app.Reading, func(ctx context.Context, s *app.OpenStore) error {
					plan, err := planned(ctx, s, o.name)
					for i := 0; err == nil && i < len(plan.Erased); i++ {
						err = printErased(s, plan.Erased[i], i+1 == len(plan.Erased))
					}
					return err
				})
			}
			return app.Destroy(ctx, a, o.yes, app.Changing, a.Open, func(ctx context.Context, s *app.OpenStore) (*app.Destruction, error) {
				return destruction(ctx, s, o.name)
			})
		}),
	}
	app.YesFlag(c, &o.yes)
	c.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "only show what would be erased")
	return c
}

func destruction(ctx context.Context, s *app.OpenStore, name string) (*app.Destruction, error) {
	plan, err := planned(ctx, s, name)
	if err != nil {
		return nil, err
	}
	var what []string
	for _, r := range plan.Erased {
		what = append(what, fmt.Sprintf("content %.8s, used %s", r.ContentID, timesUsed(r.Uses)))
	}
	return &app.Destruction{
		What: "erase the bytes of " + strings.Join(what, ", and of "),
		Do: func(ctx context.Context) error {
			n := 0
			return plan.Do(ctx, s.Store, func(r *records.Erased) error {
				n++
				return printErased(s, r, n == len(plan.Erased))
			})
		},
	}, nil
}

// planned returns the plan for erasing a content, or each piece of a message.
func planned(ctx context.Context, s *app.OpenStore, name string) (plan *erasure.Plan, err error) {
	id, e, err := s.Refs.ContentOrEntry(ctx, name)
	if err != nil {
		return nil, err
	}
	if e == nil {
		plan, err = erasure.OfContent(ctx, s.Store, id)
	} else {
		plan, err = erasure.OfMessage(ctx, s.Store, e)
	}
	if errors.Is(err, lineage.ErrNotFound) || err == nil && len(plan.Erased) == 0 {
		return nil, refs.Unknown("content", name, nil)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range plan.Stays {
		s.Warn("content %.8s stays: %d messages have it; 'lineage erase %s' erases it from all", r.ContentID, r.Uses, r.ContentID)
	}
	return plan, nil
}

func printErased(s *app.OpenStore, r *records.Erased, last bool) error {
	for _, summary := range r.Summaries {
		s.Warn("a summary of a message that uses it may repeat it: 'lineage erase %s' erases the summary", summary)
	}
	for _, chat := range r.Titles {
		s.Warn("the title of thread %s is how it begins: 'lineage thread set %s --title TITLE' changes that", chat, chat)
	}
	if last && r.Erased {
		s.Warn("its bytes are on disk until 'lineage gc', and in databases until 'lineage project'; earlier backups, bundles and exports keep them")
	}
	verb := "would erase"
	if r.Erased {
		verb = "erased"
	}
	return s.Print(r, "%s %s, used %s\n", verb, r.ContentID, timesUsed(r.Uses))
}

func timesUsed(n int) string {
	if n == 1 {
		return "once"
	}
	return amount.Count(n) + " times"
}
