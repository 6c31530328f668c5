package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/chat"
)

// BenchmarkAppend appends to histories of different lengths, in chats of different
// numbers of branches: neither must matter.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []struct{ messages, branches int }{{10, 1}, {10_000, 1}, {10, 2_000}} {
		b.Run(fmt.Sprintf("messages=%d/branches=%d", size.messages, size.branches), func(b *testing.B) {
			chats := chat.On(storetest.New(b))
			_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
			require.NoError(b, err)
			main, err := chats.ActiveBranch(background, "c")
			require.NoError(b, err)
			made, head := 0, chat.Ref("")
			pad := strings.Repeat("x", 400)
			add := func(n int) {
				messages := make([]chat.Message, n)
				for i := range messages {
					made++
					messages[i] = chat.Message{ID: fmt.Sprint("m", made), Name: "user", Data: fmt.Appendf(nil, `{"n":%d,"pad":%q}`, made, pad)}
				}
				next, err := chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: head, Messages: messages})
				if err != nil {
					b.Fatal(err)
				}
				head = next
			}
			add(size.messages)
			for i := range size.branches {
				_, err := chats.CreateBranch(background, chat.Branch{ChatID: "c", Name: fmt.Sprint("b", i), HeadMessageID: head})
				require.NoError(b, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				add(1)
			}
		})
	}
}
