package history

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/lineage"
)

type editOptions struct {
	message, text string
	file          string
	in            string
	replay        string
	branch        string
}

func EditCommand(a *app.App) *cobra.Command {
	o := &editOptions{}
	c := &cobra.Command{
		Use:   "edit MESSAGE [TEXT]",
		Short: "Fork a history with one message changed",
		Long: `Creates a fork in which a message is replaced; the original does not change. The new
text is recorded as derived from the old one. The fork ends with the new message, or
continues with the messages after it: --replay user repeats those of the user, --replay all
repeats all. Prints the new context's id.`,
		Example: `  lineage edit :1 "Plan a week in Lisbon." --replay user
  lineage edit cheap~1 "By bus?" --branch by-bus --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.message = args[0]
			if len(args) == 2 && o.file != "" || len(args) < 2 && o.file == "" {
				return app.Usagef("give the new text, or --file, and not both")
			}
			o.text = app.Arg(args, 1)
			if err := app.NewName(o.branch); err != nil {
				return err
			}
			return runEdit(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "read the new text from this file; - is standard input")
	f.StringVar(&o.in, "in", "", "the context whose history it is changed in, if the message does not tell")
	f.StringVar(&o.replay, "replay", "", "messages to repeat after it: all, or those of a role")
	f.StringVarP(&o.branch, "branch", "b", "", "also make a branch of it under this name")
	return c
}

func runEdit(ctx context.Context, a *app.App, o *editOptions) error {
	body := []byte(o.text)
	if o.file != "" {
		in, err := a.Input(ctx, o.file)
		if err != nil {
			return err
		}
		defer in.Close()
		if body, err = app.ReadAll(o.file, in, app.MaxInput); err != nil {
			return err
		}
	}
	return a.Open(ctx, app.Changing, func(ctx context.Context, s *app.OpenStore) error {
		found, err := s.Refs.Find(ctx, o.message)
		if err != nil {
			return err
		}
		old, err := s.Refs.Entry(ctx, found)
		if err != nil {
			return err
		}
		in, err := threads.Holder(ctx, s, found, o.in)
		if err != nil {
			return err
		}
		edited := old.Item()
		edited.Content, edited.Body, edited.CreatedAt = lineage.ContentID{}, body, time.Time{}
		options := lineage.EditOptions{Index: found.Index, Replay: lineage.Replaying(o.replay), Metadata: []byte(lineage.EditMark)}
		var home *lineage.Thread
		if o.branch != "" {
			if home, err = threads.BranchHome(ctx, s, found, in); err != nil {
				return err
			}
			options.Thread = home.ID()
		}
		fork, err := in.Edit(ctx, found.Span, edited, options)
		if err != nil {
			return err
		}
		if home != nil {
			if err := home.NameBranch(ctx, o.branch, fork); err != nil {
				return errors.Join(err, fork.Delete(ctx))
			}
		}
		s.Note("a fork in which message %d reads differently", old.Position)
		return show.Created(ctx, s, fork)
	})
}
