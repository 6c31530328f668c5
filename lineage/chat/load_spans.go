package chat

import (
	"context"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// Spans returns the thread that a chat is and the spans of messages of it, the zero ref for
// none, in a store or inside a transaction of one. It serves those who load what else belongs
// to a chat.
func Spans(ctx context.Context, store *lineage.Store, chatID string, ids ...Ref) (*structure.Thread, []structure.SpanRef, error) {
	s := latest(store)
	t, err := s.mustThread(ctx, chatID)
	if err != nil {
		return nil, nil, err
	}
	at := make([]structure.SpanRef, len(ids))
	for i, id := range ids {
		if at[i], err = s.position(ctx, t, id); err != nil {
			return nil, nil, err
		}
	}
	return t, at, nil
}
