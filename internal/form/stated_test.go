package form_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// stock has blocks by id.
type stock map[content.ID]*structure.Block

func (s stock) Blocks(_ context.Context, ids []content.ID) (all []*structure.Block, err error) {
	for _, id := range ids {
		b := s[id]
		if b == nil {
			return nil, backend.ErrNotFound
		}
		all = append(all, b)
	}
	return all, nil
}

func (stock) Chunks(context.Context, []content.Key) ([][]byte, error) {
	return nil, backend.ErrNotFound
}

// What a message states is the message with empty texts, and with null for inputs and for values that are gone or too large,
// whichever of its blocks the commit has.
func TestStated(t *testing.T) {
	const limit = 40
	rapid.Check(t, func(t *rapid.T) {
		whole, err := json.Marshal(message().Draw(t, "message"))
		require.NoError(t, err)
		divided, ok := form.Split(whole, "assistant")
		require.True(t, ok)
		inStore, inCommit := make(stock), make(map[content.ID]*structure.Block)
		stored := func(kind string, body []byte) content.ID {
			b := structure.NewBlock(kind, content.BlockOrigin{}, time.Time{}, body)
			switch rapid.SampledFrom([]string{"commit", "store", "gone"}).Draw(t, "is in") {
			case "commit":
				inCommit[b.ID] = b
			case "store":
				inStore[b.ID] = b
			}
			return b.ID
		}
		var usages []structure.Usage
		var wants [][]byte
		for i := range divided.Pieces {
			p := &divided.Pieces[i]
			u := structure.Usage{Kind: structure.PartUsage, Piece: p.Kind}
			kind := content.TypeText
			if p.JSON {
				kind = content.TypeJSON
			}
			if u.Content = stored(kind, p.Body); rapid.Bool().Draw(t, "own type") {
				u.Type = kind
			}
			usages = append(usages, u)
		}
		for i, u := range usages {
			p := &divided.Pieces[i]
			said := p.Kind == structure.TextPiece || p.Kind == structure.ReasoningPiece || p.Kind == structure.InputPiece
			there := inStore[u.Content] != nil || inCommit[u.Content] != nil
			switch {
			case p.JSON && there && !said && len(p.Body) <= limit:
				wants = append(wants, p.Body)
			case p.JSON && len(p.Body) > 0:
				wants = append(wants, []byte("null"))
			default:
				wants = append(wants, nil)
			}
		}
		head := &usages[0]
		head.Kind, head.Role, head.Extras, head.Metadata = structure.MessageUsage, "assistant", divided.Extras, []byte(`{"a":1}`)
		got := structure.NewBlock(content.TypeJSON, content.BlockOrigin{}, time.Time{}, divided.Form)
		head.Form, inStore[got.ID] = got.ID, got
		body, metadata, err := form.NewReader(inStore).Stated(t.Context(), usages, 0, inCommit, limit)
		require.NoError(t, err)
		require.Equal(t, `{"a":1}`, string(metadata))
		want, err := form.Join(divided.Form, divided.Extras, wants)
		require.NoError(t, err)
		require.Equal(t, string(want), string(body))
		require.True(t, json.Valid(body))
	})
}
