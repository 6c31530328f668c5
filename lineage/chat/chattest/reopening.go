package chattest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// testReopening closes and reopens the store between the turns of a conversation.
func testReopening(t *testing.T, s *store) {
	if s.config.Forgets {
		t.Skip("not tested: the store says that it forgets")
	}
	s.createChat("c")
	main := s.active("c")
	head := chat.Ref("")
	for turn := range 5 {
		next, err := s.Append(background, chat.AppendRequest{
			ChatID: "c", BranchID: main.ID, ExpectedHead: head, Messages: says(fmt.Sprint("q", turn), fmt.Sprint("a", turn)),
		})
		require.NoError(t, err)
		head = next
		before := s.graph("c")
		s.reopen()
		require.Equal(t, before, s.graph("c"))
		require.Equal(t, head, s.active("c").HeadMessageID)
		require.Len(t, collect(t, s.Messages(background, "c")), 2*turn+2)
	}
}
