package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
)

type eraseOptions struct {
	name string
	yes  bool
}

func eraseCommand(a *app) *cobra.Command {
	o := &eraseOptions{}
	c := &cobra.Command{
		Use:   "erase CONTENT",
		Short: "Remove a content's bytes from every history",
		Long: `Removes the bytes of a content from everything that reads the store, for good. Histories that
use it still read, with a marker in its place. The content is named by its id, the beginning of one, or a
message that holds it. Without --yes it only tells how often it is used.`,
		Example: `  lineage erase :2
  lineage erase :2 --yes`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = args[0]
			return a.change(ctx, func(ctx context.Context, s *session) error { return runErase(ctx, s, o) })
		}),
	}
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do it")
	return c
}

// erasedRecord tells what erase did or would do.
type erasedRecord struct {
	ContentID string `json:"content_id"`
	// Uses is how many messages, documents and files hold it.
	Uses int `json:"uses"`
	// Erased is false where --yes was not given.
	Erased bool `json:"erased"`
}

func (*erasedRecord) recordType() string { return "erased" }

func runErase(ctx context.Context, s *session, o *eraseOptions) error {
	id, err := s.refs.Content(ctx, o.name)
	if err != nil {
		return err
	}
	has, err := s.store.Has(ctx, id)
	if err != nil {
		return err
	}
	if !has {
		return refs.Unknown("content", o.name, nil)
	}
	r := erasedRecord{ContentID: id.String(), Erased: o.yes}
	for _, err := range s.store.Where(ctx, id) {
		if err != nil {
			return err
		}
		r.Uses++
	}
	if o.yes {
		if err := s.store.Erase(ctx, id); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		return s.emit(&r)
	case o.yes:
		s.printf("erased %s, used %d times\n", id, r.Uses)
	default:
		s.printf("would erase %s, used %d times; --yes does it\n", id, r.Uses)
	}
	return nil
}
