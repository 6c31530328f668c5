package chattest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/chat"
)

// model is the expected content of a chat, in the simplest form that behaves like a store.
type model struct {
	*store
	chatID   string
	messages map[string]chat.Message
	branches map[string]chat.Branch // by name
	places   map[string]string      // of checkpoints, by name
	made     int                    // number of branches and messages so far
}

// testModel makes random changes to a chat and compares it with the model.
func testModel(t *testing.T, s *store) {
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		own := *s
		own.t = r
		m := &model{store: &own, chatID: fmt.Sprint("chat", round)}
		m.create()
		r.Repeat(map[string]func(*rapid.T){
			"add":        m.addAny,
			"append":     m.appendAny,
			"branch":     m.branchAny,
			"head":       m.moveAny,
			"activate":   m.activateAny,
			"checkpoint": m.checkpointAny,
			"delete":     m.deleteAny,
			"":           func(*rapid.T) { m.checkBranches() },
		})
		m.checkMessages()
		m.checkGraph()
	})
}

func (m *model) create() {
	m.createChat(m.chatID)
	main := m.active(m.chatID)
	m.messages = map[string]chat.Message{}
	m.branches = map[string]chat.Branch{main.Name: main}
	m.places = map[string]string{}
}

// deleteAny deletes the chat and creates it again. Its ids will be reused.
func (m *model) deleteAny(r *rapid.T) {
	if rapid.IntRange(0, 4).Draw(r, "really") > 0 {
		return
	}
	deleted, err := m.DeleteChat(background, m.chatID, chat.DeleteOptions{})
	require.NoError(r, err)
	require.True(r, deleted)
	for id := range m.messages {
		gone, err := m.Message(background, m.chatID, id)
		require.NoError(r, err)
		require.Nil(r, gone)
	}
	m.made = 0
	m.create()
}

// anyMessage draws a message of the chat, or none.
func (m *model) anyMessage(r *rapid.T) chat.Ref {
	return chat.Ref(rapid.SampledFrom(append([]string{""}, slices.Sorted(maps.Keys(m.messages))...)).Draw(r, "message"))
}

func (m *model) anyBranch(r *rapid.T) chat.Branch {
	return m.branches[rapid.SampledFrom(slices.Sorted(maps.Keys(m.branches))).Draw(r, "branch")]
}

func (m *model) newMessage(parent chat.Ref) chat.Message {
	m.made++
	return text(m.chatID, fmt.Sprint(m.chatID, ".", m.made), parent, "user", fmt.Sprint("number ", m.made))
}

func (m *model) addAny(r *rapid.T) {
	added := m.newMessage(m.anyMessage(r))
	require.NoError(r, m.AddMessage(background, added))
	m.messages[added.ID] = added
}

func (m *model) appendAny(r *rapid.T) {
	request := chat.AppendRequest{ChatID: m.chatID}
	branch := m.anyBranch(r)
	head := branch.HeadMessageID
	if rapid.Bool().Draw(r, "new") {
		branch = m.newBranch(r)
		head = branch.HeadMessageID
		request.NewBranch = &branch
	} else {
		request.BranchID, request.ExpectedHead = branch.ID, head
	}
	for range rapid.IntRange(1, 3).Draw(r, "messages") {
		added := m.newMessage(head)
		request.Messages = append(request.Messages, added)
		m.messages[added.ID] = added
		head = chat.Ref(added.ID)
	}
	got, err := m.Append(background, request)
	require.NoError(r, err)
	require.Equal(r, head, got)
	branch.HeadMessageID = head
	m.put(branch)
}

func (m *model) newBranch(r *rapid.T) chat.Branch {
	m.made++
	name := fmt.Sprint("b", m.made)
	return chat.Branch{
		ID: m.chatID + name, ChatID: m.chatID, Name: name, HeadMessageID: m.anyMessage(r),
		IsActive: rapid.Bool().Draw(r, "active"), CreatedAt: m.branches[chat.MainBranch].CreatedAt + int64(m.made),
	}
}

// put adds a branch. If it is active, the others become inactive.
func (m *model) put(b chat.Branch) {
	if b.IsActive {
		for name, other := range m.branches {
			other.IsActive = false
			m.branches[name] = other
		}
	}
	m.branches[b.Name] = b
}

func (m *model) branchAny(r *rapid.T) {
	b := m.newBranch(r)
	require.Equal(r, b, m.createBranch(b))
	m.put(b)
}

func (m *model) moveAny(r *rapid.T) {
	b := m.anyBranch(r)
	b.HeadMessageID = m.anyMessage(r)
	require.NoError(r, m.UpdateBranchHead(background, m.chatID, b.ID, b.HeadMessageID))
	m.put(b)
}

func (m *model) activateAny(r *rapid.T) {
	b := m.anyBranch(r)
	require.NoError(r, m.SetActiveBranch(background, m.chatID, b.ID))
	b.IsActive = true
	m.put(b)
}

func (m *model) checkpointAny(r *rapid.T) {
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(r, "name")
	at := m.anyMessage(r)
	if at == "" {
		require.NoError(r, m.DeleteCheckpoint(background, m.chatID, name))
		delete(m.places, name)
		return
	}
	_, err := m.CreateCheckpoint(background, chat.Checkpoint{ChatID: m.chatID, Name: name, MessageID: string(at)})
	require.NoError(r, err)
	m.places[name] = string(at)
}

// chainOf returns the ids from the root to a message.
func (m *model) chainOf(id chat.Ref) []string {
	var ids []string
	for ; id != ""; id = m.messages[string(id)].ParentID {
		ids = append(ids, string(id))
	}
	slices.Reverse(ids)
	return ids
}

func (m *model) checkMessages() {
	parents := map[chat.Ref]bool{}
	for _, message := range m.messages {
		parents[message.ParentID] = true
	}
	for id, want := range m.messages {
		got, err := m.Message(background, m.chatID, id)
		require.NoError(m.t, err)
		require.NotNil(m.t, got, id)
		m.requireMessage(want, *got)
		has, err := m.HasChildren(background, m.chatID, id)
		require.NoError(m.t, err)
		require.Equal(m.t, parents[chat.Ref(id)], has, "children of %s", id)
	}
}

func (m *model) checkGraph() {
	graph := m.graph(m.chatID)
	require.Len(m.t, graph.Nodes, len(m.messages))
	for _, node := range graph.Nodes {
		require.Equal(m.t, m.messages[node.ID].Node(), node)
	}
	require.Len(m.t, graph.Branches, len(m.branches))
	require.Len(m.t, graph.Checkpoints, len(m.places))
	for _, c := range graph.Checkpoints {
		require.Equal(m.t, m.places[c.Name], c.MessageID)
	}
}

func (m *model) checkBranches() {
	var active chat.Ref
	for _, b := range m.store.branches(m.chatID) {
		require.Equal(m.t, m.branches[b.Name], b.Branch)
		require.Equal(m.t, m.chainOf(b.HeadMessageID), m.chain(m.chatID, string(b.HeadMessageID)))
		require.Equal(m.t, len(m.chainOf(b.HeadMessageID)), b.MessageCount)
		count, err := m.CountMessages(background, m.chatID, string(b.HeadMessageID))
		require.NoError(m.t, err)
		require.Equal(m.t, b.MessageCount, count)
		if b.IsActive {
			active = b.HeadMessageID
		}
	}
	all := slices.Collect(maps.Keys(m.branches))
	for _, name := range all {
		for _, prefix := range []string{"", name[:1], name} {
			want := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !strings.HasPrefix(name, prefix) })
			names, err := m.BranchNames(background, m.chatID, prefix, len(all))
			require.NoError(m.t, err)
			require.ElementsMatch(m.t, want, names)
			names, err = m.BranchNames(background, m.chatID, prefix, 1)
			require.NoError(m.t, err)
			require.Len(m.t, names, 1)
			require.Subset(m.t, want, names)
		}
		other := name + "-v2"
		taken, err := m.TakenBranchNames(background, m.chatID, []string{other, name, "\xff", strings.ToUpper(name), name + " "})
		require.NoError(m.t, err)
		require.Contains(m.t, taken, name)
		require.Subset(m.t, all, taken)
		require.Equal(m.t, slices.Contains(all, other), slices.Contains(taken, other))
	}
	require.Equal(m.t, m.chainOf(active), idsOf(collect(m.t, m.Messages(background, m.chatID))))
}
