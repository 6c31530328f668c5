package conversations

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/records"
)

func threadListCommand(a *app.App) *cobra.Command {
	o := &threads.ThreadListOptions{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the threads, last updated first",
		Long: `Lists the threads, last updated first. A thread is updated when it
is changed and when it gets a message. Messages count by their own times, so
imported threads are sorted by the times of their archive. MESSAGES counts
those of the active branch; 0+4 says that only subagents have some, 4.

Only the page that is shown is read. With --limit, the token for the next
page is printed after it. A narrow terminal shows fewer columns. Columns that
are empty in the first 1,000 rows are left out. Costs are shown after the
first 'lineage usage', which reads the whole store.`,
		Example: `  lineage thread list
  lineage thread list --user ada --limit 20 --json
  lineage thread list --project . --agent claude-code --since 2026-01-01
  lineage thread list --title trip --metadata topic=x`,
		Args: cobra.NoArgs,
		RunE: threads.On(a, app.Reading, func(ctx context.Context, in threads.Keeper, _ []string) error {
			session, err := o.Session.Metadata()
			if err != nil {
				return err
			}
			o.Metadata = append(o.Metadata, session...)
			return runThreadList(ctx, a, in, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.User, "user", "", "only this user's")
	f.StringVar(&o.Source, "source-prefix", "", "only those whose source id has this prefix")
	f.StringVar(&o.Title, "title", "", "only those whose title has this prefix, ignoring case; a first prompt that is listed for want of a title is none")
	f.Var(&o.Metadata, "metadata", "only those with this KEY=VALUE in their metadata, or with VALUE in the array there; VALUE is JSON, or else a string; may be repeated")
	o.Session.Add(f)
	f.Var(&o.Since, "since", "only those updated at this time or later: "+app.TimeForms)
	f.Var(&o.Until, "until", "only those updated before this time")
	f.BoolVar(&o.Gone, "gone", false, "only sessions of this machine whose files the agent has deleted, as 'lineage follow' saw it last")
	f.BoolVar(&o.Oldest, "oldest", false, "list the least recently updated one first")
	f.IntVarP(&o.Limit, "limit", "n", 0, "list at most this many")
	f.StringVar(&o.After, "after", "", "continue after the page that ended with this TOKEN")
	return c
}

func runThreadList(ctx context.Context, a *app.App, in threads.Keeper, o *threads.ThreadListOptions) error {
	list := a.List("", "ID", "CHANGED", "MESSAGES", "BRANCHES", "AGENT", "PROJECT", "COST", "TITLE")
	list.Optional("AGENT", "PROJECT", "COST")
	list.Spare("BRANCHES", "MESSAGES", "COST", "PROJECT", "AGENT", "CHANGED")
	next := ""
	err := in.ListThreads(ctx, o, func(r *records.Thread) error {
		next = r.Next
		cost := ""
		if r.Usage != nil {
			cost = show.CostText(r.Usage)
		}
		list.Add(r,
			app.MarkCell(r.Current), app.IDCell(show.ShortID(r.ID)), app.TimeCell(r.UpdatedAt), screen.Cell{Text: r.MessageCount(), Right: true}, app.CountCell(uint64(r.Branches)),
			app.PlainCell(r.States(archive.KeyAgent)), app.PlainCell(folderName(r.States(archive.KeyProject))), screen.Cell{Text: cost, Right: true}, app.PlainCell(r.ShownTitle))
		return list.Failed()
	})
	if err != nil {
		return err
	}
	if err := list.End("%s", o.None()); err != nil || next == "" {
		return err
	}
	a.Note("more with --after %s", next)
	return nil
}

// folderName returns the last part of a path of any system.
func folderName(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
