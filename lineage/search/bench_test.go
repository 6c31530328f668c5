package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/search"
)

// BenchmarkCatchUp searches a store of 100,000 messages, in one chat or in a thousand, after one
// more was added. ExtendUpdate only updates the index, Nothing searches without changes.
func BenchmarkCatchUp(b *testing.B) {
	messages := campaign.BenchMessages(b, 100_000)
	for _, chats := range []int{1, 1000} {
		b.Run(fmt.Sprint("chats=", chats), func(b *testing.B) {
			store, x := open(b, b.TempDir())
			defer func() {
				require.NoError(b, x.Close())
				require.NoError(b, store.Close())
			}()
			var last *lineage.Context
			var id string
			for i := range chats {
				id = fmt.Sprint("chat", i)
				thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: id, UserID: "ada"})
				require.NoError(b, err)
				last, err = thread.Active(bg)
				require.NoError(b, err)
				var items []lineage.Item
				for j := range messages / chats {
					items = append(items, lineage.User(fmt.Sprintf("message %d of many that were said in chat %d", j, i)))
				}
				_, err = last.Extend(bg, items...)
				require.NoError(b, err)
			}
			require.NoError(b, x.Update(bg))
			n := 0
			extend := func(b *testing.B) string {
				n++
				word := fmt.Sprintf("needle%d", n)
				_, err := last.Extend(bg, lineage.User("and a "+word))
				require.NoError(b, err)
				return word
			}
			find := func(b *testing.B, word string) {
				found, err := x.SearchMessages(bg, id, word, chat.SearchOptions{})
				require.NoError(b, err)
				require.Len(b, found, 1)
			}
			find(b, extend(b)) // the first search reads the commit with all other messages again
			b.Run("ExtendUpdate", func(b *testing.B) {
				for b.Loop() {
					extend(b)
					require.NoError(b, x.Update(bg))
				}
			})
			b.Run("ExtendSearch", func(b *testing.B) {
				for b.Loop() {
					find(b, extend(b))
				}
			})
			word := extend(b)
			find(b, word)
			b.Run("Nothing", func(b *testing.B) {
				for b.Loop() {
					find(b, word)
				}
			})
		})
	}
}

// BenchmarkNearest searches a store of 100,000 messages by vectors of two lengths: all of it, and one of
// its 100 threads.
func BenchmarkNearest(b *testing.B) {
	messages := campaign.BenchMessages(b, 100_000)
	for _, length := range []int{384, 1536} {
		b.Run(fmt.Sprint("length=", length), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			draw := func() []float32 {
				v := make([]float32, length)
				for i := range v {
					v[i] = float32(random.NormFloat64())
				}
				return v
			}
			dir := b.TempDir()
			store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
			require.NoError(b, err)
			defer store.Close()
			x, err := search.Open(bg, store, dir, search.Options{Embedder: search.Embedder{Model: "random", Embed: func(_ context.Context, texts []string) (vectors [][]float32, err error) {
				for range texts {
					vectors = append(vectors, draw())
				}
				return vectors, nil
			}}})
			require.NoError(b, err)
			defer x.Close()
			var last *lineage.Thread
			for i := range 100 {
				last, err = store.CreateThread(bg, lineage.ThreadOptions{})
				require.NoError(b, err)
				main, err := last.Active(bg)
				require.NoError(b, err)
				var items []lineage.Item
				for j := range messages / 100 {
					items = append(items, lineage.User(fmt.Sprintf("message %d of chat %d", j, i)))
				}
				_, err = main.Extend(bg, items...)
				require.NoError(b, err)
			}
			require.NoError(b, x.Embed(bg))
			for name, q := range map[string]search.Query{"Store": {}, "Thread": {Thread: last.ID()}} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						q.Vector = draw()
						hits, err := x.Search(bg, q)
						require.NoError(b, err)
						require.Len(b, hits, chat.DefaultSearchLimit)
					}
				})
			}
		})
	}
}
