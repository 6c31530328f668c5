package chattest

import (
	"context"
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// AddMember adds a member to the metadata of a chat. No member may get lost when many do so concurrently.
func AddMember(ctx context.Context, s chat.Store, chatID, name string) error {
	_, err := s.ChangeChat(ctx, chatID, func(was chat.Chat) (chat.ChatUpdate, error) {
		members := map[string]bool{}
		if was.Metadata != nil {
			if err := json.Unmarshal(was.Metadata, &members); err != nil {
				return chat.ChatUpdate{}, err
			}
		}
		members[name] = true
		metadata, err := json.Marshal(members)
		return chat.ChatUpdate{Metadata: metadata}, err
	})
	return err
}

// RequireMembers requires that the metadata of a chat has exactly the given members.
func RequireMembers(t require.TestingT, s chat.Store, chatID string, names []string) {
	got, err := s.Chat(context.Background(), chatID)
	require.NoError(t, err)
	members := map[string]bool{}
	require.NoError(t, json.Unmarshal(got.Metadata, &members))
	for _, name := range names {
		require.Contains(t, members, name)
	}
	require.Len(t, members, len(names))
}
