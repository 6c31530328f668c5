package chat

import (
	"bytes"
	"context"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// LoadingValue is a named value as it was elsewhere.
type LoadingValue struct {
	// Owner is what it belongs to. The thread is that of the chat.
	Owner  structure.Owner
	ChatID string
	Key    string
	// JSON is nil for a value that was deleted.
	JSON []byte
	// Seen is the tip of its context when the value was set. Gone says that there is none any
	// more.
	Seen Ref
	Gone bool
	// SetAt is in Unix milliseconds.
	SetAt int64
}

// LoadValue brings a value into a store, and reports whether anything changed. A value that is
// there, as it is or as one that was replaced, stays, and so does one that was set later.
// Values of one key come in the order in which they were set.
func LoadValue(ctx context.Context, store *lineage.Store, l LoadingValue) (changed bool, err error) {
	s, at := latest(store), time.UnixMilli(l.SetAt).UTC()
	return s.updateAt(ctx, at, func(in *state) error {
		of, incarnation, seen, err := in.placeOfValue(ctx, &l)
		if err != nil {
			return err
		}
		key := structure.ValueKey{Owner: of, Key: l.Key}
		newest := true
		for is, err := range in.from.ValueHistory(ctx, key) {
			if err != nil || newest && is.At.After(at) || is.At.Equal(at) && isSet(&is, l.JSON) {
				return err
			}
			newest = false
		}
		writer := write.Of(in.store)
		_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
			inline, large := l.JSON, content.ID{}
			if len(inline) > structure.MaxInlineValue {
				block, err := writer.Upload(ctx, content.Block{Type: content.TypeJSON, CreatedAt: at}, bytes.NewReader(inline))
				if err != nil {
					return err
				}
				b.Adopt(block)
				inline, large = nil, block.ID
			}
			b.Value(key, incarnation, inline, large, seen)
			return nil
		})
		return err
	})
}

// placeOfValue returns the owner of a value in the store, the incarnation of its thread and the
// span that its context saw.
func (s *state) placeOfValue(ctx context.Context, l *LoadingValue) (of structure.Owner, incarnation uint64, seen structure.SpanRef, err error) {
	of = l.Owner
	if of.Scope != structure.ThreadScope && of.Scope != structure.ContextScope {
		return of, 0, seen, nil
	}
	t, err := s.mustThread(ctx, l.ChatID)
	if err != nil {
		return of, 0, seen, err
	}
	if of.Scope == structure.ThreadScope {
		of.Thread = t.ID
		return of, t.Incarnation, seen, nil
	}
	if _, err = s.from.Context(ctx, of.Context); err != nil {
		return of, 0, seen, err
	}
	if l.Gone {
		return of, 0, structure.CollectedSpan, nil
	}
	seen, err = s.position(ctx, t, l.Seen)
	return of, 0, seen, err
}

// isSet reports whether a value has some JSON, nil for one that was deleted.
func isSet(is *backend.Value, value []byte) bool {
	if is.Content.IsZero() || value == nil {
		return is.Deleted() == (value == nil) && bytes.Equal(is.JSON, value)
	}
	return is.Content == content.Sum(value)
}
