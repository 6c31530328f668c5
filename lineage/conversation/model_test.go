package conversation_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

// A modelBranch is a branch with a slice of messages that is copied for each.
type modelBranch struct {
	id, name string
	parentID string
	parent   *modelBranch // stays when it is deleted
	index    int
	messages []modelMessage
	created  int
	updated  int
	deleted  bool
}

// A modelMessage is one message at one place of one history.
type modelMessage struct {
	conversation.Message
	written int // which write put it there; kept by forks
	first   int // which write said it first; kept by merges too
}

// A machine does the same to a conversation and to a model.
type machine struct {
	c        *conversation.Conversation
	store    *lineage.Store
	dir      string
	clock    time.Time
	branches map[string]*modelBranch
	current  *modelBranch
	steps    int
}

func newMachine(t *rapid.T) *machine {
	dir, err := os.MkdirTemp("", "conversation")
	require.NoError(t, err)
	main := &modelBranch{id: "main", name: "Main conversation"}
	m := &machine{
		dir: dir, clock: time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC),
		branches: map[string]*modelBranch{"main": main}, current: main,
	}
	m.open(t)
	return m
}

func (m *machine) open(t *rapid.T) {
	var err error
	m.store, err = lineage.Open(bg, m.dir, lineage.Options{Durability: lineage.Normal, Now: func() time.Time {
		m.clock = m.clock.Add(time.Second)
		return m.clock
	}})
	require.NoError(t, err)
	m.c = open(t, m.store)
}

func (m *machine) close(t *rapid.T) {
	require.NoError(t, m.store.Close())
	require.NoError(t, os.RemoveAll(m.dir))
}

// feature: branches/fork
// feature: branches/checkout
// feature: branches/merge
// feature: branches/messages
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		actions := m.actions()
		actions[""] = m.check
		t.Repeat(actions)
	})
}

// TestModelReopened opens store and conversation again after each step.
//
// feature: branches/kept
func TestModelReopened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		actions := m.actions()
		actions[""] = func(t *rapid.T) {
			require.NoError(t, m.store.Close())
			m.open(t)
			m.check(t)
		}
		t.Repeat(actions)
	})
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": m.add, "add more": m.add, "set": m.set, "create": m.create, "fork": m.fork, "checkout": m.checkout,
		"merge": m.merge, "delete": m.delete, "rename": m.rename,
	}
}

func (m *machine) step() int {
	m.steps++
	return m.steps
}

func (m *machine) pick(t *rapid.T) *modelBranch {
	ids := slices.Sorted(maps.Keys(m.branches))
	return m.branches[rapid.SampledFrom(ids).Draw(t, "branch")]
}

func drawMessage(t *rapid.T) conversation.Message {
	message := conversation.Message{
		Role:    rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"),
		Content: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "content"),
	}
	if rapid.IntRange(0, 3).Draw(t, "fields?") == 0 {
		message.Fields = fields("tool_calls", rapid.SampledFrom([]string{`[]`, `[{"id": 1}]`}).Draw(t, "field"))
	}
	return message
}

func (m *machine) write(b *modelBranch, messages ...conversation.Message) {
	for _, message := range messages {
		n := m.step()
		b.messages = append(b.messages, modelMessage{Message: message, written: n, first: n})
	}
	b.updated = m.step()
}

func (m *machine) add(t *rapid.T) {
	message := drawMessage(t)
	require.NoError(t, m.c.AddMessage(bg, message))
	m.write(m.current, message)
}

func (m *machine) set(t *rapid.T) {
	b := m.current
	keep := rapid.IntRange(0, len(b.messages)).Draw(t, "keep")
	list := append(plain(b.messages[:keep]), rapid.SliceOfN(rapid.Custom(drawMessage), 0, 3).Draw(t, "new")...)
	require.NoError(t, m.c.SetMessages(bg, list))
	same := 0
	for same < min(len(list), len(b.messages)) && list[same].Equal(b.messages[same].Message) {
		same++
	}
	if same == len(list) && same == len(b.messages) {
		return
	}
	b.messages = slices.Clone(b.messages[:same])
	m.write(b, list[same:]...)
}

func plain(messages []modelMessage) []conversation.Message {
	said := []conversation.Message{}
	for _, message := range messages {
		said = append(said, message.Message)
	}
	return said
}

// unmerged returns messages without where they were merged from, which nothing else states here.
func unmerged(messages []conversation.Message) []conversation.Message {
	for i := range messages {
		messages[i].By.SourceID = ""
	}
	return messages
}

func (m *machine) made(id, name string, parent *modelBranch, index int) *modelBranch {
	b := &modelBranch{id: id, name: name, created: m.step()}
	b.updated = b.created
	if parent != nil {
		b.parent, b.parentID, b.index = parent, parent.id, index
		b.messages = slices.Clone(parent.messages[:index])
	}
	m.branches[id] = b
	return b
}

func (m *machine) create(t *rapid.T) {
	id := rapid.SampledFrom([]string{"main", "x", "y", "../z", "fork"}).Draw(t, "id")
	name := rapid.SampledFrom([]string{"X", "Y"}).Draw(t, "name")
	var parent *modelBranch
	var from *conversation.From
	index := 0
	if rapid.Bool().Draw(t, "child") {
		parent = m.pick(t)
		index = len(parent.messages)
		from = &conversation.From{Branch: parent.id}
		if rapid.Bool().Draw(t, "indexed") {
			index = rapid.IntRange(-1, len(parent.messages)+1).Draw(t, "index")
			from.MessageIndex = &index
		}
	}
	b, err := m.c.CreateBranch(bg, id, name, from)
	switch {
	case parent != nil && (index < 0 || index > len(parent.messages)):
		require.ErrorIs(t, err, lineage.ErrInvalid)
	case m.branches[id] != nil:
		require.ErrorIs(t, err, lineage.ErrExists)
	default:
		require.NoError(t, err)
		m.requireBranch(t, m.made(id, name, parent, index), b)
	}
}

func (m *machine) fork(t *rapid.T) {
	parent, index := m.current, len(m.current.messages)
	var b conversation.Branch
	var err error
	if rapid.Bool().Draw(t, "from message") {
		index = rapid.IntRange(-1, index+1).Draw(t, "index")
		b, err = m.c.ForkFromMessage(bg, "Fork", index)
	} else {
		b, err = m.c.Fork(bg, "Fork")
	}
	if index < 0 || index > len(parent.messages) {
		require.ErrorIs(t, err, lineage.ErrInvalid)
		return
	}
	require.NoError(t, err)
	require.NotContains(t, m.branches, b.ID)
	m.current = m.made(b.ID, "Fork", parent, index)
	m.requireBranch(t, m.current, b)
}

func (m *machine) checkout(t *rapid.T) {
	to := m.pick(t)
	b, err := m.c.Checkout(bg, to.id)
	require.NoError(t, err)
	m.current = to
	m.requireBranch(t, to, b)
}

func (m *machine) merge(t *rapid.T) {
	source, target := m.pick(t), m.current
	strategy := rapid.SampledFrom([]conversation.MergeStrategy{conversation.Append, conversation.Replace}).Draw(t, "strategy")
	_, err := m.c.Merge(bg, source.id, strategy)
	if source == target {
		require.ErrorIs(t, err, lineage.ErrInvalid)
		return
	}
	require.NoError(t, err)
	parted := 0
	for parted < min(len(source.messages), len(target.messages)) && source.messages[parted].written == target.messages[parted].written {
		parted++
	}
	if strategy == conversation.Replace {
		if parted != len(source.messages) || parted != len(target.messages) {
			target.messages = slices.Clone(source.messages)
			target.updated = m.step()
		}
		return
	}
	has := make(map[int]bool)
	for _, message := range target.messages[parted:] {
		has[message.first] = true
	}
	for _, message := range source.messages[parted:] {
		if !has[message.first] {
			message.written = m.step()
			target.messages = append(target.messages, message)
			target.updated = m.step()
		}
	}
}

func (m *machine) delete(t *rapid.T) {
	b := m.pick(t)
	err := m.c.DeleteBranch(bg, b.id)
	if b.id == "main" {
		require.ErrorIs(t, err, lineage.ErrProtected)
		return
	}
	require.NoError(t, err)
	b.deleted = true
	delete(m.branches, b.id)
	if m.current == b {
		m.current = m.branches["main"]
	}
}

func (m *machine) rename(t *rapid.T) {
	b := m.pick(t)
	b.name = fmt.Sprint("Name ", m.step())
	require.NoError(t, m.c.RenameBranch(bg, b.id, b.name))
	b.updated = m.step()
}

func (m *machine) requireBranch(t *rapid.T, want *modelBranch, got conversation.Branch) {
	require.False(t, got.CreatedAt.IsZero())
	require.False(t, got.UpdatedAt.Before(got.CreatedAt))
	got.CreatedAt, got.UpdatedAt = time.Time{}, time.Time{}
	require.Equal(t, conversation.Branch{
		ID: want.id, Name: want.name, ParentID: want.parentID, ParentMessageIndex: want.index,
		Current: want == m.current, MessageCount: len(want.messages),
	}, got)
}

// check compares everything.
func (m *machine) check(t *rapid.T) {
	messages, err := m.c.Messages(bg)
	require.NoError(t, err)
	require.Equal(t, plain(m.current.messages), unmerged(messages))
	require.Equal(t, m.current.id, currentID(t, m.c))
	for id, b := range m.branches {
		messages, err := m.c.MessagesOf(bg, id)
		require.NoError(t, err)
		require.Equal(t, plain(b.messages), unmerged(messages))
		history, err := m.c.History(bg, id)
		require.NoError(t, err)
		require.Equal(t, m.history(b), ids(history))
	}
	branches, err := m.c.Branches(bg)
	require.NoError(t, err)
	sorted := slices.SortedFunc(maps.Values(m.branches), func(a, b *modelBranch) int { return cmp.Compare(b.updated, a.updated) })
	require.Len(t, branches, len(sorted))
	for i, b := range sorted {
		m.requireBranch(t, b, branches[i])
	}
	roots, err := m.c.Tree(bg)
	require.NoError(t, err)
	m.checkTree(t, nil, roots)
}

func (m *machine) history(b *modelBranch) []string {
	var all []string
	for ; b != nil && !b.deleted; b = b.parent {
		all = append([]string{b.id}, all...)
	}
	return all
}

func (m *machine) checkTree(t *rapid.T, parent *modelBranch, trees []*conversation.Tree) {
	var want []*modelBranch
	for _, b := range m.branches {
		above := b.parent
		if above != nil && above.deleted {
			above = nil
		}
		if above == parent {
			want = append(want, b)
		}
	}
	slices.SortFunc(want, func(a, b *modelBranch) int { return cmp.Compare(a.created, b.created) })
	require.Len(t, trees, len(want))
	for i, b := range want {
		m.requireBranch(t, b, trees[i].Branch)
		m.checkTree(t, b, trees[i].Children)
	}
}
