package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

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

func valueCommand(a *app) *cobra.Command {
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
		Args: knownCommand,
		RunE: o.on(a, reading, listValues),
	}
	o.bind(c)
	c.AddCommand(valueListCommand(a, o), valueGetCommand(a, o), valueSetCommand(a, o), valueDeleteCommand(a, o), valueHistoryCommand(a, o))
	return c
}

func valueListCommand(a *app, o *valueOptions) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [PREFIX]",
		Short:   "List values, all or those with a key prefix",
		Example: `  lineage value list plan/ --context main`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    o.on(a, reading, listValues),
	}
	atFlag(c, o)
	return c
}

func atFlag(c *cobra.Command, o *valueOptions) {
	c.Flags().StringVar(&o.at, "at", "", "with --context, as of a message of its history")
}

func valueGetCommand(a *app, o *valueOptions) *cobra.Command {
	c := &cobra.Command{
		Use:     "get KEY",
		Short:   "Print a value as it was set",
		Example: `  lineage value set step '"paid"' && lineage value get step`,
		Args:    cobra.ExactArgs(1),
		RunE:    o.on(a, reading, getValue),
	}
	atFlag(c, o)
	return c
}

func valueSetCommand(a *app, o *valueOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY JSON",
		Short: "Set a value",
		Long:  "Sets a value, which is JSON. With - it is read from standard input.",
		Example: `  lineage value set step '"paid"'
  lineage value set theme '{"dark":true}' --user ada`,
		Args: cobra.ExactArgs(2),
		RunE: a.does(func(ctx context.Context, args []string) error {
			value := []byte(args[1])
			if args[1] == "-" {
				var err error
				if value, err = readAll("the value", a.stdin, maxValue); err != nil {
					return err
				}
			}
			return a.open(ctx, changing, func(ctx context.Context, s *session) error { return runValueSet(ctx, s, o, args[0], value) })
		}),
	}
}

// maxValue is the size of the largest value that is read from standard input.
const maxValue = 16 << 20

func valueDeleteCommand(a *app, o *valueOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "delete KEY",
		Short:   "Delete a value",
		Long:    "Deletes a value. In a context it also hides what the context would inherit.",
		Example: `  lineage value set step '"paid"' && lineage value delete step`,
		Args:    cobra.ExactArgs(1),
		RunE:    o.on(a, changing, deleteValue),
	}
}

func valueHistoryCommand(a *app, o *valueOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "history KEY",
		Short:   "List the earlier values of a key, latest first",
		Example: `  lineage value history step`,
		Args:    cobra.ExactArgs(1),
		RunE:    o.on(a, reading, listHistory),
	}
}

// values returns the values of the owner that the options name.
func (s *session) values(ctx context.Context, o *valueOptions) (*lineage.Values, error) {
	switch {
	case o.at != "" && o.context == "":
		return nil, usagef("--at needs --context")
	case o.user != "":
		return s.store.Values(lineage.Owner{Scope: lineage.UserScope, Name: o.user}), nil
	case o.app != "":
		return s.store.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: o.app}), nil
	case o.ofStore:
		return s.store.Values(lineage.Owner{Scope: lineage.StoreScope}), nil
	case o.context == "":
		t, err := s.needThread()
		if err != nil {
			return nil, err
		}
		return s.store.Values(lineage.Owner{Thread: t.ID()}), nil
	}
	found, err := s.refs.Context(ctx, o.context)
	if err != nil {
		return nil, err
	}
	values := s.store.Values(lineage.Owner{Context: found.Context.ID()})
	if o.at == "" {
		return values, nil
	}
	at, err := s.refs.Find(ctx, o.at)
	if err != nil {
		return nil, err
	}
	return values.At(at.Span), nil
}

// on returns what cobra calls for a command that works on the values of an owner.
func (o *valueOptions) on(a *app, mode openMode, run func(context.Context, *session, *lineage.Values, []string) error) func(*cobra.Command, []string) error {
	return a.on(mode, func(ctx context.Context, s *session, args []string) error {
		values, err := s.values(ctx, o)
		if err != nil {
			return err
		}
		return run(ctx, s, values, args)
	})
}

func listValues(ctx context.Context, s *session, values *lineage.Values, args []string) error {
	return s.printValues(values.All(ctx, arg(args, 0)), "no values; 'lineage value set' sets one")
}

func listHistory(ctx context.Context, s *session, values *lineage.Values, args []string) error {
	return s.printValues(values.History(ctx, args[0]), fmt.Sprintf("%q was never set", args[0]))
}

func (s *session) printValues(values iter.Seq2[lineage.Value, error], none string) error {
	list := s.list("KEY", "SET", "IN", "VALUE")
	for v, err := range values {
		if err != nil {
			return err
		}
		r, text := records.OfValue(&v), string(v.JSON)
		if v.JSON == nil {
			text = "(deleted)"
		}
		list.add(r, idCell(r.Key), timeCell(r.SetAt), plainCell(shortID(r.Context)), plainCell(text))
	}
	return list.end("%s", none)
}

func getValue(ctx context.Context, s *session, values *lineage.Values, args []string) error {
	v, err := values.Get(ctx, args[0])
	if err != nil {
		return err
	}
	return s.printValue(&v)
}

func (s *session) printValue(v *lineage.Value) error {
	if s.json {
		return s.emit(records.OfValue(v))
	}
	_, err := fmt.Fprintln(s.raw(), string(v.JSON))
	return err
}

func runValueSet(ctx context.Context, s *session, o *valueOptions, key string, value []byte) error {
	if !json.Valid(value) {
		return hint(usagef("value: %w", errNotJSON), "a text needs quotes of its own: '\"text\"'")
	}
	values, err := s.values(ctx, o)
	if err != nil {
		return err
	}
	if err := values.Set(ctx, key, value); err != nil {
		return err
	}
	v, err := values.Get(ctx, key)
	if err != nil || !s.json {
		return err
	}
	return s.printValue(&v)
}

func deleteValue(ctx context.Context, s *session, values *lineage.Values, args []string) error {
	if err := values.Delete(ctx, args[0]); err != nil {
		return err
	}
	return s.deleted(&records.Deleted{What: "value", Name: args[0]})
}
