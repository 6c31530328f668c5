package chat

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/title"
)

// ShownTitle is lineage.Store.ShownTitle for a chat of any store.
func ShownTitle(ctx context.Context, s Store, c *Chat) (string, error) {
	return title.Shown(c.Title, c.ID, opening(ctx, s, c.ID))
}

// opening yields the messages of the active branch from the first one on.
func opening(ctx context.Context, s Store, chatID string) iter.Seq2[title.Message, error] {
	return func(yield func(title.Message, error) bool) {
		b, err := s.ActiveBranch(ctx, chatID)
		if err != nil {
			yield(title.Message{}, err)
			return
		}
		if b == nil || b.HeadMessageID == "" {
			return
		}
		for m, err := range s.MessageChain(ctx, chatID, string(b.HeadMessageID)) {
			if err != nil {
				yield(title.Message{}, err)
				return
			}
			if string(m.Data) == "null" { // erased
				continue
			}
			if !yield(title.Message{Role: m.Name, Text: form.Text(m.Data, m.Name)}, nil) {
				return
			}
		}
	}
}
