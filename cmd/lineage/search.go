package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage/chat"
)

type searchOptions struct {
	query string
	roles []string
	user  string
	limit int
}

func searchCommand(a *app) *cobra.Command {
	o := &searchOptions{}
	c := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find messages by what they say",
		Long: `Finds messages by their words, the best first: in all chats, or in the one that --chat names. Words
are found in all their forms; "several words" in quotes stand together, word* begins so, and AND, OR, NOT
and NEAR(…) combine them. Text that is no valid query is searched for its words. What a store is
searched with is kept in a file beside it, and made anew when that is gone. Where nothing is found, it says so on
standard error and exits with 9.`,
		Example: `  lineage search lisbon
  lineage search '"fish in" OR tram*' --role assistant -n 5 --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.query = strings.Join(args, " ")
			return runSearch(ctx, a, o)
		}),
	}
	c.Flags().StringSliceVar(&o.roles, "role", nil, "only messages of these roles")
	c.Flags().StringVar(&o.user, "user", "", "only in chats of this user")
	c.Flags().IntVarP(&o.limit, "limit", "n", 0, fmt.Sprintf("at most so many (default %d)", chat.DefaultSearchLimit))
	return c
}

// hitRecord is a message that a search found.
type hitRecord struct {
	// ID is the message's id of its maker's choice, or the one it has among chats.
	ID   string `json:"id"`
	Chat string `json:"chat"`
	Role string `json:"role"`
	// Rank orders the hits: the higher, the better.
	Rank float64 `json:"rank"`
	// Snippet is where it matches, the words between <mark> and </mark>.
	Snippet string `json:"snippet"`
	Text    string `json:"text"`
}

func (*hitRecord) recordType() string { return "hit" }

// printHits prints what a search found.
func (a *app) printHits(results []chat.SearchResult) error {
	for i := range results {
		r := &results[i]
		m := newChatMessageRecord(&r.Message, 0)
		if a.json {
			if err := a.emit(&hitRecord{ID: m.ID, Chat: r.Message.ChatID, Role: m.Role, Rank: r.Rank, Snippet: r.Snippet, Text: m.Text}); err != nil {
				return err
			}
			continue
		}
		a.printf("%s  %s\n", a.out.Paint(screen.OfRole(m.Role)+";1", screen.Line(m.Role)),
			a.out.Paint(screen.Dim, screen.Line(m.ID)+"  "+screen.Time(m.CreatedAt)))
		snippet := r.Snippet
		if snippet == "" {
			snippet = screen.Cut(screen.Line(m.Text), 200)
		}
		a.printf("    %s\n", a.marked(screen.Line(snippet)))
	}
	if len(results) == 0 {
		return errNothingFound
	}
	return nil
}

// marked returns a snippet with what stands between its marks in a style, or as plain
// text where there are no styles.
func (a *app) marked(snippet string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(snippet, "<mark>")
		word, after, closed := strings.Cut(rest, "</mark>")
		if !found || !closed {
			b.WriteString(snippet)
			return b.String()
		}
		b.WriteString(before + a.out.Paint(screen.Yellow+";"+screen.Bold, word))
		snippet = after
	}
}

func runSearch(ctx context.Context, a *app, o *searchOptions) error {
	if a.dsn() == "" {
		return searchStore(ctx, a, o)
	}
	return a.onDB(ctx, func(ctx context.Context, d *database) error {
		results, err := d.search(ctx, o)
		if err != nil {
			return err
		}
		return d.printHits(results)
	})
}

// search searches the chat that was named, or all.
func (d *database) search(ctx context.Context, o *searchOptions) ([]chat.SearchResult, error) {
	options := chat.SearchOptions{Roles: o.roles, Limit: o.limit}
	if d.namedChat() != "" {
		return d.chats.SearchMessages(ctx, d.current, o.query, options)
	}
	return d.db.SearchAll(ctx, o.user, o.query, options)
}
