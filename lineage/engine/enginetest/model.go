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

// said is a message in the model. Its text, which no other has, names it.
type said struct {
	parent, role string
	id           string
}

// unsaved is a pending message: of is the id that it was given, if any.
type unsaved struct {
	text, role, of string
	lazy           bool
}

// session is an engine and what should be in it.
type session struct {
	*conversation
	branch  string
	pending []unsaved
}

// model is what a chat should hold: texts and who follows whom.
type model struct {
	*store
	chatID      string
	messages    map[string]said // by text
	heads       map[string]string
	active      string
	checkpoints map[string]string
	sessions    []*session
	made        int
}

// testModel does what comes to mind with two engines on a chat and compares the chat
// and the engines with the model.
func testModel(t *testing.T, s *store) {
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		m := &model{
			store: &store{Store: s.Store, t: r}, chatID: fmt.Sprint("model", round),
			messages: map[string]said{}, heads: map[string]string{"main": ""}, active: "main", checkpoints: map[string]string{},
		}
		for range 2 {
			m.sessions = append(m.sessions, &session{conversation: m.open(m.chatID), branch: "main"})
		}
		r.Repeat(map[string]func(*rapid.T){
			"set":        m.setAny,
			"version":    m.setVersion,
			"lazy":       m.setLazy,
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

func (m *model) any(r *rapid.T) *session {
	return m.sessions[rapid.IntRange(0, len(m.sessions)-1).Draw(r, "engine")]
}

func (m *model) anyMessage(r *rapid.T) string {
	if len(m.messages) == 0 {
		r.Skip("no messages")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.messages))).Draw(r, "message")
}

func (m *model) text() string {
	m.made++
	return fmt.Sprintf("%s.%03d", m.chatID, m.made)
}

func (m *model) put(s *session, u unsaved) {
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

// setVersion sets a new version of a message, saved or pending.
func (m *model) setVersion(r *rapid.T) {
	s := m.any(r)
	of := []unsaved{}
	for _, text := range slices.Sorted(maps.Keys(m.messages)) {
		of = append(of, unsaved{of: m.messages[text].id, role: m.messages[text].role})
	}
	for _, u := range s.pending {
		if !u.lazy {
			of = append(of, u)
		}
	}
	if len(of) == 0 {
		r.Skip("no messages")
	}
	u := rapid.SampledFrom(of).Draw(r, "of")
	u.text = m.text()
	m.put(s, u)
}

func (m *model) setLazy(r *rapid.T) {
	m.put(m.any(r), unsaved{text: m.text(), role: "assistant", lazy: true})
}

// textOfID returns the saved message with an id, "" if there is none.
func (m *model) textOfID(id string) string {
	for text, message := range m.messages {
		if message.id == id {
			return text
		}
	}
	return ""
}

func (m *model) line(head string) []string {
	line := []string{}
	for ; head != ""; head = m.messages[head].parent {
		line = append(line, head)
	}
	slices.Reverse(line)
	return line
}

// fresh stands for an id that is not known yet.
const fresh = "\x00"

// settled returns what is pending with lazy messages resolved and one version of
// each.
func (m *model) settled(s *session) []unsaved {
	target := ""
	for _, text := range m.line(m.heads[s.branch]) {
		if m.messages[text].role == "assistant" {
			target = m.messages[text].id
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

func (m *model) resolved(s *session) []string {
	line := m.line(m.heads[s.branch])
	for _, u := range m.settled(s) {
		line = append(line, u.text)
	}
	return line
}

func (m *model) resolveAny(r *rapid.T) {
	s := m.any(r)
	require.Equal(r, m.resolved(s), s.says())
}

// name returns the name of a branch made from one.
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
	pending := m.settled(s)
	versions := []string{}
	for _, u := range pending {
		if text := m.textOfID(u.of); text != "" {
			versions = append(versions, text)
		}
	}
	if len(versions) > 0 {
		earliest := slices.MinFunc(versions, func(a, b string) int { return len(m.line(a)) - len(m.line(b)) })
		s.branch = m.name(s.branch)
		m.heads[s.branch], m.active = m.messages[earliest].parent, s.branch
	}
	head, err := s.Save(background)
	require.NoError(r, err)
	if len(pending) == 0 {
		require.Empty(r, head)
		return
	}
	// The ids of new versions are the engine's.
	ids := make([]string, len(pending))
	for i, u := range slices.Backward(pending) {
		row, err := m.Message(background, string(head))
		require.NoError(r, err)
		require.NotNil(r, row)
		require.Equal(r, u.text, textOf(r, *row))
		require.Equal(r, u.of == row.ID, u.of != fresh && m.textOfID(u.of) == "", "only new messages keep their ids")
		ids[i], head = row.ID, row.ParentID
	}
	for i, u := range pending {
		m.messages[u.text] = said{id: ids[i], role: u.role, parent: m.heads[s.branch]}
		m.heads[s.branch] = u.text
	}
	s.pending = nil
}

// to makes a branch of an engine's and has it go there.
func (m *model) to(s *session, text string, b chat.BranchInfo) {
	s.branch = m.name(s.branch)
	m.heads[s.branch], m.active, s.pending = text, s.branch, nil
	require.Equal(m.t, s.branch, b.Name)
	require.Equal(m.t, chat.Ref(m.messages[text].id), b.HeadMessageID)
	require.Equal(m.t, len(m.line(text)), b.MessageCount)
	require.True(m.t, b.IsActive)
}

func (m *model) rewindAny(r *rapid.T) {
	s, text := m.any(r), m.anyMessage(r)
	m.to(s, text, s.rewind(m.messages[text].id))
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
	text, ok := m.checkpoints[name]
	if !ok {
		require.ErrorIs(r, err, chat.ErrNotFound)
		return
	}
	require.NoError(r, err)
	m.to(s, text, b)
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
		require.Equal(m.t, m.line(head), m.on(m.chatID, name))
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
	for text, message := range m.messages {
		row, err := m.Message(background, message.id)
		require.NoError(m.t, err)
		require.Equal(m.t, text, textOf(m.t, *row))
		require.Equal(m.t, m.messages[message.parent].id, string(row.ParentID))
	}
	for name, text := range m.checkpoints {
		c, err := m.Checkpoint(background, m.chatID, name)
		require.NoError(m.t, err)
		require.Equal(m.t, m.messages[text].id, c.MessageID)
	}
}
