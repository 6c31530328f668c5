package main

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

type threadListOptions struct {
	user, source, title string
	metadata            metadataFlag
	session             sessionFlags
	since, until        timeFlag
	after               string
	oldest, gone        bool
	limit               int
}

func threadListCommand(a *app) *cobra.Command {
	o := &threadListOptions{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the threads, the one that was updated last first",
		Long: `List the threads, the one that was updated last first. A thread is updated when it
is changed and when it gets a message. Messages count by their own times, so
imported threads are sorted by the times of their archive.

Only the page that is shown is read. With --limit, the token for the next
page is printed after it. Costs are shown after the first 'lineage usage',
which reads the whole store.`,
		Example: `  lineage thread list
  lineage thread list --user ada --limit 20 --json
  lineage thread list --project . --agent claude-code --since 2026-01-01
  lineage thread list --title trip --metadata topic=x`,
		Args: cobra.NoArgs,
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, _ []string) error {
			session, err := o.session.metadata()
			if err != nil {
				return err
			}
			o.metadata = append(o.metadata, session...)
			return runThreadList(ctx, a, in, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.user, "user", "", "only this user's")
	f.StringVar(&o.source, "source-prefix", "", "only those whose source id has this prefix")
	f.StringVar(&o.title, "title", "", "only those whose title has this prefix, in upper or lower case")
	f.Var(&o.metadata, "metadata", "only those with this KEY=VALUE in their metadata, or with VALUE in the array there; VALUE is JSON, or else a string; may be repeated")
	o.session.add(f)
	f.Var(&o.since, "since", "only those updated at this time or later: 2026-01-31, or as in RFC 3339")
	f.Var(&o.until, "until", "only those updated before this time")
	f.BoolVar(&o.gone, "gone", false, "only sessions of this machine whose files the agent has deleted, as 'lineage follow' saw it last")
	f.BoolVar(&o.oldest, "oldest", false, "list the one that was updated first first")
	f.IntVarP(&o.limit, "limit", "n", 0, "at most so many")
	f.StringVar(&o.after, "after", "", "continue after the page that ended with this TOKEN")
	return c
}

// query returns what the flags ask for.
func (o *threadListOptions) query() (q lineage.ThreadQuery, err error) {
	q = lineage.ThreadQuery{
		SourcePrefix: o.source, TitlePrefix: o.title, Metadata: o.metadata, From: o.since.Time, To: o.until.Time, Oldest: o.oldest,
	}
	if o.user != "" {
		q.User = &o.user
	}
	if q.After, err = backend.ParsePageToken(o.after); err != nil {
		return q, usagef("--after: %w", err)
	}
	return q, nil
}

// listThreads implements threads.
func (s inStore) listThreads(ctx context.Context, o *threadListOptions) (list []*records.Thread, err error) {
	q, err := o.query()
	if err != nil {
		return nil, err
	}
	threads := s.store.Threads(ctx, q)
	if o.gone {
		if threads, err = s.onlyGone(ctx, threads); err != nil {
			return nil, err
		}
	}
	page, more, err := pageOf(threads, o.limit)
	if err != nil {
		return nil, err
	}
	for _, t := range page {
		r, err := s.threadRecord(ctx, t.Thread)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if more && t == page[len(page)-1] {
			r.Next = t.Page.String()
		}
		list = append(list, r)
	}
	return list, s.addUsage(ctx, list...)
}

// onlyGone yields the threads that only the store has.
func (s *session) onlyGone(ctx context.Context, all iter.Seq2[*lineage.ListedThread, error]) (iter.Seq2[*lineage.ListedThread, error], error) {
	_, machine, err := s.machine()
	if err != nil {
		return nil, err
	}
	gone, err := follow.OnlyKept(ctx, s.store, machine)
	return func(yield func(*lineage.ListedThread, error) bool) {
		for t, err := range all {
			if err == nil {
				if _, is := gone[t.Was.SourceID]; !is {
					continue
				}
			}
			if !yield(t, err) {
				return
			}
		}
	}, err
}

func runThreadList(ctx context.Context, a *app, in threads, o *threadListOptions) error {
	found, err := in.listThreads(ctx, o)
	if err != nil {
		return err
	}
	heads := []string{"", "ID", "CHANGED", "MESSAGES", "BRANCHES", "TITLE"}
	ofAgents := slices.ContainsFunc(found, func(r *records.Thread) bool { return r.States(archive.KeyAgent) != "" })
	if ofAgents {
		heads = slices.Insert(heads, len(heads)-1, "AGENT", "PROJECT")
	}
	priced := slices.ContainsFunc(found, func(r *records.Thread) bool { return r.Usage != nil })
	if priced {
		heads = slices.Insert(heads, len(heads)-1, "COST")
	}
	list := a.list(heads...)
	next := ""
	for _, r := range found {
		next = r.Next
		title := r.Title
		if !a.json {
			if title, err = in.titleOf(ctx, r); err != nil {
				return err
			}
		}
		row := []screen.Cell{markCell(r.Current), idCell(shortID(r.ID)), timeCell(r.UpdatedAt), countCell(r.Messages), countCell(uint64(r.Branches))}
		if ofAgents {
			row = append(row, plainCell(r.States(archive.KeyAgent)), plainCell(folderName(r.States(archive.KeyProject))))
		}
		if priced {
			row = append(row, screen.Cell{Text: costText(r.Usage), Right: true})
		}
		list.add(r, append(row, plainCell(title))...)
	}
	if err := list.end("%s", o.none()); err != nil || next == "" {
		return err
	}
	a.note("more with --after %s", next)
	return nil
}

// folderName returns the last part of a path of any system.
func folderName(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// none reports that there are no threads to list.
func (o *threadListOptions) none() string {
	if o.user+o.source+o.title+o.after == "" && len(o.metadata) == 0 && o.since.IsZero() && o.until.IsZero() {
		return "no threads; 'lineage thread create' makes one"
	}
	return "no such threads"
}

// titleOf implements threads.
func (s inStore) titleOf(ctx context.Context, r *records.Thread) (string, error) {
	info := lineage.ThreadInfo{SourceID: r.SourceID, Title: r.Title}
	if r.Context != "" {
		var err error
		if info.Active, err = structure.ParseID[lineage.ContextID](r.Context); err != nil {
			return "", err
		}
	}
	return s.shownTitle(ctx, info)
}
