package chat

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// ShownTitle is lineage.Store.ShownTitle for a chat of any store.
func ShownTitle(ctx context.Context, s Store, c *Chat) (string, error) {
	return transcript.Title(c.Title, c.ID, opening(ctx, s, c.ID))
}

// opening yields the messages of the active branch from the first one on.
func opening(ctx context.Context, s Store, chatID string) iter.Seq2[*transcript.Message, error] {
	return func(yield func(*transcript.Message, error) bool) {
		b, err := s.ActiveBranch(ctx, chatID)
		if err != nil {
			yield(nil, err)
			return
		}
		if b == nil || b.HeadMessageID == "" {
			return
		}
		for m, err := range s.MessageChain(ctx, chatID, string(b.HeadMessageID)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(m.Transcribe(), nil) {
				return
			}
		}
	}
}

// Transcribe returns the message as a message of a transcript. Its position is unknown.
func (m Message) Transcribe() *transcript.Message {
	t := &transcript.Message{
		ID: m.ID, Role: m.Name, Model: m.Origin.ModelID, Created: time.UnixMilli(m.CreatedAt).UTC(), Type: content.TypeJSON, Body: m.Data,
	}
	if t.Erased = string(m.Data) == "null"; t.Erased {
		t.Body = nil
	}
	return t
}
