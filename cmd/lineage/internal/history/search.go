package history

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// indexFor is the flag for the time that a search takes to bring the index up to date, and indexForReader its default for somebody
// who waits.
const (
	indexFor       = "index-for"
	indexForReader = 10 * time.Second
)

func SearchCommand(a *app.App) *cobra.Command {
	o := &threads.SearchOptions{}
	var c *cobra.Command
	c = &cobra.Command{
		Use:   "search QUERY",
		Short: "Find messages, documents, assets and summaries by text",
		Long: `Finds messages by their words, the best first: in all threads, or in the one that --thread names. A store is also
searched for documents and text assets, by their names too, and for summaries; and, if nothing limits the threads, in contexts outside
threads. A message that several threads share is shown once, with their titles. Words are found in all their forms; "several words" in quotes
are found as a phrase, word* finds words that begin with it, and AND, OR, NOT and NEAR(…) combine them. Text that is not a valid
query is searched for its words.

In a store, the query may have filters beside its words: agent:NAME, project:FOLDER, branch:NAME, user:ID, after:DATE and
before:DATE, each once. They limit all of the search as --agent, --project, --git-branch, --user, --since and --until do. A DATE is a
day, a month or a year of the system's time zone, today or yesterday. With OR, the words are in parentheses: (one OR two) agent:codex.

The search index is a file of the store, which is rebuilt if it is missing, or for each search if the store cannot be written; a
store on a server has it there, for all. A search brings it up to date first. On a terminal it then answers after some seconds from what
the index has, and says what it lacks. If nothing is found, the command exits with 9.`,
		Example: `  lineage search lisbon
  lineage search '"fish in" OR tram*' --role assistant -n 5 --json
  lineage search lisbon --since 2026-01-01
  lineage search 'lisbon after:2026-01'`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			if o.Limit < 0 {
				return app.Usagef("--limit %d: must not be negative", o.Limit)
			}
			if o.IndexFor < 0 {
				return app.Usagef("--%s %s: must not be negative", indexFor, o.IndexFor)
			}
			o.Query = strings.Join(args, " ")
			if !c.Flags().Changed(indexFor) && a.Out.Terminal && !a.JSON {
				o.IndexFor = indexForReader
			}
			return threads.Open(ctx, a, app.Reading, func(ctx context.Context, in threads.Keeper) error {
				hits, err := in.Search(ctx, o)
				if err != nil {
					return err
				}
				return printHits(a, hits)
			})
		}),
	}
	c.Flags().StringSliceVar(&o.Roles, "role", nil, "only messages of these roles")
	c.Flags().StringVar(&o.User, "user", "", "only in threads of this user")
	o.Session.Add(c.Flags())
	c.Flags().Var(&o.Since, "since", "only in threads updated at this time or later: "+app.TimeForms)
	c.Flags().Var(&o.Until, "until", "only in threads updated before this time")
	c.Flags().DurationVar(&o.IndexFor, indexFor, 0, "bring the index up to date for at most this long; 0 for as long as it takes, the default but on a terminal (10s)")
	c.Flags().IntVarP(&o.Limit, "limit", "n", 0, fmt.Sprintf("list at most this many (default %d)", chat.DefaultSearchLimit))
	return c
}

// printHits prints what a search found.
func printHits(a *app.App, hits []*threads.Hit) error {
	for _, h := range hits {
		if h.Threads == nil {
			h.Threads = []records.HitThread{}
		}
		in := h.In
		if more := len(h.Threads) + len(h.Contexts) - len(in); more > 0 {
			in = append(in, fmt.Sprintf("and %s more", amount.Count(more)))
		}
		what := cmp.Or(h.Role, strings.TrimSpace(h.Kind+" "+h.Name))
		snippet := cmp.Or(h.Snippet, screen.Cut(screen.Line(h.Text), 200))
		err := a.Print(&h.Hit, "%s  %s  %s\n%s", a.Out.Paint(screen.OfRole(h.Role)+";1", screen.Line(what)),
			a.Out.Paint(screen.Dim, screen.Line(refs.ShortAddress(h.ID))+"  "+screen.Time(h.CreatedAt)), screen.Line(strings.Join(in, ", ")),
			marked(a, a.Indented("    ", screen.Line(transcript.Uncoloured(snippet)))))
		if err != nil {
			return err
		}
	}
	if len(hits) == 0 {
		return app.ErrNothingFound
	}
	return nil
}

// marked returns a snippet in which the marked text is styled. Without styles it is plain text.
func marked(a *app.App, snippet string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(snippet, "<mark>")
		word, after, closed := strings.Cut(rest, "</mark>")
		if !found || !closed {
			b.WriteString(snippet)
			return b.String()
		}
		b.WriteString(before + a.Out.Paint(screen.Yellow+";"+screen.Bold, word))
		snippet = after
	}
}
