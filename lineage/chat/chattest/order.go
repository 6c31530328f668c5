package chattest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// testOrder creates branches and checkpoints that all have the time of the main branch. They are
// listed in the order of their creation, whatever their names are.
func testOrder(t *testing.T, s *store) {
	for _, id := range []string{"c", "d"} {
		s.createChat(id)
		head := chat.Ref(s.add(id, "m-"+id, "").ID)
		at := s.branches(id)[0].CreatedAt
		branches, checkpoints := []string{chat.MainBranch}, []string{}
		for i := range 20 {
			name := fmt.Sprintf("%02d", (i*7)%20) // not in the order of names
			s.createBranch(chat.Branch{ChatID: id, Name: name, HeadMessageID: head, CreatedAt: at})
			branches = append(branches, name)
			_, err := s.CreateCheckpoint(background, chat.Checkpoint{ChatID: id, Name: name, MessageID: string(head), CreatedAt: at})
			require.NoError(t, err)
			checkpoints = append(checkpoints, name)
		}
		var listed []string
		for _, b := range s.branches(id) {
			listed = append(listed, b.Name)
		}
		require.Equal(t, branches, listed)
		all, err := s.ListCheckpoints(background, id)
		require.NoError(t, err)
		listed = nil
		for _, k := range slices.Backward(all) {
			listed = append(listed, k.Name)
		}
		require.Equal(t, checkpoints, listed)
	}
}
