package projecttest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// machine applies random changes of all kinds to a store.
type machine struct {
	store    *lineage.Store
	chats    chat.Store
	contexts []*lineage.Context
	threads  []*lineage.Thread
	chatIDs  []string
	content  []lineage.ContentID
	bodies   map[lineage.ContentID][]byte
	n        int
	// shared lets messages of several threads have the same id.
	shared bool
}

func newMachine(store *lineage.Store) *machine {
	return &machine{store: store, chats: chat.On(store), bodies: make(map[lineage.ContentID][]byte)}
}

// step makes a change. A refused change changes nothing.
func (m *machine) step(t *rapid.T) {
	steps := []func(*rapid.T) error{
		m.newChat, m.say, m.say, m.say, m.sayElsewhere, m.sayNowhere, m.hang, m.load, m.moveBranch, m.checkpoint, m.dropCheckpoint, m.activate, m.retitle, m.dropChat,
		m.newThread, m.newContext, m.extend, m.extend, m.extend, m.extendTogether, m.fork, m.fork, m.subagent, m.alternatives, m.edit,
		m.rewindTo, m.undo, m.merge, m.subset, m.send, m.summarize, m.dropSummary, m.override,
		m.setValue, m.branch, m.aside, m.rewind, m.restore, m.threadCheckpoint, m.switchTo, m.name, m.rename, m.dropBranch, m.dropContext, m.dropThread,
		m.erase, m.storeAgain, m.collect,
	}
	m.tolerate(t, rapid.SampledFrom(steps).Draw(t, "step")(t))
}

// tolerate accepts the refusal of a change.
func (m *machine) tolerate(t *rapid.T, err error) {
	for _, expected := range []error{
		nil, lineage.ErrNotFound, lineage.ErrExists, lineage.ErrConflict, lineage.ErrInvalid, lineage.ErrProtected, lineage.ErrErased,
		chat.ErrNotFound, chat.ErrExists, chat.ErrOtherChat, chat.ErrInvalid, chat.ErrOwnParent,
	} {
		if errors.Is(err, expected) {
			return
		}
	}
	require.NoError(t, err)
}

var errNothing = fmt.Errorf("nothing to change: %w", lineage.ErrNotFound)

func pick[T any](t *rapid.T, list []T) (T, error) {
	if len(list) == 0 {
		var none T
		return none, errNothing
	}
	return rapid.SampledFrom(list).Draw(t, "which"), nil
}

func (m *machine) text(t *rapid.T) string {
	m.n++
	if rapid.IntRange(0, 3).Draw(t, "old text") == 0 {
		return rapid.SampledFrom([]string{"yes", "no", "the same again"}).Draw(t, "text")
	}
	return fmt.Sprintf("message number %d", m.n)
}

func (m *machine) chatID(t *rapid.T) (string, error) { return pick(t, m.chatIDs) }

func (m *machine) newChat(t *rapid.T) error {
	id := fmt.Sprintf("chat-%d", rapid.IntRange(0, 4).Draw(t, "chat"))
	_, err := m.chats.CreateChat(bg, chat.Chat{ID: id, UserID: rapid.SampledFrom([]string{"ada", "bob", ""}).Draw(t, "user") + "u", Title: "T"})
	m.chatIDs = append(m.chatIDs, id)
	return err
}

// message returns a message for a chat.
func (m *machine) message(t *rapid.T, chatID string) chat.Message {
	m.n++
	id := fmt.Sprintf("m%d", m.n)
	if rapid.IntRange(0, 5).Draw(t, "old id") == 0 {
		old := fmt.Sprintf("m%d", rapid.IntRange(1, m.n).Draw(t, "id"))
		if _, err := m.chats.Message(bg, chatID, old); m.shared || !errors.Is(err, chat.ErrOtherChat) {
			id = old
		}
	}
	data, err := json.Marshal(map[string]any{"id": id, "role": "user", "parts": []map[string]string{{"type": "text", "text": m.text(t)}}})
	require.NoError(t, err)
	return chat.Message{
		ID: id, Name: rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"),
		Type: rapid.SampledFrom([]string{"message", "message", "fragment", ""}).Draw(t, "type"), Data: data,
	}
}

func (m *machine) say(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	b, err := m.chats.ActiveBranch(bg, id)
	if err != nil || b == nil {
		return err
	}
	var messages []chat.Message
	for range rapid.IntRange(1, 3).Draw(t, "messages") {
		messages = append(messages, m.message(t, id))
	}
	_, err = m.chats.Append(bg, chat.AppendRequest{ChatID: id, BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: messages})
	return err
}

// sayNowhere adds a message that is on no branch.
func (m *machine) sayNowhere(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	message := m.message(t, id)
	message.ChatID = id
	if message.ParentID, err = m.anyMessage(t, id); err != nil {
		return err
	}
	return m.chats.AddMessage(bg, message)
}

// load loads a changed message of a chat, and a new one after it.
func (m *machine) load(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	at, err := m.anyMessage(t, id)
	if err != nil || at == "" {
		return err
	}
	got, err := m.chats.Chat(bg, id)
	if err != nil || got == nil {
		return err
	}
	was, err := m.chats.Message(bg, id, string(at))
	if err != nil || was == nil || was.ChatID != id {
		return err
	}
	changed, next := m.message(t, id), m.message(t, id)
	was.Data, next.ParentID = changed.Data, at
	l := chat.Loading{Chat: *got, Messages: func(yield func(chat.Message, error) bool) { _ = yield(*was, nil) && yield(next, nil) }}
	l.Chat.UpdatedAt += int64(rapid.IntRange(-1, 1).Draw(t, "later"))
	_, err = chat.Load(bg, m.store, l)
	return err
}

// anyMessage returns the id of a message of a chat.
func (m *machine) anyMessage(t *rapid.T, chatID string) (chat.Ref, error) {
	g, err := m.chats.Graph(bg, chatID)
	if err != nil || len(g.Nodes) == 0 {
		return "", err
	}
	n, err := pick(t, g.Nodes)
	return chat.Ref(n.ID), err
}

func (m *machine) sayElsewhere(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	at, err := m.anyMessage(t, id)
	if err != nil {
		return err
	}
	m.n++
	_, err = m.chats.Append(bg, chat.AppendRequest{
		ChatID:    id,
		NewBranch: &chat.Branch{ChatID: id, Name: fmt.Sprintf("b%d", m.n), HeadMessageID: at, IsActive: rapid.Bool().Draw(t, "active")},
		Messages:  []chat.Message{m.message(t, id)},
	})
	return err
}

func (m *machine) anyBranch(t *rapid.T, chatID string) (chat.BranchInfo, error) {
	list, err := m.chats.ListBranches(bg, chatID)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	return pick(t, list)
}

func (m *machine) moveBranch(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	b, err := m.anyBranch(t, id)
	if err != nil {
		return err
	}
	to, err := m.anyMessage(t, id)
	if err != nil {
		return err
	}
	return m.chats.UpdateBranchHead(bg, id, b.ID, to)
}

func (m *machine) checkpoint(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	at, err := m.anyMessage(t, id)
	if err != nil {
		return err
	}
	_, err = m.chats.CreateCheckpoint(bg, chat.Checkpoint{ChatID: id, Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), MessageID: string(at)})
	return err
}

func (m *machine) dropCheckpoint(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	return m.chats.DeleteCheckpoint(bg, id, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"))
}

func (m *machine) activate(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	b, err := m.anyBranch(t, id)
	if err != nil {
		return err
	}
	return m.chats.SetActiveBranch(bg, id, b.ID)
}

func (m *machine) retitle(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	title := m.text(t)
	_, err = m.chats.UpdateChat(bg, id, chat.ChatUpdate{Title: &title, Metadata: json.RawMessage(`{"k":1}`)})
	return err
}

func (m *machine) dropChat(t *rapid.T) error {
	id, err := m.chatID(t)
	if err != nil {
		return err
	}
	_, err = m.chats.DeleteChat(bg, id, chat.DeleteOptions{})
	return err
}
