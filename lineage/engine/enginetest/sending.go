package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/message"
)

func (c *conversation) resolve(o engine.ResolveOptions) *engine.Resolved {
	r, err := c.Resolve(background, o)
	require.NoError(c.t, err)
	return r
}

func textsOf(r *engine.Resolved) []string {
	texts := []string{}
	for _, m := range r.Messages {
		texts = append(texts, m.Text())
	}
	return texts
}

// testPlaceholders saves the empty answer of an unfinished turn, and then its content.
//
// feature: engine/placeholder
func testPlaceholders(t *testing.T, s *store) {
	c := s.open("c")
	empty := engine.UIMessage{ID: "a1", Role: "assistant", Parts: []engine.Part{}}
	begun := engine.UIMessage{ID: "a2", Role: "assistant", Parts: []engine.Part{{Type: engine.PartStepStart}, engine.TextPart("")}}
	c.set(user("q1"), engine.Message(empty), engine.Message(begun))
	require.Equal(t, []string{"q1"}, c.says())
	c.save()
	r := c.resolve(engine.ResolveOptions{})
	require.Equal(t, []string{"q1"}, textsOf(r))
	require.Len(t, r.History, 1)
	for _, d := range message.Dialects() {
		out, err := r.Encode(d)
		require.NoError(t, err)
		require.Len(t, out.Items, 1, d)
	}
	require.Equal(t, []string{"q1"}, textsOf(c.resolve(engine.ResolveOptions{Last: 1})), "what says nothing does not count")
	c.set(assistant("a1"))
	require.Equal(t, []string{"q1", "a1"}, c.says())
}

// feature: engine/budget
func testLast(t *testing.T, s *store) {
	c := talk(s, "c", "")
	c.set(user("q3"))
	for n, want := range map[int][]string{
		1: {"q3"}, 2: {"a2", "q3"}, 4: {"a1", "q2", "a2", "q3"}, 5: {"q1", "a1", "q2", "a2", "q3"}, 9: {"q1", "a1", "q2", "a2", "q3"},
	} {
		r := c.resolve(engine.ResolveOptions{Last: n})
		require.Equal(t, want, textsOf(r))
		require.Equal(t, len(want) < 5, r.Omitted)
	}
	for _, o := range []engine.ResolveOptions{{Last: -1}, {Budget: -1}} {
		_, err := c.Resolve(background, o)
		require.ErrorIs(t, err, chat.ErrInvalid)
	}
}

// testBudget resolves random histories within random budgets.
//
// feature: engine/budget
func testBudget(t *testing.T, s *store) {
	bytes := func(text string) int { return len(text) }
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		c := (&store{Store: s.Store, t: r}).open(fmt.Sprint("budget", round))
		c.set(engine.Role(rapid.StringMatching(`[a-z]{0,30}`).Draw(r, "role")))
		n := rapid.IntRange(0, 12).Draw(r, "messages")
		saved := rapid.IntRange(0, n).Draw(r, "saved")
		for i := range n {
			c.set(engine.User(strings.Repeat("x", rapid.IntRange(1, 60).Draw(r, "size"))))
			if i+1 == saved {
				c.save()
			}
		}
		whole := c.resolve(engine.ResolveOptions{Tokens: bytes})
		require.Len(r, whole.Messages, n)
		require.False(r, whole.Omitted)
		o := engine.ResolveOptions{Tokens: bytes, Budget: rapid.IntRange(1, whole.Tokens+10).Draw(r, "budget")}
		got := c.resolve(o)
		omitted := n - len(got.Messages)
		require.Equal(r, omitted > 0, got.Omitted)
		require.Equal(r, textsOf(whole)[omitted:], textsOf(got))
		if len(got.Messages) > 0 {
			require.LessOrEqual(r, got.Tokens, o.Budget)
		}
		if got.Omitted {
			next := textsOf(whole)[omitted-1]
			require.Greater(r, got.Tokens+len(next)+4, o.Budget, "one more does not fit")
		}
	})
}

// testCalls limits histories with tool calls in every format.
//
// feature: engine/tools
func testCalls(t *testing.T, s *store) {
	histories := map[string][]string{
		"chat": {
			`{"role":"user","content":"q"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"t1","content":"one"}`, `{"role":"tool","tool_call_id":"t2","content":"two"}`, `{"role":"user","content":"r"}`,
		},
		"responses": {
			`{"role":"user","content":"q"}`,
			`{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"}`, `{"type":"function_call","call_id":"t2","name":"f","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"t1","output":"one"}`, `{"type":"function_call_output","call_id":"t2","output":"two"}`, `{"role":"user","content":"r"}`,
		},
		"anthropic": {
			`{"role":"user","content":"q"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"text","text":"and"}]}`, `{"role":"user","content":"r"}`,
		},
		"between": {
			`{"role":"user","content":"q"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`, `{"role":"user","content":"are you there?"}`, `{"role":"assistant","content":"yes"}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"}]}`, `{"role":"user","content":"r"}`,
		},
	}
	for name, rows := range histories {
		t.Run(name, func(t *testing.T) {
			c, parent := s.open(name), chat.Ref("")
			for i, row := range rows {
				var got struct{ Role string }
				require.NoError(t, json.Unmarshal([]byte(row), &got))
				if got.Role == "" {
					got.Role = "assistant"
				}
				id := fmt.Sprint(name, i)
				require.NoError(t, s.AddMessage(background, chat.Message{
					ID: id, ChatID: name, ParentID: parent, Name: got.Role, Type: chat.TypeMessage, Data: json.RawMessage(row),
				}))
				parent = chat.Ref(id)
			}
			main, err := s.Branch(background, name, "main")
			require.NoError(t, err)
			require.NoError(t, s.UpdateBranchHead(background, name, main.ID, parent))
			whole := c.resolve(engine.ResolveOptions{})
			cuts := make(map[int]bool)
			check := func(r *engine.Resolved) {
				cuts[len(r.History)] = true
				calls := make(map[string]bool)
				for _, m := range r.History {
					for _, p := range m.Parts {
						switch p.Kind {
						case message.CallKind:
							calls[p.CallID] = true
						case message.ResultKind:
							require.True(t, calls[p.CallID], "a result without its call")
						}
					}
				}
			}
			for n := range len(rows) {
				check(c.resolve(engine.ResolveOptions{Last: n + 1}))
			}
			for budget := range whole.Tokens {
				check(c.resolve(engine.ResolveOptions{Budget: budget + 1}))
			}
			require.True(t, cuts[1] && cuts[len(rows)-1], "cut before and behind the calls")
		})
	}
}

// testDecode stores messages in a custom format and reads them with Options.Decode.
//
// feature: codec/decode
func testDecode(t *testing.T, s *store) {
	errOwn := errors.New("not mine to read")
	decode := func(m chat.Message) (engine.UIMessage, bool, error) {
		var own struct{ Own *string }
		if json.Unmarshal(m.Data, &own) != nil || own.Own == nil {
			return engine.UIMessage{}, false, nil
		}
		if *own.Own == "" {
			return engine.UIMessage{}, false, errOwn
		}
		return engine.UIMessage{Role: "assistant", Parts: []engine.Part{engine.TextPart(*own.Own)}}, true, nil
	}
	e, err := engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Decode: decode})
	require.NoError(t, err)
	c := &conversation{Engine: e, t: t}
	own := assistant("a1")
	own.Codec = ownForm{`{"own":"by my codec"}`}
	c.set(user("q1"), own)
	_, err = c.Save(background)
	require.NoError(t, err)
	m, err := s.Message(background, "c", "a1")
	require.NoError(t, err)
	require.JSONEq(t, `{"own":"by my codec"}`, string(m.Data))
	r := c.resolve(engine.ResolveOptions{})
	require.Equal(t, []string{"q1", "by my codec"}, textsOf(r))
	require.Equal(t, "a1", r.Messages[1].ID)

	bad := assistant("a2")
	bad.Codec = ownForm{`{"own":""}`}
	c.set(bad)
	_, err = c.Save(background)
	require.NoError(t, err)
	_, err = c.Resolve(background, engine.ResolveOptions{})
	require.ErrorIs(t, err, errOwn)
	require.ErrorContains(t, err, "a2")
}

// ownForm is a codec whose stored form is not a UI message.
type ownForm struct{ stored string }

func (f ownForm) Decode() (engine.UIMessage, error) {
	return engine.UIMessage{Role: "assistant", Parts: []engine.Part{engine.TextPart("by my codec")}}, nil
}

func (f ownForm) Encode() (json.RawMessage, error) { return json.RawMessage(f.stored), nil }

// testBranch uses engines on branches that are not active.
//
// feature: engine/any-branch
func testBranch(t *testing.T, s *store) {
	main := talk(s, "c", "")
	info, err := main.Aside(background)
	require.NoError(t, err)
	e, err := engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Branch: info.Name})
	require.NoError(t, err)
	aside := &conversation{Engine: e, t: t}
	aside.save(user("by the way"))
	main.save(user("q3"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "by the way"}, aside.says())
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3"}, main.says())
	require.Equal(t, []string{"main*", "main-v2"}, s.names("c"))

	// The engine never changes the active branch.
	aside.save(says("user", "by the way", "BTW"))
	require.Equal(t, "main-v2-v2", aside.Branch())
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "BTW"}, aside.says())
	b := aside.rewind("q1")
	require.False(t, b.IsActive)
	require.Equal(t, []string{"q1"}, aside.says())
	_, err = aside.Checkpoint(background, "here")
	require.NoError(t, err)
	_, err = aside.Restore(background, "here")
	require.NoError(t, err)
	aside.switchTo("main-v2")
	require.Equal(t, []string{"main*", "main-v2", "main-v2-v2", "main-v2-v2-v2", "main-v2-v2-v2-v2"}, s.names("c"))
	require.Equal(t, "main", s.open("c").Branch())

	_, err = engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Branch: "none"})
	requireError(t, err, chat.ErrNotFound, chat.SubjectBranch, "none")
}

// testPending lists, drops and replaces pending messages.
//
// feature: engine/pending
// feature: state/save-clears
func testPending(t *testing.T, s *store) {
	c := talk(s, "c", "")
	c.set(user("x"), says("user", "refused \x00", "text"), user("y"))
	_, err := c.Save(background)
	require.ErrorIs(t, err, chat.ErrInvalid)
	with := func(id string) func(engine.Fragment) bool { return func(f engine.Fragment) bool { return f.ID == id } }
	require.Equal(t, 1, c.Remove(with("refused \x00")))
	require.Equal(t, []string{"x", "y"}, c.pendingTexts())
	require.Zero(t, c.Remove(with("refused \x00")))

	n, err := c.Replace(with("x"), says("user", "x2", "X"), user("z"))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"X", "z", "y"}, c.pendingTexts())
	_, err = c.Replace(with("y"), engine.Fragment{Name: "user", Type: engine.TypeMessage})
	require.ErrorIs(t, err, engine.ErrNoCodec)
	require.Equal(t, []string{"X", "z", "y"}, c.pendingTexts(), "nothing changed")
	_, err = c.Replace(with("none"), user("last"))
	require.NoError(t, err)
	c.save()
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "X", "z", "y", "last"}, s.on("c", "main"))
	require.Empty(t, c.pendingTexts())

	c.set(user("first"), user("second"))
	first := c.Pending()[0]
	n, err = c.Replace(with(first.ID), user("instead"))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	c.save()
	require.Empty(t, c.pendingTexts(), "what replaced another is saved with what was behind that")
}

// testContext removes and replaces context.
//
// feature: fragment/change
func testContext(t *testing.T, s *store) {
	c := s.open("c")
	named := func(name string) func(engine.Fragment) bool {
		return func(f engine.Fragment) bool { return f.Name == name }
	}
	c.set(engine.Role("r"), engine.Hint("one"), engine.Hint("two"), engine.Term("a", "b"), user("hint"))
	n, err := c.Replace(named("hint"), engine.Hint("three"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"role", "hint", "term"}, names(c.Fragments()))
	require.Equal(t, "<role>r</role>\n<hint>three</hint>", strings.Split(c.resolve(engine.ResolveOptions{}).SystemPrompt, "\n<term>")[0])
	require.Equal(t, 1, c.Remove(named("role")))
	require.Equal(t, []string{"hint", "term"}, names(c.Fragments()))
	require.Len(t, c.Pending(), 1)
}

func names(fragments []engine.Fragment) (names []string) {
	for _, f := range fragments {
		names = append(names, f.Name)
	}
	return names
}
