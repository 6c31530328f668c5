// Package enginetest tests the engine on an implementation of chat.Store: call [Run].
package enginetest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// Config configures a run.
type Config struct {
	// New returns an empty store that is removed at the end of the test.
	New func(t testing.TB) chat.Store
}

var background = context.Background()

// store wraps the tested store with steps that must succeed.
type store struct {
	chat.Store
	t require.TestingT
}

// conversation wraps an engine with steps that must succeed.
type conversation struct {
	*engine.Engine
	t require.TestingT
}

// open opens a chat of user ada.
func (s *store) open(chatID string) *conversation {
	e, err := engine.Open(background, s.Store, engine.Options{ChatID: chatID, UserID: "ada"})
	require.NoError(s.t, err)
	return &conversation{Engine: e, t: s.t}
}

func (c *conversation) set(fragments ...engine.Fragment) {
	require.NoError(c.t, c.Set(fragments...))
}

func (c *conversation) save(fragments ...engine.Fragment) chat.Ref {
	c.set(fragments...)
	head, err := c.Save(background)
	require.NoError(c.t, err)
	require.Equal(c.t, c.Head(), head)
	require.Empty(c.t, c.Pending())
	return head
}

// says returns the texts of the messages that would be sent to a model.
func (c *conversation) says() []string {
	r, err := c.Resolve(background, engine.ResolveOptions{})
	require.NoError(c.t, err)
	texts := []string{}
	for _, m := range r.Messages {
		texts = append(texts, m.Text())
	}
	return texts
}

// pendingTexts returns the texts of the pending messages.
func (c *conversation) pendingTexts() []string {
	texts := []string{}
	for _, f := range c.Pending() {
		texts = append(texts, f.Data.(string))
	}
	return texts
}

func (c *conversation) rewind(id string) chat.BranchInfo {
	b, err := c.Rewind(background, id)
	require.NoError(c.t, err)
	return b
}

func (c *conversation) switchTo(name string) {
	require.NoError(c.t, c.SwitchBranch(background, name))
	require.Equal(c.t, name, c.Branch())
}

// user and assistant return messages whose text is their id.
func user(id string) engine.Fragment { return says("user", id, id) }

func assistant(id string) engine.Fragment { return says("assistant", id, id) }

func says(role, id, text string) engine.Fragment {
	return engine.Message(engine.UIMessage{ID: id, Role: role, Parts: []engine.Part{engine.TextPart(text)}})
}

// on returns the texts of a branch.
func (s *store) on(chatID, branch string) []string {
	b, err := s.Branch(background, chatID, branch)
	require.NoError(s.t, err)
	require.NotNil(s.t, b, "branch %s", branch)
	return s.chain(chatID, string(b.HeadMessageID))
}

// chain returns the texts up to a message.
func (s *store) chain(chatID, id string) []string {
	texts := []string{}
	if id == "" {
		return texts
	}
	for m, err := range s.MessageChain(background, chatID, id) {
		require.NoError(s.t, err)
		texts = append(texts, textOf(s.t, m))
	}
	return texts
}

func textOf(t require.TestingT, m chat.Message) string {
	decoded, err := engine.DecodeMessage(m.Data)
	require.NoError(t, err)
	require.Equal(t, m.ID, decoded.ID, "a row and its data have one id")
	require.Equal(t, m.Name, decoded.Role)
	return decoded.Text()
}

// names returns the branch names in alphabetical order, because branches may be created in the same
// millisecond. The active one has a star.
func (s *store) names(chatID string) []string {
	infos, err := s.ListBranches(background, chatID)
	require.NoError(s.t, err)
	names := make([]string, len(infos))
	for i, b := range infos {
		names[i] = b.Name
		if b.IsActive {
			names[i] += "*"
		}
	}
	slices.Sort(names)
	return names
}

// nodes returns the number of messages of a chat, on all branches.
func (s *store) nodes(chatID string) int {
	g, err := s.Graph(background, chatID)
	require.NoError(s.t, err)
	return len(g.Nodes)
}

// requireError requires an error with a sentinel and a subject.
func requireError(t require.TestingT, err, want error, subject chat.Subject, id string) {
	require.ErrorIs(t, err, want)
	var e *chat.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, subject, e.Subject)
	require.Equal(t, id, e.ID)
	require.ErrorContains(t, err, id)
}
