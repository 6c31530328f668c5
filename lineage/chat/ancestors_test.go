package chat_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// sized adds messages with texts of some sizes, each after the one before.
func sized(t *testing.T, chats chat.Store, chatID string, sizes []int) (last string) {
	_, err := chats.CreateChat(background, chat.Chat{ID: chatID})
	require.NoError(t, err)
	b, err := chats.ActiveBranch(background, chatID)
	require.NoError(t, err)
	messages := make([]chat.Message, len(sizes))
	for i, size := range sizes {
		last = fmt.Sprint(i)
		messages[i] = message(chatID, last, "", strings.Repeat("x", size))
	}
	_, err = chats.Append(background, chat.AppendRequest{ChatID: chatID, BranchID: b.ID, Messages: messages})
	require.NoError(t, err)
	return last
}

// TestAncestorsOfAnySize: messages come back to the first one whatever their sizes, and few of the large ones are in memory at once.
func TestAncestorsOfAnySize(t *testing.T) {
	chats := chat.On(lineagetest.New(t, lineage.Options{}))
	random := rand.New(rand.NewPCG(1, 2))
	sizes := make([]int, 60)
	for i := range sizes {
		sizes[i] = []int{1, 1, 1, 1, 1, 30_000, 400_000, 5 << 18}[random.IntN(8)]
		if i > 25 && i < 45 {
			sizes[i] = 1
		}
	}
	last := sized(t, chats, "c", sizes)
	n := len(sizes)
	for m, err := range chats.Ancestors(background, "c", last) {
		require.NoError(t, err)
		n--
		parent := chat.Ref("")
		if n > 0 {
			parent = chat.Ref(fmt.Sprint(n - 1))
		}
		require.Equal(t, []any{fmt.Sprint(n), parent, sizes[n] + 2}, []any{m.ID, m.ParentID, len(m.Data)})
	}
	require.Zero(t, n)

	large := 0
	for i := range sizes {
		if sizes[i] = 1; i < 25 {
			sizes[i] = 1 << 18
		}
	}
	last = sized(t, chats, "d", sizes)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for m, err := range chats.Ancestors(background, "d", last) {
		require.NoError(t, err)
		if len(m.Data) > 1000 {
			large++
			runtime.GC()
			runtime.ReadMemStats(&now)
			require.Less(t, int64(now.HeapAlloc)-int64(before.HeapAlloc), int64(3<<20))
		}
		if large == 2 {
			break
		}
	}
	require.Equal(t, 2, large)
}
