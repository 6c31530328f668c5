package search_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// BenchmarkCatchUp searches a store of 100,000 messages, in one chat or in a thousand, after one
// more was added. ExtendUpdate only updates the index, Nothing searches without changes.
func BenchmarkCatchUp(b *testing.B) {
	messages := 100_000
	if testing.Short() {
		messages = 2000
	}
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
