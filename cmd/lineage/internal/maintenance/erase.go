package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
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
				return a.Open(ctx, app.Reading, func(ctx context.Context, s *app.Session) error {
					_, list, err := contentsToErase(ctx, s, o.name)
					for i := 0; err == nil && i < len(list); i++ {
						err = printErased(s, list[i], i+1 == len(list))
					}
					return err
				})
			}
			return app.Destroy(ctx, a, o.yes, app.Changing, a.Open, func(ctx context.Context, s *app.Session) (*app.Destruction, error) { return erasure(ctx, s, o.name) })
		}),
	}
	app.YesFlag(c, &o.yes)
	c.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "only show what would be erased")
	return c
}

func erasure(ctx context.Context, s *app.Session, name string) (*app.Destruction, error) {
	ids, list, err := contentsToErase(ctx, s, name)
	if err != nil {
		return nil, err
	}
	var what []string
	for i, r := range list {
		what = append(what, fmt.Sprintf("content %s, used %s", ids[i].Short(), timesUsed(r.Uses)))
	}
	return &app.Destruction{
		What: "erase the bytes of " + strings.Join(what, ", and of "),
		Do: func(ctx context.Context) error {
			for i, r := range list {
				if err := s.Store.Erase(ctx, ids[i]); err != nil {
					return err
				}
				r.Erased = true
				if err := printErased(s, r, i+1 == len(list)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// contentsToErase returns what erase would do: for a content, or for each piece of a message.
func contentsToErase(ctx context.Context, s *app.Session, name string) (ids []lineage.ContentID, list []*records.Erased, err error) {
	id, e, err := s.Refs.ContentOrEntry(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	all := []lineage.ContentID{id}
	if e != nil {
		all = e.Contents()
	}
	if len(all) == 0 {
		return nil, nil, refs.Unknown("content", name, nil)
	}
	for _, id := range all {
		r, err := contentToErase(ctx, s, id, name)
		if err != nil {
			return nil, nil, err
		}
		if e != nil && id != e.Content && r.Uses > 1 {
			s.Warn("content %s stays: %d messages have it; 'lineage erase %s' erases it from all", id.Short(), r.Uses, id)
			continue
		}
		ids, list = append(ids, id), append(list, r)
	}
	return ids, list, nil
}

// contentToErase returns what erase would do to a content.
func contentToErase(ctx context.Context, s *app.Session, id lineage.ContentID, name string) (*records.Erased, error) {
	has, err := s.Store.View().Has(ctx, []lineage.ContentID{id})
	if err != nil {
		return nil, err
	}
	if !has[0] {
		return nil, refs.Unknown("content", name, nil)
	}
	r := &records.Erased{ContentID: id.String(), Summaries: []string{}, Titles: []string{}}
	var holding []*lineage.Entry
	for e, err := range s.Store.Where(ctx, id) {
		if err != nil {
			return nil, err
		}
		r.Uses++
		holding = append(holding, e)
	}
	if r.Titles, err = titlesOf(ctx, s, id); err != nil {
		return nil, err
	}
	for summary, err := range s.Store.Summaries(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return nil, err
		}
		id := summary.Content.String()
		if summary.Erased || slices.Contains(r.Summaries, id) {
			continue
		}
		covers, err := covers(ctx, s, summary, holding)
		if err != nil {
			return nil, err
		}
		if covers {
			r.Summaries = append(r.Summaries, id)
		}
	}
	return r, nil
}

// maxTitle bounds how much of a content is compared with titles of threads.
const maxTitle = 64 << 10

// titlesOf returns the threads whose title is the start of a content, such as threads that were named
// after their first message.
func titlesOf(ctx context.Context, s *app.Session, id lineage.ContentID) ([]string, error) {
	titles := []string{}
	body, err := s.Store.Body(ctx, id)
	if errors.Is(err, lineage.ErrErased) {
		return titles, nil
	}
	if err != nil {
		return nil, err
	}
	begins, err := io.ReadAll(io.LimitReader(body, maxTitle))
	if err != nil {
		return nil, err
	}
	text := strings.Join(strings.Fields(string(begins)), " ")
	for t, err := range s.Store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		title := strings.TrimSuffix(strings.Join(strings.Fields(t.Title), " "), "…")
		if title != "" && strings.HasPrefix(text, title) {
			titles = append(titles, t.ID.String())
		}
	}
	return titles, nil
}

func printErased(s *app.Session, r *records.Erased, last bool) error {
	for _, summary := range r.Summaries {
		s.Warn("a summary of a message that uses it may repeat it: 'lineage erase %s' erases the summary", summary)
	}
	for _, chat := range r.Titles {
		s.Warn("the title of thread %s is how it begins: 'lineage thread set %s --title TITLE' changes that", chat, chat)
	}
	if last && r.Erased {
		s.Warn("its bytes are on disk until 'lineage gc', and in databases until 'lineage project'; earlier backups, bundles and exports keep them")
	}
	did := "would erase"
	if r.Erased {
		did = "erased"
	}
	return s.Print(r, "%s %s, used %s\n", did, r.ContentID, timesUsed(r.Uses))
}

func timesUsed(n int) string {
	if n == 1 {
		return "once"
	}
	return screen.Count(n) + " times"
}

// covers reports whether a summary covers one of the entries.
func covers(ctx context.Context, s *app.Session, summary *lineage.SummaryInfo, entries []*lineage.Entry) (bool, error) {
	for _, e := range entries {
		if e.Position < summary.First || e.Position > summary.Last {
			continue
		}
		at, err := s.Store.At(ctx, summary.To, e.Position)
		if err != nil || at == e.Span {
			return err == nil, err
		}
	}
	return false, nil
}
