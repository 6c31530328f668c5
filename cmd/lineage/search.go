package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/structure"
)

type searchOptions struct {
	query        string
	roles        []string
	user         string
	session      sessionFlags
	since, until timeFlag
	limit        int
}

// among returns the threads that are searched, nil for all.
func (o *searchOptions) among() (*lineage.ThreadQuery, error) {
	if !o.session.given() && o.since.IsZero() && o.until.IsZero() {
		return nil, nil
	}
	is, err := o.session.metadata()
	return &lineage.ThreadQuery{Metadata: is, From: o.since.Time, To: o.until.Time}, err
}

func searchCommand(a *app) *cobra.Command {
	o := &searchOptions{}
	c := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find messages, documents, assets and summaries by text",
		Long: `Finds messages by their words, the best first: in all threads, or in the one that --thread names. A store is also
searched for documents and text assets, by their names too, and for summaries; and, without --thread and --user, in contexts outside
threads. A message that several threads share is shown once, with their titles. Words are found in all their forms; "several words" in quotes
are found as a phrase, word* finds words that begin with it, and AND, OR, NOT and NEAR(…) combine them. Text that is not a valid
query is searched for its words. The search index is a file of the store, which is rebuilt if it is missing, or for each search if
the store cannot be written. If nothing is found, the command exits with 9.`,
		Example: `  lineage search lisbon
  lineage search '"fish in" OR tram*' --role assistant -n 5 --json
  lineage search lisbon --since 2026-01-01`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if o.limit < 0 {
				return usagef("--limit %d: it is not below 0", o.limit)
			}
			o.query = strings.Join(args, " ")
			return a.openThreads(ctx, reading, func(ctx context.Context, in threads) error {
				hits, err := in.search(ctx, o)
				if err != nil {
					return err
				}
				return a.printHits(hits)
			})
		}),
	}
	c.Flags().StringSliceVar(&o.roles, "role", nil, "only messages of these roles")
	c.Flags().StringVar(&o.user, "user", "", "only in threads of this user")
	o.session.add(c.Flags())
	c.Flags().Var(&o.since, "since", "only in threads updated at this time or later: 2026-01-31, or as in RFC 3339")
	c.Flags().Var(&o.until, "until", "only in threads updated before this time")
	c.Flags().IntVarP(&o.limit, "limit", "n", 0, fmt.Sprintf("at most so many (default %d)", chat.DefaultSearchLimit))
	return c
}

// hit is what a search found. Some fields are only shown to people.
type hit struct {
	records.Hit
	createdAt time.Time
	// in are the threads and contexts that have it, at most maxHitThreads.
	in []string
}

// addIn adds a thread that has it, by its title and the id that people read.
func (h *hit) addIn(title, id string) {
	if title != "" {
		id = screen.Cut(screen.Line(title), 40) + " (" + id + ")"
	}
	h.in = append(h.in, id)
}

// searchFactor is how many matches are looked at for each hit that is wanted: threads that share a message have a match each.
const searchFactor = 16

// maxHits bounds how many hits can be asked for.
const maxHits = 1 << 20

// findHits returns the best hits, each message once. find is called with growing limits until there are enough messages.
func findHits(limit int, find func(limit int) ([]chat.SearchResult, error)) ([]*hit, error) {
	limit = min(cmp.Or(limit, chat.DefaultSearchLimit), maxHits)
	for ask := limit * searchFactor; ; ask *= searchFactor {
		results, err := find(ask)
		if err != nil {
			return nil, err
		}
		hits := hitsOf(results)
		if len(hits) >= limit || len(results) < ask {
			return hits[:min(limit, len(hits))], nil
		}
	}
}

// hitsOf returns the messages that were found, each once with all its threads, in the order of the results.
func hitsOf(results []chat.SearchResult) []*hit {
	var hits []*hit
	seen := make(map[string]*hit)
	for i := range results {
		r := &results[i]
		m := newChatMessageRecord(&r.Message, 0)
		// In a projection, threads that share a message have it under its address after their ids.
		id := refs.WithoutThread(m.ID)
		h := seen[id]
		if h == nil {
			h = &hit{Hit: records.Hit{ID: id, Kind: structure.MessageUsage.String(), Role: m.Role, Rank: r.Rank, Snippet: r.Snippet, Text: m.Text}, createdAt: m.CreatedAt}
			seen[id] = h
			hits = append(hits, h)
		}
		h.Threads = append(h.Threads, records.HitThread{ID: r.Message.ChatID})
	}
	return hits
}

// maxHitThreads is how many of a message's threads are named to a person.
const maxHitThreads = 3

// printHits prints what a search found.
func (a *app) printHits(hits []*hit) error {
	for _, h := range hits {
		if h.Threads == nil {
			h.Threads = []records.HitThread{}
		}
		in := h.in
		if more := len(h.Threads) + len(h.Contexts) - len(in); more > 0 {
			in = append(in, fmt.Sprintf("and %s more", screen.Count(more)))
		}
		what := cmp.Or(h.Role, strings.TrimSpace(h.Kind+" "+h.Name))
		snippet := cmp.Or(h.Snippet, screen.Cut(screen.Line(h.Text), 200))
		err := a.print(&h.Hit, "%s  %s  %s\n    %s\n", a.out.Paint(screen.OfRole(h.Role)+";1", screen.Line(what)),
			a.out.Paint(screen.Dim, screen.Line(refs.ShortAddress(h.ID))+"  "+screen.Time(h.createdAt)), screen.Line(strings.Join(in, ", ")),
			a.marked(screen.Line(snippet)))
		if err != nil {
			return err
		}
	}
	if len(hits) == 0 {
		return errNothingFound
	}
	return nil
}

// marked returns a snippet with the text between its marks in a style, or as plain
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

// search implements threads: it searches the thread that was named, or all.
func (d *database) search(ctx context.Context, o *searchOptions) ([]*hit, error) {
	if among, err := o.among(); err != nil || among != nil {
		return nil, errors.Join(err, usagef("a search in a database is limited by --thread, --user and --role only"))
	}
	hits, err := findHits(o.limit, func(limit int) ([]chat.SearchResult, error) {
		options := chat.SearchOptions{Roles: o.roles, Limit: limit}
		if d.namedThread() != "" {
			return d.chats.SearchMessages(ctx, d.current, o.query, options)
		}
		return sqlchat.SearchAll(ctx, d.db, o.user, o.query, options)
	})
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		for i := range h.Threads {
			if i == maxHitThreads && !d.json {
				break
			}
			c, err := d.chats.Chat(ctx, h.Threads[i].ID)
			if err != nil {
				return nil, err
			}
			title := ""
			if c != nil {
				h.Threads[i].Title = c.Title
				if title, err = d.shownTitle(ctx, c); err != nil {
					return nil, err
				}
			}
			h.addIn(title, h.Threads[i].ID)
		}
	}
	return hits, nil
}
