package lineage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

func lastEntry(t testing.TB, c *lineage.Context) *lineage.Entry {
	t.Helper()
	entries, err := c.Last(bg, 1)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	return entries[len(entries)-1]
}

// feature: lineage/subagent
func TestReturnLeadsBack(t *testing.T) {
	s := newStore(t)
	parent := newContext(t, s, "a task")
	child, err := parent.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	at := say(t, child, "step one", "step two")
	ref, err := child.Return(bg, lineage.Assistant("it is done").From("large"))
	require.NoError(t, err)
	require.Equal(t, ref, tip(t, parent))

	result := lastEntry(t, parent)
	require.Equal(t, "it is done", result.Excerpt())
	require.Equal(t, content.OriginAssistant, result.Origin.Kind)
	require.Equal(t, "large", result.Origin.ModelID)
	require.Equal(t, "lineage:context/"+child.ID().String()+"@"+at.String(), result.Origin.SourceID)
	require.Equal(t, content.Sum([]byte("step two")), result.Origin.ParentID)

	chain, err := s.Provenance(bg, result.Content)
	require.NoError(t, err)
	require.Len(t, chain, 2)
	require.Equal(t, content.Sum([]byte("step two")), chain[1].ID)
}

func TestReturnRepeatingTheLastMessage(t *testing.T) {
	s := newStore(t)
	parent := newContext(t, s, "a task")
	child := fork(t, parent)
	say(t, child, "the result")
	_, err := child.Return(bg, lineage.Assistant("the result"))
	require.NoError(t, err)
	require.True(t, lastEntry(t, parent).Origin.ParentID.IsZero(), "content is not derived from itself")
}

// feature: lineage/agents
func TestSendSharesTheBlock(t *testing.T) {
	s := newStore(t)
	from, to := newContext(t, s), newContext(t, s, "hello")
	_, err := from.Extend(bg, lineage.Assistant("a finding").From("large"))
	require.NoError(t, err)
	before, err := s.Stats(bg)
	require.NoError(t, err)
	sent := lastEntry(t, from)
	_, err = from.Send(bg, to, sent.Item())
	require.NoError(t, err)
	after, err := s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, before.Blocks, after.Blocks)
	heard := lastEntry(t, to)
	require.Equal(t, sent.Content, heard.Content)
	require.Equal(t, "large", heard.Origin.ModelID)
	require.Equal(t, "lineage:context/"+from.ID().String()+"@"+sent.Span.String(), heard.Origin.SourceID)
	require.Empty(t, lastEntry(t, from).Origin.SourceID, "the original's origin stays")
}

// addAndSend adds said to a context and sends it to another one in one commit, with the role and
// name of heard.
func addAndSend(s *lineage.Store, from, to *lineage.Context, said, heard lineage.Item) (here, there lineage.SpanRef, err error) {
	err = s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		from, err := tx.Context(bg, from.ID())
		if err != nil {
			return err
		}
		to, err := tx.Context(bg, to.ID())
		if err != nil {
			return err
		}
		spans, err := from.Extend(bg, said)
		if err != nil {
			return err
		}
		here = spans[0]
		entries, err := tx.Span(bg, here)
		if err != nil {
			return err
		}
		item := entries[0].Item()
		item.Role, item.Name, item.Origin = heard.Role, heard.Name, heard.Origin
		there, err = from.Send(bg, to, item)
		return err
	})
	return here, there, err
}

func TestAddAndSend(t *testing.T) {
	s := newStore(t)
	a := newContext(t, s, "shared")
	b := fork(t, a) // both point to the same span
	here, there, err := addAndSend(s, a, b, lineage.Assistant("hello"), lineage.Item{Role: "user", Name: "a"})
	require.NoError(t, err)
	require.Equal(t, here, tip(t, a))
	require.Equal(t, there, tip(t, b))
	entry, heard := lastEntry(t, a), lastEntry(t, b)
	require.Equal(t, entry.Content, heard.Content)
	require.Equal(t, entry.Commit, heard.Commit, "both or neither")
	require.Equal(t, []string{"user", "a"}, []string{heard.Role, heard.Name})
	require.Contains(t, heard.Origin.SourceID, a.ID().String())
}

// feature: lineage/subset
// feature: lineage/subagent
func TestSubagentSees(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	_, err := c.Extend(bg, lineage.System("rules"), lineage.User("a question"), lineage.Assistant("an answer"), lineage.User("a task"))
	require.NoError(t, err)
	for _, test := range []struct {
		name string
		sees *lineage.Filter
		want string
	}{
		{"all", nil, "rules|a question|an answer|a task"},
		{"nothing set", &lineage.Filter{}, "rules|a question|an answer|a task"},
		{"roles", &lineage.Filter{Roles: []string{"system", "user"}}, "rules|a question|a task"},
		{"last", &lineage.Filter{Window: lineage.Window{Last: 2}}, "an answer|a task"},
		{"range", &lineage.Filter{Window: lineage.Window{From: 2, To: 3}}, "a question|an answer"},
		{"predicate", &lineage.Filter{Keep: func(e *lineage.Entry) bool { return strings.HasPrefix(e.Excerpt(), "a ") }}, "a question|a task"},
		{"several", &lineage.Filter{Roles: []string{"user"}, Window: lineage.Window{Last: 2}}, "a task"},
		{"none", &lineage.Filter{Roles: []string{"nobody"}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			child, err := c.Fork(bg, lineage.ForkOptions{Sees: test.sees, Metadata: []byte("{}")})
			require.NoError(t, err)
			require.Equal(t, test.want, strings.Join(texts(t, child), "|"))
			info, err := child.Info(bg)
			require.NoError(t, err)
			require.Equal(t, c.ID(), info.Parent)
			say(t, child, "and more")
			require.Len(t, texts(t, c), 4)
		})
	}
}

// feature: lineage/alternatives
func TestAlternatives(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a question")
	at := tip(t, c)
	offered, err := c.Alternatives(bg, lineage.Overrides{Model: pointer("large")}, lineage.Overrides{Model: pointer("small")}, lineage.Overrides{})
	require.NoError(t, err)
	large, small, empty := offered[0], offered[1], offered[2]
	second := say(t, small, "a short answer")
	first, err := large.Extend(bg, lineage.Assistant("a long"), lineage.Assistant("answer"))
	require.NoError(t, err)
	info, err := small.Info(bg)
	require.NoError(t, err)
	set := info.Set
	require.Equal(t, at, info.Base)
	require.Equal(t, []lineage.SpanRef{second, first[0]}, gathered(t, s.View().Alternatives(bg, set)), "in the order they were filled")
	require.Equal(t, set, lastEntry(t, small).Set)
	require.True(t, lastEntry(t, large).Set.IsZero(), "only the first span is the alternative")

	say(t, small, "and more")
	require.True(t, lastEntry(t, small).Set.IsZero())
	back(t, small, 1)
	require.Len(t, gathered(t, s.View().Alternatives(bg, set)), 2)

	require.ErrorIs(t, c.Choose(bg, empty), lineage.ErrInvalid)
	require.NoError(t, c.Choose(bg, large))
	require.Equal(t, []string{"a question", "a long", "answer"}, texts(t, c))
	require.Empty(t, gathered(t, c.Reflog(bg)), "straight forward: nothing to undo")
	require.NoError(t, c.Choose(bg, small))
	require.Equal(t, []string{"a question", "a short answer"}, texts(t, c))
	require.NoError(t, c.Undo(bg))
	require.Equal(t, []string{"a question", "a long", "answer"}, texts(t, c))

	_, err = c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	var found []lineage.ContextID
	for _, child := range gathered(t, c.Children(bg)) {
		if info, err := child.Info(bg); err == nil && info.Set == set {
			found = append(found, child.ID())
		}
	}
	require.ElementsMatch(t, []lineage.ContextID{large.ID(), small.ID(), empty.ID()}, found)
}

// feature: lineage/edit
// feature: lineage/provenance
// feature: lineage/replay
func TestEditDerives(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	_, err := c.Extend(bg, lineage.User("a qestion"), lineage.Assistant("what?"), lineage.User("more"))
	require.NoError(t, err)
	first, err := s.At(bg, tip(t, c), 1)
	require.NoError(t, err)
	edited, err := c.Edit(bg, first, lineage.Item{Body: []byte("a question")}, lineage.EditOptions{
		Replay: func(e *lineage.Entry) bool { return e.Role == "user" },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a question", "more"}, texts(t, edited))
	require.Equal(t, []string{"a qestion", "what?", "more"}, texts(t, c))
	entries, err := edited.All(bg)
	require.NoError(t, err)
	require.Equal(t, "user", entries[0].Role)
	chain, err := s.Provenance(bg, entries[0].Content)
	require.NoError(t, err)
	require.Equal(t, content.Sum([]byte("a qestion")), chain[1].ID)

	same, err := c.Edit(bg, first, lineage.Item{Body: []byte("a qestion")}, lineage.EditOptions{})
	require.NoError(t, err)
	require.True(t, lastEntry(t, same).Origin.ParentID.IsZero(), "content is not derived from itself")
}

func TestEditReadsWhatItIsGiven(t *testing.T) {
	c := newContext(t, newStore(t), "old")
	edited, err := c.Edit(bg, tip(t, c), lineage.Item{Reader: strings.NewReader("new")}, lineage.EditOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, texts(t, edited))
	require.Equal(t, content.Sum([]byte("old")), lastEntry(t, edited).Origin.ParentID)
}

// feature: lineage/alternatives-retry
// feature: lineage/alternatives-list
func TestRetryAndAlternatives(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	say(t, c, "a question", "one", "next")
	answer, err := s.At(bg, tip(t, c), 2)
	require.NoError(t, err)
	question, err := s.At(bg, tip(t, c), 1)
	require.NoError(t, err)

	second, err := c.Retry(bg, answer, lineage.Overrides{})
	require.NoError(t, err)
	third, err := c.Retry(bg, answer, lineage.Overrides{Model: pointer("large")})
	require.NoError(t, err)
	info := contextInfoOf(t, second)
	require.False(t, info.Set.IsZero())
	require.Equal(t, info.Set, contextInfoOf(t, third).Set, "one set, though none of it is filled")
	require.Equal(t, []string{"one"}, began(t, c, answer), "what is empty is no alternative yet")
	say(t, third, "three")
	say(t, second, "two")
	edited, err := c.Edit(bg, answer, lineage.Item{Body: []byte("edited")}, lineage.EditOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"one*", "three", "two", "edited"}, marked(t, c, answer))

	// Other threads and other positions have other histories.
	elsewhere, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	away, err := c.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID(), At: question})
	require.NoError(t, err)
	say(t, away, "elsewhere")
	require.Len(t, began(t, c, answer), 4)
	require.Equal(t, []string{"elsewhere*"}, marked(t, away, tip(t, away)))

	// After choosing, a retry joins the same set, wherever the context is.
	require.NoError(t, c.Choose(bg, second))
	require.Equal(t, []string{"one", "three", "two*", "edited"}, marked(t, c, tip(t, c)))
	fourth, err := c.Retry(bg, tip(t, c), lineage.Overrides{})
	require.NoError(t, err)
	require.Equal(t, info.Set, contextInfoOf(t, fourth).Set)
	fifth, err := edited.Retry(bg, tip(t, edited), lineage.Overrides{})
	require.NoError(t, err)
	require.Equal(t, info.Set, contextInfoOf(t, fifth).Set)
	alternatives, err := c.AlternativesTo(bg, tip(t, c))
	require.NoError(t, err)
	require.NoError(t, c.MoveTo(bg, alternatives[0].Tip, "choose"))
	require.Equal(t, []string{"a question", "one", "next"}, texts(t, c))
	require.NoError(t, c.MoveTo(bg, alternatives[3].Tip, "choose"))
	require.Equal(t, []string{"a question", "edited"}, texts(t, c))

	// Also at the root.
	require.Equal(t, []string{"a question*"}, marked(t, c, question))
	first, err := c.Retry(bg, question, lineage.Overrides{})
	require.NoError(t, err)
	say(t, first, "another question")
	require.Equal(t, []string{"a question*", "another question"}, marked(t, c, question))
	require.ErrorIs(t, func() error { _, err := first.Retry(bg, question, lineage.Overrides{}); return err }(), lineage.ErrInvalid)
	require.ErrorIs(t, func() error { _, err := c.AlternativesTo(bg, lineage.SpanRef{}); return err }(), lineage.ErrInvalid)
}

func contextInfoOf(t testing.TB, c *lineage.Context) lineage.ContextInfo {
	t.Helper()
	info, err := c.Info(bg)
	require.NoError(t, err)
	return info
}

// began returns the first texts of the alternatives to a span, and marked also marks the current
// one with a star.
func began(t testing.TB, c *lineage.Context, span lineage.SpanRef) (texts []string) {
	t.Helper()
	for _, text := range marked(t, c, span) {
		texts = append(texts, strings.TrimSuffix(text, "*"))
	}
	return texts
}

func marked(t testing.TB, c *lineage.Context, span lineage.SpanRef) (texts []string) {
	t.Helper()
	alternatives, err := c.AlternativesTo(bg, span)
	require.NoError(t, err)
	for _, a := range alternatives {
		text := a.Entry.Excerpt()
		if a.Current {
			text += "*"
		}
		texts = append(texts, text)
	}
	return texts
}

// feature: lineage/alternatives-compare
func TestCompareAnswers(t *testing.T) {
	asked := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int, i lineage.Item) lineage.Item {
		i.CreatedAt = asked.Add(time.Duration(seconds) * time.Second)
		return i
	}
	c := newContext(t, newStore(t))
	_, err := c.Extend(bg, at(0, lineage.User("q")))
	require.NoError(t, err)
	offered, err := c.Alternatives(bg, lineage.Overrides{Model: pointer("large")}, lineage.Overrides{Model: pointer("small")}, lineage.Overrides{})
	require.NoError(t, err)
	counted := at(3, lineage.Assistant("a long answer"))
	counted.Metadata = []byte(`{"usage":{"prompt_tokens":10,"completion_tokens":20}}`)
	more := at(7, lineage.ToolResult("", "f", "done"))
	more.Metadata = []byte(`{"inputTokens":1,"outputTokens":2}`)
	_, err = offered[0].Extend(bg, counted, more, at(9, lineage.User("thanks")), at(10, lineage.Assistant("!")))
	require.NoError(t, err)
	_, err = offered[1].Extend(bg, at(1, lineage.Assistant("abcdefgh")))
	require.NoError(t, err)
	ui := jsonMessage("assistant", `{"id":"m","role":"assistant","metadata":{"totalUsage":{"inputTokens":5,"outputTokens":6}},"parts":[{"type":"text","text":"x"}]}`)
	_, err = offered[2].Extend(bg, at(2, ui.From("other")))
	require.NoError(t, err)
	require.NoError(t, c.Choose(bg, offered[0]))
	first, err := c.AlternativesTo(bg, firstSpan(t, offered[0]))
	require.NoError(t, err)
	var compared []string
	for _, a := range first {
		compared = append(compared, fmt.Sprintf("%s %d %d %v %v %v", a.Model, a.Input, a.Output, a.Reported, a.Took, a.Current))
	}
	require.Equal(t, []string{"large 11 22 true 7s true", "small 0 2 false 1s false", "other 5 6 true 2s false"}, compared)
}

// firstSpan returns the first span after the base of a context.
func firstSpan(t testing.TB, c *lineage.Context) lineage.SpanRef {
	t.Helper()
	entries, err := c.All(bg)
	require.NoError(t, err)
	for _, e := range entries {
		if !e.Set.IsZero() {
			return e.Span
		}
	}
	t.Fatal("no alternative")
	return lineage.SpanRef{}
}

// feature: lineage/subagent-return
func TestReturnOnce(t *testing.T) {
	s := newStore(t)
	parent := newContext(t, s, "a task")
	child := fork(t, parent)
	say(t, child, "step one", "step two")
	first, err := child.Return(bg, lineage.Assistant("done"))
	require.NoError(t, err)
	say(t, parent, numbered("meanwhile", 50)...)
	again, err := child.Return(bg, lineage.Assistant("done"))
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Len(t, texts(t, parent), 52)
	for range 2 {
		_, err = child.Return(bg, lineage.ToolResult("", "f", "done"))
		require.NoError(t, err)
	}
	require.Len(t, texts(t, parent), 53, "as another role it is another result")

	say(t, child, "step three")
	next, err := child.Return(bg, lineage.Assistant("done"))
	require.NoError(t, err)
	require.NotEqual(t, first, next, "it has gone on")
	other := fork(t, parent)
	say(t, other, "step one")
	_, err = other.Return(bg, lineage.Assistant("done"))
	require.NoError(t, err)
	require.Len(t, texts(t, parent), 55)

	body := `{"role":"assistant","content":"as JSON"}`
	say(t, child, "step four")
	for range 2 {
		_, err = child.Return(bg, jsonMessage("assistant", body))
		require.NoError(t, err)
	}
	require.Len(t, texts(t, parent), 56)

	var wg sync.WaitGroup
	say(t, child, "step five")
	for range 8 {
		wg.Go(func() {
			if _, err := child.Return(bg, lineage.Assistant("at once")); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { say(t, parent, "beside it") })
	}
	wg.Wait()
	require.Len(t, texts(t, parent), 56+1+8)
}

// feature: lineage/subagent-return
func TestSummaryResult(t *testing.T) {
	s := newStore(t)
	parent := newContext(t, s, "a 1", "b 2")
	summarize(t, parent, lineage.SummarizeOptions{})
	child := fork(t, parent)
	say(t, child, "c 3", "d 4")
	_, err := child.Return(bg, lineage.Item{})
	require.ErrorIs(t, err, lineage.ErrNotFound, "the parent's are not its own")
	one := summarize(t, child, lineage.SummarizeOptions{Keep: 1})
	two := summarize(t, child, lineage.SummarizeOptions{})
	_, err = child.Return(bg, lineage.Item{})
	require.NoError(t, err)
	require.Equal(t, one.Text+"\n\n"+two.Text, lastEntry(t, parent).Excerpt())
	above, err := child.Summarize(bg, terse{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{one.ID, two.ID}})
	require.NoError(t, err)
	_, err = child.Return(bg, lineage.Item{})
	require.NoError(t, err)
	entry := lastEntry(t, parent)
	require.Equal(t, []string{above.Text, "terse"}, []string{entry.Excerpt(), entry.Origin.ModelID})
	require.Equal(t, child.ID().String(), strings.Split(strings.TrimPrefix(entry.Origin.SourceID, "lineage:context/"), "@")[0])
}

// feature: lineage/subagent-summaries
func TestSubagentGetsSummaries(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a 1", "b 2", "c 3", "d 4", "e 5", "f 6")
	first := summarize(t, c, lineage.SummarizeOptions{Range: lineage.Window{To: 2}})
	middle := summarize(t, c, lineage.SummarizeOptions{Range: lineage.Window{From: 4, To: 5}})
	sees := func(f lineage.Filter) []string {
		child, err := c.Fork(bg, lineage.ForkOptions{Sees: &f})
		require.NoError(t, err)
		return texts(t, child)
	}
	require.Equal(t, []string{first.Text, middle.Text, "f 6"}, sees(lineage.Filter{Window: lineage.Window{Last: 1}}))
	require.Equal(t, []string{first.Text, "d 4", "e 5", "f 6"}, sees(lineage.Filter{Window: lineage.Window{Last: 3}}))
	require.Equal(t, []string{first.Text, "e 5", "f 6"}, sees(lineage.Filter{Window: lineage.Window{Last: 2}}), "it sees a part of what the other stands for")
	require.Equal(t, []string{first.Text, "c 3", middle.Text}, sees(lineage.Filter{Keep: func(e *lineage.Entry) bool { return e.Position == 3 }}))
	require.Equal(t, []string{"a 1", "b 2", middle.Text}, sees(lineage.Filter{Window: lineage.Window{To: 2}}))
	require.Equal(t, []string{first.Text, middle.Text}, sees(lineage.Filter{Roles: []string{"nobody"}}))
	require.Equal(t, []string{"a 1", "b 2", "c 3", "d 4", "e 5", "f 6"}, sees(lineage.Filter{}))

	child, err := c.Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{Window: lineage.Window{Last: 1}}})
	require.NoError(t, err)
	entries, err := child.All(bg)
	require.NoError(t, err)
	require.Equal(t, []string{"system", "summary", "lineage:summary/" + first.ID.String()}, []string{entries[0].Role, entries[0].Name, entries[0].Origin.SourceID})
	require.Equal(t, first.Content, entries[0].Content, "the same block")

	whole := summarize(t, c, lineage.SummarizeOptions{Range: lineage.Window{To: 5}})
	require.Equal(t, []string{whole.Text, "f 6"}, sees(lineage.Filter{Window: lineage.Window{Last: 1}}), "the one that says most")
}
