package conversations

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// valueOptions name the owner of values.
type valueOptions struct {
	context, user, app string
	ofStore            bool
	at                 string
}

func (o *valueOptions) bind(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&o.context, "context", "", "values of this branch or context, and those that it inherits")
	f.StringVar(&o.user, "user", "", "values of a user")
	f.StringVar(&o.app, "app", "", "values of an application")
	f.BoolVar(&o.ofStore, "of-store", false, "values of the store itself")
	c.MarkFlagsMutuallyExclusive("context", "user", "app", "of-store")
}

func ValueCommand(a *app.App) *cobra.Command {
	o := &valueOptions{}
	c := &cobra.Command{
		Use:     "value",
		Aliases: []string{"values"},
		Short:   "List, read and set named values",
		Long: `Lists, reads and sets named values. They are small JSON documents that belong to a thread, a context, a user, an application
or the store. Programs keep their state in them. A fork reads the values of the context that it was forked
from, as they were at the message where it begins. Without a subcommand, the values of the thread are listed.`,
		Example: `  lineage value
  lineage value set step '"paid"'
  lineage value list --user ada`,
		Args: app.KnownCommand,
		RunE: o.on(a, app.Reading, listValues),
	}
	o.bind(c)
	c.AddCommand(valueListCommand(a, o), valueGetCommand(a, o), valueSetCommand(a, o), valueDeleteCommand(a, o), valueHistoryCommand(a, o))
	return c
}

func valueListCommand(a *app.App, o *valueOptions) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [PREFIX]",
		Short:   "List values, all or those with a key prefix",
		Example: `  lineage value list plan/ --context main`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    o.on(a, app.Reading, listValues),
	}
	atFlag(c, o)
	return c
}

func atFlag(c *cobra.Command, o *valueOptions) {
	c.Flags().StringVar(&o.at, "at", "", "with --context, as of a message of its history")
}

func valueGetCommand(a *app.App, o *valueOptions) *cobra.Command {
	c := &cobra.Command{
		Use:     "get KEY",
		Short:   "Print a value as it was set",
		Example: `  lineage value set step '"paid"' && lineage value get step`,
		Args:    cobra.ExactArgs(1),
		RunE:    o.on(a, app.Reading, getValue),
	}
	atFlag(c, o)
	return c
}

func valueSetCommand(a *app.App, o *valueOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY JSON",
		Short: "Set a value",
		Long:  "Sets a value, which is JSON. With - it is read from standard input.",
		Example: `  lineage value set step '"paid"'
  lineage value set theme '{"dark":true}' --user ada`,
		Args: cobra.ExactArgs(2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			value := []byte(args[1])
			if args[1] == "-" {
				var err error
				if value, err = app.ReadAll("the value", a.Stdin, maxValue); err != nil {
					return err
				}
			}
			return a.Open(ctx, app.Changing, func(ctx context.Context, s *app.OpenStore) error { return runValueSet(ctx, s, o, args[0], value) })
		}),
	}
}

// maxValue limits a value that is read from standard input, in bytes.
const maxValue = 16 << 20

func valueDeleteCommand(a *app.App, o *valueOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "delete KEY",
		Short:   "Delete a value",
		Long:    "Deletes a value. In a context it also hides what the context would inherit.",
		Example: `  lineage value set step '"paid"' && lineage value delete step`,
		Args:    cobra.ExactArgs(1),
		RunE:    o.on(a, app.Changing, deleteValue),
	}
}

func valueHistoryCommand(a *app.App, o *valueOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "history KEY",
		Short:   "List the earlier values of a key, latest first",
		Example: `  lineage value history step`,
		Args:    cobra.ExactArgs(1),
		RunE:    o.on(a, app.Reading, listHistory),
	}
}

// values returns the values of the owner in the options.
func values(ctx context.Context, s *app.OpenStore, o *valueOptions) (*lineage.Values, error) {
	switch {
	case o.at != "" && o.context == "":
		return nil, app.Usagef("--at needs --context")
	case o.user != "":
		return s.Store.Values(lineage.Owner{Scope: lineage.UserScope, Name: o.user}), nil
	case o.app != "":
		return s.Store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: o.app}), nil
	case o.ofStore:
		return s.Store.Values(lineage.Owner{Scope: lineage.StoreScope}), nil
	case o.context == "":
		t, err := s.NeedThread()
		if err != nil {
			return nil, err
		}
		return s.Store.Values(lineage.Owner{Thread: t.ID()}), nil
	}
	found, err := s.Refs.Context(ctx, o.context)
	if err != nil {
		return nil, err
	}
	values := s.Store.Values(lineage.Owner{Context: found.Context.ID()})
	if o.at == "" {
		return values, nil
	}
	at, err := s.Refs.Find(ctx, o.at)
	if err != nil {
		return nil, err
	}
	return values.At(at.Span), nil
}

// on returns the function that cobra calls for a command on the values of an owner.
func (o *valueOptions) on(a *app.App, mode app.OpenMode, run func(context.Context, *app.OpenStore, *lineage.Values, []string) error) func(*cobra.Command, []string) error {
	return a.On(mode, func(ctx context.Context, s *app.OpenStore, args []string) error {
		values, err := values(ctx, s, o)
		if err != nil {
			return err
		}
		return run(ctx, s, values, args)
	})
}

func listValues(ctx context.Context, s *app.OpenStore, values *lineage.Values, args []string) error {
	return printValues(s, values.All(ctx, app.Arg(args, 0)), "no values; 'lineage value set' sets one")
}

func listHistory(ctx context.Context, s *app.OpenStore, values *lineage.Values, args []string) error {
	return printValues(s, values.History(ctx, args[0], 0), fmt.Sprintf("%q was never set", args[0]))
}

func printValues(s *app.OpenStore, values iter.Seq2[lineage.Value, error], none string) error {
	list := s.List("KEY", "SET", "IN", "VALUE")
	for v, err := range values {
		if err != nil {
			return err
		}
		r, text := records.OfValue(&v), string(v.JSON)
		if v.JSON == nil {
			text = "(deleted)"
		}
		list.Add(r, app.IDCell(r.Key), app.TimeCell(r.SetAt), app.PlainCell(show.ShortID(r.Context)), app.PlainCell(text))
	}
	return list.End("%s", none)
}

func getValue(ctx context.Context, s *app.OpenStore, values *lineage.Values, args []string) error {
	v, err := values.Get(ctx, args[0])
	if err != nil {
		return err
	}
	return printValue(s, &v)
}

func printValue(s *app.OpenStore, v *lineage.Value) error {
	if s.JSON {
		return s.Emit(records.OfValue(v))
	}
	_, err := fmt.Fprintln(s.Raw(), string(v.JSON))
	return err
}

func runValueSet(ctx context.Context, s *app.OpenStore, o *valueOptions, key string, value []byte) error {
	if !json.Valid(value) {
		return app.Hint(app.Usagef("value: %w", app.ErrNotJSON), "a text needs quotes of its own: '\"text\"'")
	}
	values, err := values(ctx, s, o)
	if err != nil {
		return err
	}
	if err := values.Set(ctx, key, value); err != nil {
		return err
	}
	v, err := values.Get(ctx, key)
	if err != nil || !s.JSON {
		return err
	}
	return printValue(s, &v)
}

func deleteValue(ctx context.Context, s *app.OpenStore, values *lineage.Values, args []string) error {
	if err := values.Delete(ctx, args[0]); err != nil {
		return err
	}
	return s.Deleted(&records.Deleted{What: "value", Name: args[0]})
}
