package lineage_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

func summarize(t testing.TB, c *lineage.Context, o lineage.SummarizeOptions) *lineage.SummaryInfo {
	t.Helper()
	s, err := c.Summarize(bg, echo{}, o)
	require.NoError(t, err)
	return s
}

// standsFor returns the messages that a summary covers.
func standsFor(t testing.TB, s *lineage.Store, summary *lineage.SummaryInfo) []*lineage.Entry {
	t.Helper()
	return gathered(t, s.History(bg, summary.To, lineage.Window{From: summary.First, To: summary.Last}))
}

// behindOf returns the number of spans after a history's summaries, and the summary with the
// highest end.
func behindOf(t testing.TB, c *lineage.Context) (behind uint64, latest *lineage.SummaryInfo) {
	t.Helper()
	summaries, err := c.EffectiveSummaries(bg)
	require.NoError(t, err)
	behind, err = c.Len(bg)
	require.NoError(t, err)
	length := behind
	for _, s := range summaries {
		if got := length - s.Last; latest == nil || got <= behind {
			behind, latest = got, s
		}
	}
	return behind, latest
}

// feature: lineage/summarize
// feature: lineage/summary-expand
// feature: lineage/summary-stale
func TestSummariesFollowEachOther(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a 1", "b 2", "c 3", "d 4")
	first := summarize(t, c, lineage.SummarizeOptions{Keep: 2, Embed: length{}.Embed})
	require.Equal(t, "user:a,user:b", first.Text)
	require.Equal(t, []uint64{1, 2, 0}, []uint64{first.First, first.Last, first.Level})
	require.Equal(t, []float32{13, -0.5}, first.Embedding)
	require.Equal(t, "echo", first.Model)

	behind, latest := behindOf(t, c)
	require.Equal(t, uint64(2), behind)
	require.Equal(t, first, latest)
	_, err := c.Summarize(bg, echo{}, lineage.SummarizeOptions{Keep: 2})
	require.ErrorIs(t, err, lineage.ErrNotFound)
	_, err = c.Summarize(bg, echo{}, lineage.SummarizeOptions{Keep: 9})
	require.ErrorIs(t, err, lineage.ErrNotFound)

	say(t, c, "e 5")
	second := summarize(t, c, lineage.SummarizeOptions{})
	require.Equal(t, "user:c,user:d,user:e", second.Text)
	require.Equal(t, first.To, second.From)
	behind, _ = behindOf(t, c)
	require.Zero(t, behind)
	whole := summarize(t, c, lineage.SummarizeOptions{Whole: true})
	require.Equal(t, []uint64{1, 5}, []uint64{whole.First, whole.Last})

	require.Equal(t, []*lineage.SummaryInfo{first, second, whole}, gathered(t, c.Summaries(bg)))
	require.Equal(t, []string{"c 3", "d 4", "e 5"}, textsOf(standsFor(t, s, second)))
	require.Equal(t, []string{"a 1", "b 2", "c 3", "d 4", "e 5"}, texts(t, c), "the messages stay")

	blocks, err := s.Provenance(bg, first.Content)
	require.NoError(t, err)
	require.Equal(t, content.OriginAssistant, blocks[0].Origin.Kind)
}

// feature: lineage/summary-levels
func TestSummariesOfSummaries(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a 1", "b 2")
	one := summarize(t, c, lineage.SummarizeOptions{})
	say(t, c, "c 3")
	two := summarize(t, c, lineage.SummarizeOptions{})
	say(t, c, "d 4")
	three := summarize(t, c, lineage.SummarizeOptions{})

	level1, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Embed: length{}.Embed, Parts: []structure.SummaryID{one.ID, two.ID}})
	require.NoError(t, err)
	require.Equal(t, "2 passages", level1.Text)
	require.Equal(t, []uint64{1, 3, 1}, []uint64{level1.First, level1.Last, level1.Level})
	require.Equal(t, one.ID, level1.Parts[0])
	level2, err := c.Summarize(bg, terse{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{level1.ID, three.ID}})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 4, 2}, []uint64{level2.First, level2.Last, level2.Level})
	require.Equal(t, []string{"a 1", "b 2", "c 3", "d 4"}, textsOf(standsFor(t, s, level2)))

	_, err = c.Summarize(bg, terse{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{one.ID, three.ID}})
	require.ErrorIs(t, err, lineage.ErrInvalid, "a gap")
	_, err = c.Summarize(bg, terse{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{two.ID, one.ID}})
	require.ErrorIs(t, err, lineage.ErrInvalid, "out of order")

	require.NoError(t, c.DeleteSummary(bg, level2.ID))
	require.Len(t, gathered(t, c.Summaries(bg)), 4)
	require.ErrorIs(t, c.DeleteSummary(bg, level2.ID), lineage.ErrNotFound)
}

func TestForksInheritSummaries(t *testing.T) {
	c := newContext(t, newStore(t), "a 1", "b 2", "c 3")
	inherited := summarize(t, c, lineage.SummarizeOptions{Keep: 1})
	child := fork(t, c)
	say(t, child, "d 4")
	behind, latest := behindOf(t, child)
	require.Equal(t, uint64(2), behind)
	require.Equal(t, inherited.ID, latest.ID)
	require.Equal(t, "user:c,user:d", summarize(t, child, lineage.SummarizeOptions{}).Text)

	back(t, child, 3) // before the summarized range
	behind, latest = behindOf(t, child)
	require.Equal(t, uint64(1), behind)
	require.Nil(t, latest)
}

func TestErasedSummary(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, numbered("message", 50)...)
	first := summarize(t, c, lineage.SummarizeOptions{Keep: 10, Embed: length{}.Embed})
	require.NotEmpty(t, first.Embedding)
	require.NoError(t, s.Erase(bg, first.Content))
	all := gathered(t, c.Summaries(bg))
	require.Len(t, all, 1)
	require.True(t, all[0].Erased)
	require.Empty(t, all[0].Text)
	require.Nil(t, all[0].Embedding)
	behind, latest := behindOf(t, c)
	require.Equal(t, uint64(50), behind)
	require.Nil(t, latest)
	r, err := c.Resolve(bg, lineage.ResolveOptions{Budget: 100})
	require.NoError(t, err)
	require.Equal(t, uint64(50), r.Omitted+uint64(len(r.Parts)))
	require.Equal(t, uint64(1), summarize(t, c, lineage.SummarizeOptions{Keep: 20}).First, "what it covered is to be summarized again")
}

func TestSummarizerThatFails(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a 1")
	_, err := c.Summarize(bg, failing{}, lineage.SummarizeOptions{})
	require.ErrorIs(t, err, errNoModel)
	_, err = c.Summarize(bg, echo{}, lineage.SummarizeOptions{Embed: failing{}.Embed})
	require.ErrorIs(t, err, errNoModel)
	require.Empty(t, gathered(t, c.Summaries(bg)))
}

func TestPassages(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	_, err := c.Extend(bg,
		lineage.ToolResult("", "search", "found it"),
		lineage.Item{Kind: lineage.Document, Document: "plan", Revision: 1, Body: []byte("first draft")},
		lineage.Item{Kind: lineage.Asset, Filename: "photo.png", Type: content.TypePNG, Body: []byte("PNG")},
		lineage.User(largeText), lineage.User("secret"))
	require.NoError(t, err)
	require.NoError(t, s.Erase(bg, content.Sum([]byte("secret"))))
	require.Equal(t, "tool:found,document:first,asset:[image/png,,"+strings.Repeat("user:large,", 2)+"user:[erased]", summarize(t, c, lineage.SummarizeOptions{}).Text)
}

func TestSummarizeTellsWhatIsSaid(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	_, err := c.Extend(bg, asJSON("user", `{"text":"hello"}`), lineage.User("gone"), lineage.User(strings.Repeat("long ", 20_000)))
	require.NoError(t, err)
	require.NoError(t, s.Erase(bg, content.Sum([]byte("gone"))))
	var told []lineage.Passage
	by := summarizerFunc(func(passages []lineage.Passage) (lineage.SummaryText, error) {
		told = passages
		return lineage.SummaryText{Text: "short"}, nil
	})
	_, err = c.Summarize(bg, by, lineage.SummarizeOptions{})
	require.NoError(t, err)
	require.Equal(t, []lineage.Passage{
		{Role: "user", Name: "user", Text: "hello"}, {Role: "user", Name: "user", Text: "[erased]", Absent: true},
		{Role: "user", Name: "user", Text: strings.Repeat("long ", 13107)}, {Role: "user", Name: "user", Text: strings.Repeat("long ", 20_000-13107), Continues: true},
	}, told)
}

type summarizerFunc func([]lineage.Passage) (lineage.SummaryText, error)

func (f summarizerFunc) Summarize(_ context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	return f(passages)
}

// feature: lineage/summary-range
func TestSummarizeRange(t *testing.T) {
	c := newContext(t, newStore(t), "a 1", "b 2", "c 3", "d 4")
	middle := summarize(t, c, lineage.SummarizeOptions{Range: lineage.Window{From: 2, To: 3}})
	require.Equal(t, "user:b,user:c", middle.Text)
	require.Equal(t, []uint64{2, 3}, []uint64{middle.First, middle.Last})
	again := summarize(t, c, lineage.SummarizeOptions{Range: lineage.Window{To: 2}})
	require.Equal(t, []uint64{1, 2}, []uint64{again.First, again.Last})
	require.Equal(t, "user:d", summarize(t, c, lineage.SummarizeOptions{}).Text, "what is new follows the last of them")
	require.Equal(t, uint64(3), summarize(t, c, lineage.SummarizeOptions{Range: lineage.Window{From: 3}}).First)
	for _, o := range []lineage.SummarizeOptions{
		{Range: lineage.Window{From: 5}}, {Range: lineage.Window{From: 3, To: 2}}, {Range: lineage.Window{To: 9}}, {Range: lineage.Window{Last: 2}},
		{Range: lineage.Window{To: 2}, Keep: 1}, {Range: lineage.Window{To: 2}, Whole: true}, {MostAtOnce: -1},
	} {
		_, err := c.Summarize(bg, echo{}, o)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
}

// The summarizer gets all of the input, whatever its size, in limited batches.
//
// feature: lineage/summary-range
//
//test:norace
func TestSummarizeAnySize(t *testing.T) {
	s := newStore(t)
	rapid.Check(t, func(t *rapid.T) {
		c, err := s.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		var all strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			unit := rapid.SampledFrom([]string{"two words", "two\nlines", "x", "\u6f22", "\U0001f389"}).Draw(t, "unit")
			text := strings.Repeat(unit, rapid.SampledFrom([]int{1, 10, 20_000, 70_000}).Draw(t, "length"))
			all.WriteString(text)
			item := lineage.User(text)
			if rapid.Bool().Draw(t, "JSON") {
				item = jsonMessage("user", `{"role":"user","content":`+strconv.Quote(text)+`}`)
			}
			_, err := c.Extend(bg, item)
			require.NoError(t, err)
		}
		most := rapid.SampledFrom([]int{1, 70_000, 200_000, 1 << 20}).Draw(t, "most")
		var given strings.Builder
		calls := 0
		by := summarizerFunc(func(passages []lineage.Passage) (lineage.SummaryText, error) {
			calls++
			size := 0
			for i, p := range passages {
				require.False(t, p.Absent)
				require.True(t, utf8.ValidString(p.Text), "cut in a character")
				size += len(p.Text)
				if !p.Summary {
					given.WriteString(p.Text)
					require.Equal(t, passages[0].Summary, p.Summary)
				}
				require.LessOrEqual(t, len(p.Text), content.InlineLimit)
				require.True(t, i < 2 || size <= most, "%d bytes at once", size)
			}
			return lineage.SummaryText{Text: fmt.Sprintf("summary %d", calls)}, nil
		})
		made, err := c.Summarize(bg, by, lineage.SummarizeOptions{MostAtOnce: most})
		require.NoError(t, err)
		require.Equal(t, all.String(), given.String())
		require.Equal(t, fmt.Sprintf("summary %d", calls), made.Text, "the last is of all the others")
		require.Zero(t, made.Level)
	})
}
