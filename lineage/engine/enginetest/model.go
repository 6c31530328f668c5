package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// modelMessage is a message of the model. parent is an id.
type modelMessage struct {
	parent, role, text string
}

// unsaved is a pending message. of is the id it was set with, if any.
type unsaved struct {
	text, role, of string
	lazy           bool
}

// modeledEngine is an engine and its expected state.
type modeledEngine struct {
	*conversation
	branch  string
	pending []unsaved
}

// model is the expected content of a chat: messages with their parents, by id.
type model struct {
	*store
	chatID      string
	messages    map[string]modelMessage
	ids         []string // in the order in which they were saved
	heads       map[string]string
	active      string
	checkpoints map[string]string
	sessions    []*modeledEngine
	made        int
}

// testModel runs random operations with two engines on a chat and compares both with the model.
func testModel(t *testing.T, s *store) {
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		m := &model{
			store: &store{Store: s.Store, t: r}, chatID: fmt.Sprint("model", round),
			messages: map[string]modelMessage{}, heads: map[string]string{"main": ""}, active: "main", checkpoints: map[string]string{},
		}
		for range 2 {
			m.sessions = append(m.sessions, &modeledEngine{conversation: m.open(m.chatID), branch: "main"})
		}
		r.Repeat(map[string]func(*rapid.T){
			"set":        m.setAny,
			"version":    m.setVersion,
			"lazy":       m.setLazy,
			"again":      m.setAgain,
			"remove":     m.removeAny,
			"save":       m.saveAny,
			"rewind":     m.rewindAny,
			"aside":      m.asideAny,
			"switch":     m.switchAny,
			"checkpoint": m.checkpointAny,
			"restore":    m.restoreAny,
			"reopen":     m.reopenAny,
			"resolve":    m.resolveAny,
			"":           func(*rapid.T) { m.check() },
		})
		for _, s := range m.sessions {
			require.Equal(r, m.resolved(s), s.says())
		}
		m.checkMessages()
	})
}

func (m *model) any(r *rapid.T) *modeledEngine {
	return m.sessions[rapid.IntRange(0, len(m.sessions)-1).Draw(r, "engine")]
}

func (m *model) anyMessage(r *rapid.T) string {
	if len(m.messages) == 0 {
		r.Skip("no messages")
	}
	return m.ids[rapid.IntRange(0, len(m.ids)-1).Draw(r, "message")]
}

func (m *model) text() string {
	m.made++
	return fmt.Sprintf("%s.%03d", m.chatID, m.made)
}

func (m *model) put(s *modeledEngine, u unsaved) {
	f := engine.LastAssistantMessage(u.text)
	if !u.lazy {
		f = says(u.role, u.of, u.text)
	}
	s.set(f)
	s.pending = append(s.pending, u)
}

func (m *model) setAny(r *rapid.T) {
	text := m.text()
	role := rapid.SampledFrom([]string{"user", "assistant"}).Draw(r, "role")
	m.put(m.any(r), unsaved{text: text, role: role, of: text})
}

// setVersion sets a new version of a saved or pending message.
func (m *model) setVersion(r *rapid.T) {
	s := m.any(r)
	targets := []unsaved{}
	for _, id := range m.ids {
		targets = append(targets, unsaved{of: id, role: m.messages[id].role})
	}
	for _, u := range s.pending {
		if !u.lazy {
			targets = append(targets, u)
		}
	}
	if len(targets) == 0 {
		r.Skip("no messages")
	}
	u := targets[rapid.IntRange(0, len(targets)-1).Draw(r, "of")]
	u.text = m.text()
	m.put(s, u)
}

func (m *model) setLazy(r *rapid.T) {
	m.put(m.any(r), unsaved{text: m.text(), role: "assistant", lazy: true})
}

// setAgain sets a saved message again, unchanged.
func (m *model) setAgain(r *rapid.T) {
	id := m.anyMessage(r)
	m.put(m.any(r), unsaved{text: m.messages[id].text, role: m.messages[id].role, of: id})
}

// removeAny removes a pending message with all its versions, or all lazy ones.
func (m *model) removeAny(r *rapid.T) {
	s := m.any(r)
	if len(s.pending) == 0 {
		r.Skip("nothing pending")
	}
	u := s.pending[rapid.IntRange(0, len(s.pending)-1).Draw(r, "removed")]
	before := len(s.pending)
	s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(o unsaved) bool { return o.lazy == u.lazy && (u.lazy || o.of == u.of) })
	n := s.Remove(func(f engine.Fragment) bool { return engine.IsLazy(f) == u.lazy && (u.lazy || f.ID == u.of) })
	require.Equal(r, before-len(s.pending), n)
}

// line returns the ids of a history.
func (m *model) line(head string) []string {
	line := []string{}
	for ; head != ""; head = m.messages[head].parent {
		line = append(line, head)
	}
	slices.Reverse(line)
	return line
}

// fresh is a placeholder for an id that is not known yet.
const fresh = "\x00"

// settled returns the pending messages with lazy ones resolved and one version of each.
func (m *model) settled(s *modeledEngine) []unsaved {
	target := ""
	for _, id := range m.line(m.heads[s.branch]) {
		if m.messages[id].role == "assistant" {
			target = id
		}
	}
	later := false
	for _, u := range s.pending {
		if !u.lazy && u.role == "assistant" {
			target, later = u.of, true
		}
	}
	if target == "" {
		target = fresh
	}
	lazy, rest := "", []unsaved{}
	for _, u := range s.pending {
		if !u.lazy {
			rest = append(rest, u)
			continue
		}
		if lazy == "" && !later {
			rest = append(rest, unsaved{role: "assistant", of: target})
		}
		lazy = u.text
	}
	var out []unsaved
	for _, u := range rest {
		if i := slices.IndexFunc(out, func(o unsaved) bool { return o.of == u.of }); i >= 0 {
			out[i] = u
		} else {
			out = append(out, u)
		}
	}
	if lazy != "" {
		i := slices.IndexFunc(out, func(o unsaved) bool { return o.of == target })
		out[i] = unsaved{text: lazy, role: "assistant", of: target}
	}
	return out
}

// leads returns the pending messages that a save appends, and the message they follow.
func (m *model) leads(s *modeledEngine) (after string, pending []unsaved, versions bool) {
	all := m.settled(s)
	version := make(map[string]bool) // ids of saved messages with new versions
	for _, u := range all {
		saved, known := m.messages[u.of]
		version[u.of] = known && u.text != saved.text
	}
	for more := true; more; {
		after, more = m.heads[s.branch], false
		least := 0
		for _, u := range all {
			if n := len(m.line(u.of)); version[u.of] && (least == 0 || n < least) {
				after, least = m.messages[u.of].parent, n
			}
		}
		line := m.line(after)
		for _, u := range all {
			if _, known := m.messages[u.of]; known && !version[u.of] && !slices.Contains(line, u.of) {
				version[u.of], more = true, true
			}
		}
	}
	for _, u := range all {
		if _, known := m.messages[u.of]; !known || version[u.of] {
			pending = append(pending, u)
		}
		versions = versions || version[u.of]
	}
	return after, pending, versions
}

func (m *model) resolved(s *modeledEngine) []string {
	after, pending, _ := m.leads(s)
	texts := m.texts(after)
	for _, u := range pending {
		texts = append(texts, u.text)
	}
	return texts
}

func (m *model) texts(head string) []string {
	texts := []string{}
	for _, id := range m.line(head) {
		texts = append(texts, m.messages[id].text)
	}
	return texts
}

func (m *model) resolveAny(r *rapid.T) {
	s := m.any(r)
	require.Equal(r, m.resolved(s), s.says())
}

// name returns the name of the next branch created from one.
func (m *model) name(from string) string {
	count := 0
	for name := range m.heads {
		if name == from || strings.HasPrefix(name, from+"-v") {
			count++
		}
	}
	for {
		count++
		name := fmt.Sprintf("%s-v%d", from, count)
		if _, taken := m.heads[name]; !taken {
			return name
		}
	}
}

func (m *model) saveAny(r *rapid.T) {
	s := m.any(r)
	after, pending, versions := m.leads(s)
	if versions {
		s.branch = m.name(s.branch)
		m.heads[s.branch], m.active = after, s.branch
	}
	head, err := s.Save(background)
	require.NoError(r, err)
	if len(pending) == 0 {
		if len(s.pending) == 0 {
			require.Empty(r, head)
		} else {
			require.Equal(r, m.heads[s.branch], string(head))
		}
		s.pending = nil
		return
	}
	// The engine chooses the ids of new versions.
	ids := make([]string, len(pending))
	for i, u := range slices.Backward(pending) {
		row, err := m.Message(background, m.chatID, string(head))
		require.NoError(r, err)
		require.NotNil(r, row)
		require.Equal(r, u.text, textOf(r, *row))
		_, known := m.messages[u.of]
		require.Equal(r, u.of == row.ID, u.of != fresh && !known, "only new messages keep their ids")
		ids[i], head = row.ID, row.ParentID
	}
	for i, u := range pending {
		m.messages[ids[i]] = modelMessage{text: u.text, role: u.role, parent: m.heads[s.branch]}
		m.heads[s.branch], m.ids = ids[i], append(m.ids, ids[i])
	}
	s.pending = nil
}

// to records that an engine has created a branch and switched to it.
func (m *model) to(s *modeledEngine, id string, b chat.BranchInfo) {
	s.branch = m.name(s.branch)
	m.heads[s.branch], m.active, s.pending = id, s.branch, nil
	require.Equal(m.t, s.branch, b.Name)
	require.Equal(m.t, chat.Ref(id), b.HeadMessageID)
	require.Equal(m.t, len(m.line(id)), b.MessageCount)
	require.True(m.t, b.IsActive)
}

func (m *model) rewindAny(r *rapid.T) {
	s, id := m.any(r), m.anyMessage(r)
	m.to(s, id, s.rewind(id))
}

func (m *model) asideAny(r *rapid.T) {
	s := m.any(r)
	b, err := s.Aside(background)
	head := m.heads[s.branch]
	if head == "" {
		require.ErrorIs(r, err, engine.ErrNoMessages)
		return
	}
	require.NoError(r, err)
	name := m.name(s.branch)
	m.heads[name] = head
	require.Equal(r, name, b.Name)
	require.Equal(r, len(m.line(head)), b.MessageCount)
	require.False(r, b.IsActive)
}

func (m *model) switchAny(r *rapid.T) {
	s := m.any(r)
	s.branch = rapid.SampledFrom(slices.Sorted(maps.Keys(m.heads))).Draw(r, "branch")
	s.switchTo(s.branch)
	m.active, s.pending = s.branch, nil
}

func (m *model) checkpointAny(r *rapid.T) {
	s, name := m.any(r), rapid.SampledFrom([]string{"x", "y"}).Draw(r, "name")
	_, err := s.Checkpoint(background, name)
	if m.heads[s.branch] == "" {
		require.ErrorIs(r, err, engine.ErrNoMessages)
		return
	}
	require.NoError(r, err)
	m.checkpoints[name] = m.heads[s.branch]
}

func (m *model) restoreAny(r *rapid.T) {
	s, name := m.any(r), rapid.SampledFrom([]string{"x", "y"}).Draw(r, "name")
	b, err := s.Restore(background, name)
	id, ok := m.checkpoints[name]
	if !ok {
		require.ErrorIs(r, err, chat.ErrNotFound)
		return
	}
	require.NoError(r, err)
	m.to(s, id, b)
}

func (m *model) reopenAny(r *rapid.T) {
	s := m.any(r)
	s.conversation = m.open(m.chatID)
	s.branch, s.pending = m.active, nil
}

func (m *model) check() {
	require.ElementsMatch(m.t, slices.Collect(maps.Keys(m.heads)), func() []string {
		names := m.names(m.chatID)
		for i, name := range names {
			names[i] = strings.TrimSuffix(name, "*")
			require.Equal(m.t, names[i] == m.active, names[i] != name)
		}
		return names
	}())
	for name, head := range m.heads {
		require.Equal(m.t, m.texts(head), m.on(m.chatID, name))
	}
	for _, s := range m.sessions {
		require.Equal(m.t, s.branch, s.Branch())
		require.Len(m.t, s.Pending(), len(s.pending))
	}
}

func (m *model) checkMessages() {
	g, err := m.Graph(background, m.chatID)
	require.NoError(m.t, err)
	require.Len(m.t, g.Nodes, len(m.messages), "every message that was ever saved, and no other")
	for id, message := range m.messages {
		row, err := m.Message(background, m.chatID, id)
		require.NoError(m.t, err)
		require.Equal(m.t, message.text, textOf(m.t, *row))
		require.Equal(m.t, message.parent, string(row.ParentID))
	}
	for name, id := range m.checkpoints {
		c, err := m.Checkpoint(background, m.chatID, name)
		require.NoError(m.t, err)
		require.Equal(m.t, id, c.MessageID)
	}
}
