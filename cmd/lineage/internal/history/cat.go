package history

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
)

func CatCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "cat CONTENT",
		Short: "Print the bytes of a content or a message",
		Long: `Prints the bytes of a content as they are, but for control characters on a terminal. The content is
named by its id or the beginning of one. Of a message it prints what was given, byte for byte: its JSON, where it
is more than text. With --json the content is described instead, of a message its first text.`,
		Example: `  lineage cat :1
  lineage cat main:2 > answer.txt
  lineage cat :1 --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, args []string) error { return runCat(ctx, s, args[0]) }),
	}
}

func runCat(ctx context.Context, s *app.OpenStore, name string) error {
	id, e, err := s.Refs.ContentOrEntry(ctx, name)
	if err != nil {
		return err
	}
	if e != nil {
		id = e.Content
	}
	blocks, err := s.Store.View().Blocks(ctx, []content.ID{id})
	if err != nil {
		return err
	}
	block := blocks[0]
	if s.JSON {
		return s.Emit(newContentRecord(&block.Block))
	}
	if s.Out.Terminal && !records.IsText(block.Type) {
		return app.Usagef("%s of %s are not for a terminal: send them to a file", amount.Bytes(block.Size), block.Type)
	}
	var body io.Reader
	if e != nil && len(e.Pieces) > 0 {
		original, err := s.Store.Original(ctx, e)
		if err != nil {
			return err
		}
		body = bytes.NewReader(original)
	} else if body, err = s.Store.Body(ctx, id); err != nil {
		return err
	}
	if _, err := io.Copy(s.Raw(), body); err != nil {
		return fmt.Errorf("content %s: %w", id, err)
	}
	if s.Out.Terminal {
		s.Printf("\n")
	}
	return nil
}
