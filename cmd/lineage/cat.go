package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/content"
)

func catCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "cat CONTENT",
		Short: "Print the bytes of a content",
		Long: `Prints the bytes of a content as they are, but for control characters on a terminal. The content is
named by its id, the beginning of one, or a message that holds it. With --json it is described instead.`,
		Example: `  lineage cat :1
  lineage cat main:2 > answer.txt
  lineage cat :1 --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return a.read(ctx, func(ctx context.Context, s *session) error { return runCat(ctx, s, args[0]) })
		}),
	}
}

func runCat(ctx context.Context, s *session, name string) error {
	id, err := s.refs.Content(ctx, name)
	if err != nil {
		return err
	}
	block, err := s.store.Block(ctx, id)
	if err != nil {
		return err
	}
	if s.json {
		created := block.CreatedAt.UTC()
		return s.emit(&contentRecord{
			ID: id.String(), MediaType: block.Type, Size: block.Size, Origin: newOrigin(block.Origin.By(content.Attribution{})), CreatedAt: &created,
		})
	}
	if s.out.Terminal && !isText(block.Type) {
		return usagef("%s of %s are not for a terminal: send them to a file", screen.Bytes(block.Size), block.Type)
	}
	body, err := s.store.Body(ctx, id)
	if err != nil {
		return err
	}
	if _, err := io.Copy(s.raw(), body); err != nil {
		return fmt.Errorf("content %s: %w", id, err)
	}
	if s.out.Terminal {
		s.printf("\n")
	}
	return nil
}
