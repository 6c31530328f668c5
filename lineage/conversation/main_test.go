package conversation_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

func TestMain(m *testing.M) {
	campaign.Checks(12) // each opens stores
	goleak.VerifyTestMain(m)
}

var bg = context.Background()

func open(t require.TestingT, s *lineage.Store) *conversation.Conversation {
	c, err := conversation.Open(bg, s, "session", conversation.Options{})
	require.NoError(t, err)
	return c
}

func newConversation(t testing.TB, contents ...string) *conversation.Conversation {
	t.Helper()
	c := open(t, storetest.NewTicking(t))
	say(t, c, contents...)
	return c
}

func user(content string) conversation.Message {
	return conversation.Message{Role: "user", Content: content}
}

func say(t require.TestingT, c *conversation.Conversation, contents ...string) {
	for _, text := range contents {
		require.NoError(t, c.AddMessage(bg, user(text)))
	}
}

func said(t require.TestingT, c *conversation.Conversation) []string {
	messages, err := c.Messages(bg)
	require.NoError(t, err)
	return contents(messages)
}

func contents(messages []conversation.Message) []string {
	all := []string{}
	for _, m := range messages {
		all = append(all, m.Content)
	}
	return all
}

func fork(t require.TestingT, c *conversation.Conversation, name string) conversation.Branch {
	b, err := c.Fork(bg, name)
	require.NoError(t, err)
	return b
}

func checkout(t require.TestingT, c *conversation.Conversation, id string) {
	_, err := c.Checkout(bg, id)
	require.NoError(t, err)
}

func currentID(t require.TestingT, c *conversation.Conversation) string {
	id, err := c.CurrentBranchID(bg)
	require.NoError(t, err)
	return id
}

func pointer(i int) *int { return &i }
