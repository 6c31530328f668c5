package lineage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

func resolve(t testing.TB, c *lineage.Context, o lineage.ResolveOptions) *lineage.Resolved {
	t.Helper()
	r, err := c.Resolve(bg, o)
	require.NoError(t, err)
	return r
}

func partsOf(r *lineage.Resolved) []string {
	parts := []string{}
	for _, p := range r.Parts {
		parts = append(parts, p.Text())
	}
	return parts
}

// bytesAreTokens makes budgets easy to calculate: a message costs its length and the overhead.
var bytesAreTokens = func(text string) int { return len(text) }

func TestResolveAllAndLast(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{Overrides: lineage.Overrides{SystemPrompt: pointer("be brief"), Model: pointer("large")}})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	r := resolve(t, c, lineage.ResolveOptions{Budget: 100})
	require.Empty(t, r.Parts)
	require.True(t, r.Digest.IsZero())

	say(t, c, "one", "two", "three")
	r = resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens})
	require.Equal(t, []string{"one", "two", "three"}, partsOf(r))
	require.Equal(t, []string{"be brief", "large"}, []string{r.SystemPrompt, r.Model})
	require.Zero(t, r.Omitted)
	require.Equal(t, 8+3+3+5+4*4, r.Tokens)
	digest, err := c.Digest(bg)
	require.NoError(t, err)
	require.Equal(t, digest, r.Digest)

	r = resolve(t, c, lineage.ResolveOptions{Last: 2})
	require.Equal(t, []string{"two", "three"}, partsOf(r))
	require.Equal(t, uint64(1), r.Omitted)
	require.Len(t, resolve(t, c, lineage.ResolveOptions{Last: 9}).Parts, 3)
}

func TestResolveCountsText(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("a tool says a lot ", 10_000) // more than a history loads
	c := newContext(t, s)
	_, err := c.Extend(bg, lineage.Together(lineage.User("look"),
		lineage.Item{Kind: lineage.Asset, Filename: "photo.png", Type: content.TypePNG, Body: []byte("\x89PNG")}))
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.User("secret"), lineage.ToolResult("", "read", long),
		lineage.Item{Kind: lineage.Document, Document: "plan", Body: []byte(long + "!")})
	require.NoError(t, err)
	entries, err := c.All(bg)
	require.NoError(t, err)
	require.Nil(t, entries[3].Body)
	require.NoError(t, s.Erase(bg, entries[2].Content))

	said := []string{"look", "[image/png, 4 bytes]", "[erased]", long, long + "!"}
	tokens := 0
	for _, text := range said {
		tokens += len(text) + 4
	}
	r := resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens})
	require.Equal(t, said, partsOf(r))
	require.Equal(t, tokens, r.Tokens)
	require.True(t, r.Parts[2].Entry.Erased)
	r = resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens, Budget: tokens})
	require.Equal(t, said, partsOf(r))
	r = resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens, Budget: tokens - 1})
	require.Equal(t, said[2:], partsOf(r))
	r = resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens, Budget: 1000})
	require.Empty(t, r.Parts, "the last by itself takes more")
}

//test:norace
func TestResolveNotesLargeBodies(t *testing.T) {
	c := newContext(t, newStore(t))
	most := strings.Repeat("m", lineage.MostText)
	_, err := c.Extend(bg, lineage.User(most), lineage.User(most+"m"))
	require.NoError(t, err)
	r := resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens})
	require.Len(t, r.Parts, 2)
	require.True(t, most == r.Parts[0].Text())
	require.Equal(t, fmt.Sprintf("[text/plain, %d bytes]", len(most)+1), r.Parts[1].Text())
}

func TestResolveBudgetWithoutSummaries(t *testing.T) {
	c := newContext(t, newStore(t), numbered("message", 9)...) // 13 tokens each
	for _, test := range []struct {
		budget int
		parts  int
	}{{12, 0}, {13, 1}, {25, 1}, {26, 2}, {116, 8}, {117, 9}, {1000, 9}} {
		t.Run(fmt.Sprint(test.budget), func(t *testing.T) {
			r := resolve(t, c, lineage.ResolveOptions{Budget: test.budget, Tokens: bytesAreTokens})
			require.Equal(t, numbered("message", 9)[9-test.parts:], partsOf(r))
			require.EqualValues(t, 9-test.parts, r.Omitted)
			require.Equal(t, 13*test.parts, r.Tokens)
		})
	}
}

func TestResolveBudgetWithSummaries(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, numbered("a", 10)...) // 3 bytes each, the tenth 4
	summary, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{})
	require.NoError(t, err)
	say(t, c, numbered("b", 4)...)

	r := resolve(t, c, lineage.ResolveOptions{Budget: 60, Tokens: bytesAreTokens})
	require.Equal(t, append([]string{"10 passages", "a 9", "a 10"}, numbered("b", 4)...), partsOf(r), "what fits is there as it is, too")
	require.Equal(t, summary.ID, r.Parts[0].Summary.ID)
	require.Zero(t, r.Omitted)
	require.Equal(t, 15+7+8+4*7, r.Tokens)
	require.Equal(t, numbered("a", 10), textsOf(standsFor(t, s, r.Parts[0].Summary)))

	r = resolve(t, c, lineage.ResolveOptions{Budget: 30, Tokens: bytesAreTokens})
	require.Equal(t, []string{"10 passages", "b 3", "b 4"}, partsOf(r))
	require.Equal(t, uint64(2), r.Omitted, "what is between is neither there nor summarized")

	require.Len(t, resolve(t, c, lineage.ResolveOptions{Budget: 1000}).Parts, 14, "what fits needs no summary")
}

func TestResolvePrefersMessagesToTheirSummary(t *testing.T) {
	c := newContext(t, newStore(t), numbered("a", 5)...)
	first := summarize(t, c, lineage.SummarizeOptions{Keep: 3})
	second := summarize(t, c, lineage.SummarizeOptions{})
	r := resolve(t, c, lineage.ResolveOptions{Budget: 34, Tokens: func(text string) int {
		if strings.Contains(text, ":") {
			return 1 // summaries cost 5, messages 7
		}
		return 3
	}})
	require.Equal(t, []string{first.Text, "a 2", "a 3", "a 4", "a 5"}, partsOf(r), "no place for %s", second.Text)
	require.Zero(t, r.Omitted)
}

func TestResolveUsesASummaryOfTheMiddle(t *testing.T) {
	c := newContext(t, newStore(t), numbered("a long message", 4)...)
	first := summarize(t, c, lineage.SummarizeOptions{Keep: 2})
	second := summarize(t, c, lineage.SummarizeOptions{})
	say(t, c, strings.Repeat("long ", 10))
	require.NoError(t, c.DeleteSummary(bg, first.ID))
	r := resolve(t, c, lineage.ResolveOptions{Budget: 75, Tokens: bytesAreTokens})
	require.Equal(t, []string{second.Text, strings.Repeat("long ", 10)}, partsOf(r))
	require.Equal(t, uint64(2), r.Omitted)
}

func TestResolvePrefersFinerSummaries(t *testing.T) {
	messages := numbered("a message that", 9) // 20 tokens each, and each summary 14
	c := newContext(t, newStore(t), messages...)
	first, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Keep: 6})
	require.NoError(t, err)
	second, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Keep: 1})
	require.NoError(t, err)
	whole, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{first.ID, second.ID}})
	require.NoError(t, err)
	for _, test := range []struct {
		budget int
		want   []string
	}{
		{180, messages},
		{179, append([]string{first.Text}, messages[1:]...)},
		{14 + 6*20, append([]string{first.Text}, messages[3:]...)},
		{13 + 6*20, append([]string{first.Text, second.Text}, messages[4:]...)},
		{48, []string{first.Text, second.Text, messages[8]}},
		{47, []string{whole.Text, messages[8]}},
		{34, []string{whole.Text, messages[8]}},
	} {
		r := resolve(t, c, lineage.ResolveOptions{Budget: test.budget, Tokens: bytesAreTokens})
		require.Equal(t, test.want, partsOf(r), "%d", test.budget)
		require.Zero(t, r.Omitted)
		require.LessOrEqual(t, r.Tokens, test.budget)
	}
}

// A summary does not replace messages that fit: if a history exceeds the budget by one token, only
// the first few are replaced.
func TestResolveKeepsWhatFits(t *testing.T) {
	var messages []string
	for i := range 100 {
		messages = append(messages, fmt.Sprintf("a question about the harbour and its %03d ships", i))
	}
	c := newContext(t, newStore(t), messages...)
	summary := summarize(t, c, lineage.SummarizeOptions{Keep: 5})
	each, extra := len(messages[0])+4, len(summary.Text)+4
	for _, room := range []int{80, 60, 20} {
		r := resolve(t, c, lineage.ResolveOptions{Budget: room*each + extra, Tokens: bytesAreTokens})
		require.Equal(t, append([]string{summary.Text}, messages[100-room:]...), partsOf(r))
		require.Zero(t, r.Omitted)
	}
	// It may take more than half of the budget if all messages after it fit.
	require.Greater(t, extra, 5*each)
	r := resolve(t, c, lineage.ResolveOptions{Budget: 5*each + extra, Tokens: bytesAreTokens})
	require.Equal(t, append([]string{summary.Text}, messages[95:]...), partsOf(r))
	require.Zero(t, r.Omitted)
	r = resolve(t, c, lineage.ResolveOptions{Budget: 5*each + extra - 1, Tokens: bytesAreTokens})
	require.Nil(t, r.Parts[0].Summary)
}

func TestResolveKeepsTogether(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "ask")
	for _, i := range []lineage.Item{
		lineage.Assistant("call"), lineage.ToolResult("", "read", "res1"), lineage.ToolResult("", "read", "res2"), lineage.User("next"), lineage.Assistant("done"),
	} {
		_, err := c.Extend(bg, i)
		require.NoError(t, err)
	}
	all := []string{"ask", "call", "res1", "res2", "next", "done"}
	each := func(_, _ *lineage.Entry) bool { return false }
	for n, want := range [][]string{all[6:], all[5:], all[4:], all[4:], all[4:], all[1:], all} {
		of := 0
		for _, text := range all[6-n:] {
			of += len(text) + 4
		}
		if n > 0 {
			require.Equal(t, want, partsOf(resolve(t, c, lineage.ResolveOptions{Budget: of, Tokens: bytesAreTokens})), "%d by budget", n)
			require.Equal(t, want, partsOf(resolve(t, c, lineage.ResolveOptions{Last: uint64(n)})), "%d by number", n)
			require.Equal(t, want, partsOf(resolve(t, c, lineage.ResolveOptions{Last: uint64(n), Budget: 1000})), "%d by both", n)
			require.Equal(t, all[6-n:], partsOf(resolve(t, c, lineage.ResolveOptions{Last: uint64(n), KeepTogether: each})), "%d, wherever", n)
			require.Equal(t, all[6-n:], partsOf(resolve(t, c, lineage.ResolveOptions{Budget: of, Tokens: bytesAreTokens, KeepTogether: each})), "%d, wherever", n)
			r := resolve(t, c, lineage.ResolveOptions{Last: uint64(n)})
			require.EqualValues(t, 6-len(want), r.Omitted)
		}
	}
	// A chain that does not fit is omitted including its end.
	back(t, c, 2)
	require.Empty(t, resolve(t, c, lineage.ResolveOptions{Last: 2}).Parts)
	r := resolve(t, c, lineage.ResolveOptions{Budget: 20, Tokens: bytesAreTokens})
	require.Empty(t, r.Parts)
	require.EqualValues(t, 4, r.Omitted)
}

// A result is not separated from its call by messages between them, large bodies or erasure.
//
//test:norace
func TestResolveKeepsResultsWithTheirCalls(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	anthropic := func(role, part string) lineage.Item {
		return asJSON(role, `{"role":"`+role+`","content":[`+part+`]}`)
	}
	for name, pair := range map[string][2]lineage.Item{
		"chat": {
			asJSON("assistant", `{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			asJSON("tool", `{"role":"tool","tool_call_id":"t1","content":"one"}`),
		},
		"responses": {
			asJSON("assistant", `{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"}`),
			asJSON("user", `{"type":"function_call_output","call_id":"t1","output":"one"}`),
		},
		"anthropic": {
			anthropic("assistant", `{"type":"tool_use","id":"t1","name":"f","input":{}}`),
			anthropic("user", `{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"text","text":"and"}`),
		},
		"large": {
			anthropic("assistant", `{"type":"tool_use","id":"t1","name":"f","input":{"k":"`+large+`"}}`),
			anthropic("user", `{"type":"tool_result","tool_use_id":"t1","content":"`+large+`"}`),
		},
		"erased": {
			anthropic("assistant", `{"type":"tool_use","id":"t1","name":"f","input":{"k":"secret"}}`),
			anthropic("user", `{"type":"tool_result","tool_use_id":"t1","content":"erased too"}`),
		},
	} {
		for _, between := range []int{0, 1, 3, 40} {
			t.Run(fmt.Sprint(name, between), func(t *testing.T) {
				s := newStore(t)
				c := newContext(t, s, "ask")
				extend := func(i lineage.Item) {
					_, err := c.Extend(bg, i)
					require.NoError(t, err)
				}
				extend(pair[0])
				say(t, c, numbered("meanwhile", between)...)
				extend(pair[1])
				say(t, c, "next")
				if name == "erased" {
					entries, err := c.All(bg)
					require.NoError(t, err)
					for _, e := range []*lineage.Entry{entries[1], entries[len(entries)-2]} {
						for _, id := range e.Contents() {
							require.NoError(t, s.Erase(bg, id))
						}
					}
				}
				length := between + 4
				for n := 1; n <= length; n++ {
					want := n
					if n > 1 && n < length-1 {
						want = 1
					}
					require.Len(t, resolve(t, c, lineage.ResolveOptions{Last: uint64(n)}).Parts, want, "last %d", n)
					require.Len(t, resolve(t, c, lineage.ResolveOptions{Budget: n, Tokens: func(string) int { return -3 }}).Parts, want, "budget %d", n)
				}
			})
		}
	}
}

// Chains are found across the steps in which the history is read.
func TestResolveKeepsTogetherInLongHistories(t *testing.T) {
	const length = 100
	c := newContext(t, newStore(t), numbered("message", length)...)
	for joined := uint64(2); joined <= length; joined++ {
		o := lineage.ResolveOptions{
			Budget: int(length-joined+1) * 30, Tokens: func(string) int { return 26 },
			KeepTogether: func(before, after *lineage.Entry) bool {
				require.Equal(t, before.Position+1, after.Position)
				return after.Position == joined
			},
		}
		require.Len(t, resolve(t, c, o).Parts, int(length-joined), "the cut would be at %d", joined)
	}
}

func TestResolveSendsWhatIsSaid(t *testing.T) {
	c := newContext(t, newStore(t))
	_, err := c.Extend(bg, asJSON("user", `{"text":"one"}`), asJSON("user", `{"text":"`+strings.Repeat("two ", 20_000)+`"}`),
		lineage.Item{Kind: lineage.Asset, Filename: "photo.png", Type: content.TypePNG, Body: []byte("\x89PNG")}, lineage.User(""))
	require.NoError(t, err)
	want := []string{"one", strings.Repeat("two ", 20_000), "[image/png, 4 bytes]", ""}
	tokens := 0
	for _, text := range want {
		tokens += len(text) + 4
	}
	r := resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens, Budget: tokens})
	require.Equal(t, want, partsOf(r))
	require.Equal(t, tokens, r.Tokens)
	tip, err := c.Tip(bg)
	require.NoError(t, err)
	require.Equal(t, tip, r.Tip)
}

func TestResolvePromptBeyondTheBudget(t *testing.T) {
	c := newContext(t, newStore(t), "one")
	require.NoError(t, setOverrides(c, lineage.Overrides{SystemPrompt: pointer("a prompt that is too long")}))
	r := resolve(t, c, lineage.ResolveOptions{Budget: 5, Tokens: bytesAreTokens})
	require.Empty(t, r.Parts)
	require.Equal(t, uint64(1), r.Omitted)
	require.Equal(t, "a prompt that is too long", r.SystemPrompt, "the prompt cannot be left out")
}

func TestResolveStepsWhole(t *testing.T) {
	c := newContext(t, newStore(t))
	_, err := c.Extend(bg, lineage.Together(lineage.User("12345"), lineage.User("67890")))
	require.NoError(t, err)
	require.Empty(t, resolve(t, c, lineage.ResolveOptions{Budget: 17, Tokens: bytesAreTokens}).Parts)
	require.Len(t, resolve(t, c, lineage.ResolveOptions{Budget: 18, Tokens: bytesAreTokens}).Parts, 2)
}

// TestResolveProperties resolves random histories with random summaries.
func TestResolveProperties(t *testing.T) {
	s := newStore(t)
	rapid.Check(t, func(t *rapid.T) {
		c, err := s.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "prompt") {
			require.NoError(t, setOverrides(c, lineage.Overrides{SystemPrompt: pointer("be brief")}))
		}
		var summaries []*lineage.SummaryInfo
		length := 0
		for range rapid.IntRange(1, 5).Draw(t, "stretches") {
			for range rapid.IntRange(1, 12).Draw(t, "messages") {
				_, err := c.Extend(bg, lineage.User(strings.Repeat("x", rapid.IntRange(0, 40).Draw(t, "size"))))
				require.NoError(t, err)
				length++
			}
			switch rapid.IntRange(0, 3).Draw(t, "summary") {
			case 0:
				summary, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Whole: true})
				require.NoError(t, err)
				summaries = append(summaries, summary)
			case 1, 2:
				summary, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Keep: rapid.Uint64Range(0, 3).Draw(t, "keep")})
				if err == nil {
					summaries = append(summaries, summary)
				}
			}
		}
		if len(summaries) > 1 && rapid.Bool().Draw(t, "level") {
			// Summaries that are not adjacent cannot be summarized.
			summary, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{summaries[0].ID, summaries[1].ID}})
			if err == nil {
				summaries = append(summaries, summary)
			}
		}
		if len(summaries) > 0 && rapid.Bool().Draw(t, "delete one") {
			require.NoError(t, c.DeleteSummary(bg, rapid.SampledFrom(summaries).Draw(t, "deleted").ID))
		}
		o := lineage.ResolveOptions{
			Budget: rapid.IntRange(0, 400).Draw(t, "budget"),
			Last:   rapid.Uint64Range(0, uint64(length+2)).Draw(t, "last"),
			Tokens: bytesAreTokens,
		}
		r, err := c.Resolve(bg, o)
		require.NoError(t, err)
		requireConsistent(t, r, o, length)
		again, err := c.Resolve(bg, o)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

// requireConsistent checks properties of every Resolved.
func requireConsistent(t *rapid.T, r *lineage.Resolved, o lineage.ResolveOptions, length int) {
	tokens, messages := 0, 0
	if r.SystemPrompt != "" {
		tokens = len(r.SystemPrompt) + 4
	}
	seen := make(map[uint64]bool)
	last, verbatim := uint64(0), uint64(0) // ends of the last summary and message
	for _, p := range r.Parts {
		require.Equal(t, len(p.Text())+4, p.Tokens)
		tokens += p.Tokens
		if p.Summary != nil {
			require.Zero(t, verbatim, "a summary behind messages")
			require.Greater(t, p.Summary.First, last, "out of order, or said twice")
			for last = p.Summary.First; last <= p.Summary.Last; last++ {
				seen[last] = true
			}
			last--
			continue
		}
		require.True(t, verbatim == 0 || p.Entry.Position == verbatim+1, "a gap between messages")
		verbatim = p.Entry.Position
		messages++
		seen[verbatim] = true
	}
	if verbatim > 0 {
		require.EqualValues(t, length, verbatim)
	}
	require.Equal(t, tokens, r.Tokens)
	require.EqualValues(t, length-len(seen), r.Omitted)
	if o.Budget > 0 && len(r.Parts) > 0 {
		require.LessOrEqual(t, r.Tokens, o.Budget)
	}
	if o.Last > 0 {
		require.LessOrEqual(t, messages, int(o.Last))
	}
	if o.Budget == 0 && o.Last == 0 {
		require.Zero(t, r.Omitted)
	}
}

// feature: engine/summaries
func TestResolveLastWithSummaries(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a 1", "b 2", "c 3", "d 4", "e 5")
	one := summarize(t, c, lineage.SummarizeOptions{Keep: 3})
	two := summarize(t, c, lineage.SummarizeOptions{Keep: 1})
	r := resolve(t, c, lineage.ResolveOptions{Last: 1})
	require.Equal(t, []string{one.Text, two.Text, "e 5"}, partsOf(r))
	require.Zero(t, r.Omitted)
	r = resolve(t, c, lineage.ResolveOptions{Last: 2})
	require.Equal(t, []string{one.Text, two.Text, "d 4", "e 5"}, partsOf(r), "what the second stands for is not all there")
	r = resolve(t, c, lineage.ResolveOptions{Last: 3})
	require.Equal(t, []string{one.Text, "c 3", "d 4", "e 5"}, partsOf(r))
	require.Len(t, resolve(t, c, lineage.ResolveOptions{Last: 5}).Parts, 5)
	r = resolve(t, c, lineage.ResolveOptions{Last: 1, Budget: 4 + 3 + 4 + len(two.Text) + 1, Tokens: bytesAreTokens})
	require.Len(t, r.Parts, 2)
	require.Equal(t, uint64(2), r.Omitted)
}

// Tool results stay with their calls, in any format.
//
// feature: engine/tools
func TestResolveKeepsResultsOfEveryFormat(t *testing.T) {
	for name, turns := range map[string][3]lineage.Item{
		"chat completions": {
			jsonMessage("user", `{"role":"user","content":"q"}`),
			jsonMessage("assistant", `{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			jsonMessage("tool", `{"role":"tool","tool_call_id":"t","content":"done"}`),
		},
		"anthropic": {
			jsonMessage("user", `{"role":"user","content":"q"}`),
			jsonMessage("assistant", `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}`),
			jsonMessage("user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"done"}]}`),
		},
		"responses": {
			jsonMessage("user", `{"role":"user","content":"q"}`),
			jsonMessage("assistant", `{"type":"function_call","call_id":"t","name":"f","arguments":"{}"}`),
			jsonMessage("user", `{"type":"function_call_output","call_id":"t","output":"done"}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContext(t, newStore(t))
			_, err := c.Extend(bg, turns[:]...)
			require.NoError(t, err)
			require.Empty(t, resolve(t, c, lineage.ResolveOptions{Last: 1}).Parts)
			require.Len(t, resolve(t, c, lineage.ResolveOptions{Last: 2}).Parts, 2)
			whole := resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens})
			require.Len(t, whole.Parts, 3)
			require.Empty(t, resolve(t, c, lineage.ResolveOptions{Budget: whole.Parts[2].Tokens, Tokens: bytesAreTokens}).Parts)
			require.Len(t, resolve(t, c, lineage.ResolveOptions{Budget: whole.Tokens - 1, Tokens: bytesAreTokens}).Parts, 2)
		})
	}
	c := newContext(t, newStore(t), "before")
	_, err := c.Extend(bg, jsonMessage("assistant", `{"role":"assistant","parts":[{"type":"tool-f","toolCallId":"t","state":"output-available","input":{},"output":"done"}]}`))
	require.NoError(t, err)
	require.Len(t, resolve(t, c, lineage.ResolveOptions{Last: 1}).Parts, 1, "a call with its result")
}

func jsonMessage(role, body string) lineage.Item {
	return lineage.Item{Role: role, Body: []byte(body), Type: content.TypeJSON}
}

// feature: lineage/document-latest
func TestResolveLatestRevisions(t *testing.T) {
	revision := func(document string, number uint64, text string) lineage.Item {
		return lineage.Item{Kind: lineage.Document, Document: document, Revision: number, Body: []byte(text)}
	}
	c := newContext(t, newStore(t))
	_, err := c.Extend(bg, lineage.User("q"), revision("plan", 1, "p1"), revision("notes", 1, "n1"), lineage.User("r"), revision("plan", 2, "p2"))
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.Together(lineage.User("s"), revision("plan", 3, "p3"), revision("notes", 2, "n2"), revision("notes", 1, "n1")))
	require.NoError(t, err)
	r := resolve(t, c, lineage.ResolveOptions{Tokens: bytesAreTokens})
	require.Equal(t, []string{"q", "r", "s", "p3", "n2"}, partsOf(r))
	require.Equal(t, 3*5+2*6, r.Tokens)
	require.Zero(t, r.Omitted)
	all := resolve(t, c, lineage.ResolveOptions{AllRevisions: true, Tokens: bytesAreTokens})
	require.Equal(t, []string{"q", "p1", "n1", "r", "p2", "s", "p3", "n2", "n1"}, partsOf(all))
	require.Equal(t, partsOf(r), partsOf(resolve(t, c, lineage.ResolveOptions{Budget: r.Tokens + 6, Tokens: bytesAreTokens})), "what is not sent takes no room")
	require.Equal(t, []string{"p2"}, partsOf(resolve(t, forkAt(t, c, 5), lineage.ResolveOptions{Last: 1})))
}

func forkAt(t *testing.T, c *lineage.Context, position uint64) *lineage.Context {
	t.Helper()
	earlier := fork(t, c)
	length, err := earlier.Len(bg)
	require.NoError(t, err)
	back(t, earlier, length-position)
	return earlier
}

func TestEstimateTokens(t *testing.T) {
	for _, test := range []struct {
		text string
		want int
	}{
		{"", 0}, {"a", 1}, {"four", 1}, {"fives", 2}, {strings.Repeat("word ", 20), 25},
		{"日本語", 3}, {"naïve", 2}, {"héé", 2}, {"🙂", 1}, {"\xff\xfe", 2}, {"a日", 2},
	} {
		require.Equal(t, test.want, lineage.EstimateTokens(test.text), "%q", test.text)
	}
}
