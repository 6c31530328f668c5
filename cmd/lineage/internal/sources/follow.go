package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/memory"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
)

type followOptions struct {
	once, list, reset bool
	chosen            follow.Choice
}

func FollowCommand(a *app.App) *cobra.Command {
	o := &followOptions{}
	c := &cobra.Command{
		Use:   "follow",
		Short: "Keep the sessions of the agents on this machine",
		Long: `Brings the session files of the coding agents on this machine into the store, and then keeps
the store up to date while they grow, until ctrl-C or SIGTERM stops it. With --once it ends when
everything is read, and with --list it shows what is there and reads nothing.

The folders of the agents are found by themselves. --agent, --not, --from and --not-project choose
what is followed. The choice is remembered in the store for this machine; --reset forgets it. What
an agent deletes, rewrites or cuts off stays in the store. A thread that is deleted in the store
does not come back. Nothing of an agent is changed.

A session is read again from where it was read before. What cannot be read does not stop the rest:
--list shows it. Other processes can use the store meanwhile. If there is no store, it is created:
the one that --store names, or .lineage in the home directory. 'lineage follow install' starts it at
login.`,
		Example: `  lineage follow --list
  lineage follow --once
  lineage follow --once --agent codex --json
  lineage follow --once --not-project ~/private`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(ctx context.Context, _ []string) error { return runFollow(ctx, a, o) }),
	}
	f := c.Flags()
	f.BoolVar(&o.once, "once", false, "end when everything is read")
	f.BoolVar(&o.list, "list", false, "show the agents, their folders, and what cannot be read")
	f.StringSliceVar(&o.chosen.Agents, "agent", nil, "follow these agents only")
	f.StringSliceVar(&o.chosen.Not, "not", nil, "leave out these agents")
	f.StringArrayVar(&o.chosen.From, "from", nil, "follow the session files below this folder, too")
	f.StringArrayVar(&o.chosen.NotProjects, "not-project", nil, "leave out sessions that work in this folder or below it")
	f.BoolVar(&o.reset, "reset", false, "forget what was chosen before")
	c.MarkFlagsMutuallyExclusive("once", "list")
	c.AddCommand(followInstallCommand(a))
	return c
}

func runFollow(ctx context.Context, a *app.App, o *followOptions) error {
	for _, dirs := range [][]string{o.chosen.From, o.chosen.NotProjects} {
		for i, dir := range dirs {
			full, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			dirs[i] = full
		}
	}
	environment, machine, err := a.Machine()
	if err != nil {
		return err
	}
	common := follow.Options{Environment: environment, Machine: machine, Formats: Formats()}
	if o.list {
		return listFollowed(ctx, a, o, common)
	}
	err = a.Open(ctx, app.Create|app.NoThread, func(ctx context.Context, s *app.OpenStore) error {
		if common.Choice, err = choose(ctx, s, o, machine); err != nil {
			return err
		}
		common.Once = o.once
		return Follow(ctx, s, common)
	})
	if !o.once && app.Stopped(ctx, err) {
		return nil
	}
	return err
}

// choose returns what to follow: the stored choice, as changed by the command line.
func (o *followOptions) choose(remembered follow.Choice) (choice follow.Choice, changed bool) {
	choice = remembered
	if o.reset {
		choice, changed = follow.Choice{}, true
	}
	for _, list := range []struct{ chosen, given *[]string }{
		{&choice.Agents, &o.chosen.Agents}, {&choice.Not, &o.chosen.Not}, {&choice.From, &o.chosen.From}, {&choice.NotProjects, &o.chosen.NotProjects},
	} {
		if len(*list.given) > 0 {
			*list.chosen, changed = *list.given, true
		}
	}
	return choice, changed
}

// choose returns what to follow, and stores it.
func choose(ctx context.Context, s *app.OpenStore, o *followOptions, machine follow.Machine) (follow.Choice, error) {
	remembered, err := follow.Remembered(ctx, s.Store, machine)
	if err != nil {
		return remembered, err
	}
	choice, changed := o.choose(remembered)
	if err := choice.Check(); err != nil || !changed {
		return choice, unknownAgent(err)
	}
	for _, dir := range o.chosen.From {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			s.Warn("%s is not there: it is read once it is; --reset forgets it", dir)
		}
	}
	return choice, follow.Remember(ctx, s.Store, machine, choice)
}

func unknownAgent(err error) error {
	if unknown := (*follow.UnknownAgentError)(nil); errors.As(err, &unknown) {
		return app.Hint(&app.UsageError{Err: err}, "'lineage follow --list' lists the agents; --from follows a folder of another one")
	}
	return err
}

// muchRead is the number of bytes read after which memory is returned to the system.
const muchRead = 4 << 20

// Follow follows agents, and prints the events.
func Follow(ctx context.Context, s *app.OpenStore, o follow.Options) error {
	p := &followPrinter{OpenStore: s, ctx: ctx, line: s.Progress("reading", amount.Bytes)}
	defer p.line.Done()
	released := false
	o.Events = func(e follow.Event) {
		p.event(e)
		if e.Kind == follow.Waiting && !o.Once && (!released || e.Bytes >= muchRead) {
			released = true
			memory.Release()
		}
	}
	if err := follow.Run(ctx, s.Store, o); err != nil {
		if !o.Once && app.Stopped(ctx, err) {
			p.stopped()
		}
		return unknownAgent(err)
	}
	p.line.Done()
	packLarge(ctx, s)
	if p.err == nil && p.problems > 0 {
		return fmt.Errorf("%s: %w", amount.Plural(p.problems, "problem"), app.ErrPartial)
	}
	return p.err
}

// listFollowed lists what is followed. Without a store it lists what would be followed.
func listFollowed(ctx context.Context, a *app.App, o *followOptions, common follow.Options) error {
	list := func(ctx context.Context, store *lineage.Store) error {
		remembered, err := follow.Remembered(ctx, store, common.Machine)
		if err != nil {
			return err
		}
		common.Choice, _ = o.choose(remembered)
		all, err := follow.List(ctx, store, common)
		if err != nil {
			return unknownAgent(err)
		}
		return printFollowed(a, all, common.Environment.Home)
	}
	opened := false
	err := a.Open(ctx, app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore) error {
		opened = true
		return list(ctx, s.Store)
	})
	if opened || !errors.Is(err, lineage.ErrNotFound) {
		return err
	}
	none, err := lineage.OpenMemory(ctx, lineage.Options{})
	if err != nil {
		return err
	}
	a.Note("there is no store yet: without --list, the command makes one")
	return errors.Join(list(ctx, none), none.Close())
}

// firstOf reports whether a listing is the one that is printed for an agent without any folder: the first of its listings.
func firstOf(all []follow.Listing, i int) bool {
	for k := range all {
		if all[k].Agent.Name == all[i].Agent.Name && (k < i || all[k].State != follow.NotThere) {
			return false
		}
	}
	return true
}

// shownFolder returns a path as a person writes it on a terminal, with ~ for the home directory.
func shownFolder(a *app.App, path, home string) string {
	if below, ok := strings.CutPrefix(path, home); ok && a.Out.Terminal && (below == "" || os.IsPathSeparator(below[0])) {
		return "~" + below
	}
	return path
}

func printFollowed(a *app.App, all []follow.Listing, home string) error {
	l := a.List("AGENT", "STATE", "FILES", "SIZE", "UNREAD", "GONE", "FOLDER")
	l.Spare("SIZE", "GONE", "FILES", "UNREAD")
	for i := range all {
		listing := &all[i]
		r := &records.Agent{
			Agent: listing.Agent.Name, Path: listing.Path, State: string(listing.State), Verified: listing.Tried, Files: listing.Files, Bytes: listing.Bytes,
			Unread: listing.Unread, LeftOut: listing.LeftOut, Gone: listing.Gone, Soon: listing.Soon, Problems: []records.Problem{},
		}
		for _, p := range listing.Problems {
			r.Problems = append(r.Problems, records.Problem(p))
		}
		state := r.State
		if listing.State == follow.Followed && listing.Agent.Name != "" && listing.Tried == "" {
			state += ", unverified"
		}
		name := listing.Agent.Title
		if name == "" {
			name = "folder"
		}
		if listing.State == follow.NotThere && !a.JSON && !firstOf(all, i) {
			continue
		}
		l.Add(r, app.PlainCell(name), app.PlainCell(state), app.CountCell(uint64(listing.Files)), app.SizeCell(uint64(listing.Bytes)), app.CountCell(uint64(listing.Unread)), app.CountCell(uint64(listing.Gone)), screen.Cell{Text: shownFolder(a, listing.Path, home), Path: true})
	}
	if err := l.End(""); err != nil || a.JSON {
		return err
	}
	for i := range all {
		listing := &all[i]
		if listing.Soon > 0 {
			a.Printf("%s deletes sessions %s after their last change: %s within a week\n", listing.Agent.Title, amount.Plural(int(listing.Keeps.Hours()/24), "day"), amount.Count(listing.Soon))
		}
		var lines []string
		for _, p := range listing.Problems {
			line := screen.Line(p.Path) + ": "
			if p.Skipped > 0 {
				line += amount.Plural(p.Skipped, "item") + " left out: "
			}
			lines = append(lines, line+screen.Line(p.Error))
		}
		show.Some(a, "problem", lines, int64(len(lines)), show.MaxItems)
	}
	return nil
}
