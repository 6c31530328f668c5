package lineage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// A message keeps the origin that it was given, whoever said the same before: in the store, in the same transaction or
// in the same call.
func TestOriginsOfKnownTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer s.Close()
		c, err := s.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		put, _, err := s.Put(bg, strings.NewReader("put"), lineage.BlockOptions{Type: content.TypeText})
		require.NoError(t, err)
		var want []content.Origin
		item := func() lineage.Item {
			i := lineage.Item{Role: rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role"), Type: content.TypeText}
			text := rapid.SampledFrom([]string{"one", "two", "put"}).Draw(t, "text")
			switch form := rapid.IntRange(0, 2).Draw(t, "form"); {
			case form == 0:
				i.Type, i.Body = content.TypeJSON, []byte(`{"role":"`+i.Role+`","parts":[{"type":"text","text":"`+text+`"}]}`)
			case form == 1 && text == "put":
				i.Content = put.ID
			default:
				i.Body = []byte(text)
			}
			i.Origin = lineage.Origin{
				Kind: content.OriginOfRole(i.Role), UserID: rapid.SampledFrom([]string{"", "ada"}).Draw(t, "user"),
				ModelID: rapid.SampledFrom([]string{"", "large"}).Draw(t, "model"),
			}
			if n := rapid.IntRange(0, 2).Draw(t, "parent"); n > 0 {
				i.Origin.ParentID = content.Sum([]byte(fmt.Sprint("parent ", n)))
			}
			want = append(want, i.Origin)
			return i
		}
		extend := func(ctx context.Context, c *lineage.Context) {
			var items []lineage.Item
			for range rapid.IntRange(1, 3).Draw(t, "items") {
				items = append(items, item())
			}
			_, err := c.Extend(ctx, items...)
			require.NoError(t, err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "commits") {
			if rapid.Bool().Draw(t, "outside") {
				extend(bg, c)
				continue
			}
			require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
				in, err := tx.Context(ctx, c.ID())
				require.NoError(t, err)
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					extend(ctx, in)
				}
				requireOrigins(ctx, t, in, want)
				return nil
			}))
		}
		requireOrigins(bg, t, c, want)
	})
}

func requireOrigins(ctx context.Context, t require.TestingT, c *lineage.Context, want []content.Origin) {
	entries, err := c.All(ctx)
	require.NoError(t, err)
	var got []content.Origin
	for _, e := range entries {
		got = append(got, e.Origin)
	}
	require.Equal(t, want, got)
}
