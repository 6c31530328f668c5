package summarize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
)

func extract(t require.TestingT, maxTokens int, passages ...lineage.Passage) string {
	got, err := Extractive{MaxTokens: maxTokens}.Summarize(context.Background(), passages)
	require.NoError(t, err)
	return got.Text
}

func TestSummaryKeepsWhatMatters(t *testing.T) {
	text := extract(t, 250, conversation(t, "coding")...)
	for _, fact := range []string{"hangs about once in 30 runs", "root cause", "option 2", "never dropped", "follow-up"} {
		require.Contains(t, text, fact)
	}
	for _, noise := range []string{"You are a careful coding assistant", "Let me run", "Great, thank you", "```"} {
		require.NotContains(t, text, noise)
	}
}

func TestDefaultBudget(t *testing.T) {
	short := []lineage.Passage{{Role: "user", Text: "Move the meeting to Friday."}}
	require.Equal(t, 120, Extractive{}.budget(short))
	long := []lineage.Passage{{Role: "user", Text: strings.Repeat("Move the meeting to Friday. ", 100)}}
	require.Equal(t, 140, Extractive{}.budget(long))
	long[0].Text = strings.Repeat(long[0].Text, 100)
	require.Equal(t, 1000, Extractive{}.budget(long))
}

func TestNothingToSummarize(t *testing.T) {
	for name, passages := range map[string][]lineage.Passage{
		"no passages":   nil,
		"empty texts":   {{Role: "user"}, {Role: "assistant", Name: "assistant"}},
		"blank texts":   {{Role: "user", Text: " \n\t\x00\r\n"}},
		"an empty code": {{Role: "user", Text: "```\n```"}},
		"nothing there": {{Role: "user", Text: "[erased]", Absent: true}, {Role: "asset", Text: "[image/png, 4 bytes]", Absent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Extractive{}.Summarize(context.Background(), passages)
			require.ErrorIs(t, err, ErrNoText)
		})
	}
}

func TestTextWithoutWordsIsQuoted(t *testing.T) {
	require.Equal(t, "🎉🎉", extract(t, 0, lineage.Passage{Role: "user", Text: "🎉🎉"}))
	require.Equal(t, "?!", extract(t, 1, lineage.Passage{Role: "user", Text: "?!"}))
}

func TestCancelledSummaryReturnsTheCause(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	_, err := Extractive{}.Summarize(ctx, conversation(t, "coding"))
	require.ErrorIs(t, err, stop)
}

func TestSpeakers(t *testing.T) {
	text := "Deploy the release on Thursday."
	for _, tt := range []struct {
		passage lineage.Passage
		want    string
	}{
		{lineage.Passage{Role: "user"}, "user: " + text},
		{lineage.Passage{Role: "user", Name: "Ann"}, "user Ann: " + text},
		{lineage.Passage{Role: "tool", Name: "tool"}, "tool: " + text},
		{lineage.Passage{}, text},
		{lineage.Passage{Role: "assistant", Summary: true}, text},
		{lineage.Passage{Role: "user", Name: "A\nB\x00\xff"}, "user A B \uFFFD: " + text},
		{lineage.Passage{Role: "user", Name: strings.Repeat("ö", 100)}, "user " + strings.Repeat("ö", 35) + "…: " + text},
	} {
		tt.passage.Text = text
		require.Equal(t, tt.want, extract(t, 0, tt.passage))
	}
}

func TestRepetitionIsQuotedOnce(t *testing.T) {
	var passages []lineage.Passage
	for range 50 {
		passages = append(passages, lineage.Passage{Role: "user", Text: "Restart the staging server tonight."})
	}
	require.Equal(t, "user: Restart the staging server tonight.", extract(t, 0, passages...))
}

func TestCorrectionsAreNotRepetitions(t *testing.T) {
	text := extract(t, 0,
		lineage.Passage{Role: "user", Text: "Deploy the release on Friday."}, lineage.Passage{Role: "user", Text: "Do not deploy the release on Friday."},
		lineage.Passage{Role: "user", Text: "The budget is 500 euros."}, lineage.Passage{Role: "user", Text: "The budget is 600 euros."})
	for _, said := range []string{"Deploy the", "Do not deploy the", "500", "600"} {
		require.Contains(t, text, said)
	}
}

func TestSummariesOfSummariesWeighMore(t *testing.T) {
	passages := []lineage.Passage{
		{Role: "assistant", Text: "Padding talks of weather, gardens and boats."},
		{Role: "assistant", Text: "Invoices moved from Paris towards Vienna.", Summary: true},
		{Role: "assistant", Text: "Padding talks of cooking, trains and films."},
		{Role: "assistant", Text: "Nothing else."},
	}
	require.Equal(t, "Invoices moved from Paris towards Vienna.", extract(t, 12, passages...))
}

// sentences draws passages of plain sentences, and returns the set of sentences.
func sentences(t *rapid.T) ([]lineage.Passage, map[string]bool) {
	word := rapid.SampledFrom(strings.Fields("server deploy friday budget error 42 because Maria pool.go résumé Straße 预算 confirmed the and of"))
	all := make(map[string]bool)
	passages := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lineage.Passage {
		var text []string
		for range rapid.IntRange(0, 6).Draw(t, "sentences") {
			s := "On " + strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "words"), " ") + " it went."
			all[s] = true
			text = append(text, s)
		}
		return lineage.Passage{
			Role: rapid.SampledFrom([]string{"user", "assistant", "tool", "system", ""}).Draw(t, "role"),
			Name: rapid.SampledFrom([]string{"", "Ann", "a long name of somebody that takes room"}).Draw(t, "name"),
			Text: strings.Join(text, rapid.SampledFrom([]string{" ", "\n", "\n\n- "}).Draw(t, "between")),
		}
	}), 1, 12).Draw(t, "passages")
	return passages, all
}

func TestEverySentenceIsQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		passages, seen := sentences(t)
		budget := rapid.IntRange(100, 600).Draw(t, "budget")
		if len(seen) == 0 {
			return
		}
		for line := range strings.SplitSeq(extract(t, budget, passages...), "\n") {
			if at := strings.Index(line, "On "); at > 0 {
				require.True(t, strings.HasSuffix(line[:at], ": "), line)
				line = line[at:]
			}
			for s := range strings.SplitAfterSeq(line, "it went.") {
				require.True(t, s == "" || seen[strings.TrimSpace(s)], "%q was not said", s)
			}
		}
	})
}

// hostile draws texts that may break parsers.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"```", "````go\n", "~~~", "\n", "\x00", "\xff\xfe", "\u0085", "。", "…", ". ", "A. ", "1. ", "- ", "> ", "# ", "'\"])", "错误",
			"é", "Ⱥ", "\u200d", strings.Repeat("\x80", 500), strings.Repeat("x", 500), strings.Repeat(".", 50), "panic: nil map\n",
		}),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 20), func(all []string) string { return strings.Join(all, "") })
}

func TestSummariesFitAndAreTheSameEachTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		passages := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lineage.Passage {
			return lineage.Passage{
				Role: rapid.SampledFrom([]string{"user", "assistant", "tool", "system"}).Draw(t, "role"),
				Name: hostile().Draw(t, "name"), Text: hostile().Draw(t, "text"), Summary: rapid.Bool().Draw(t, "summary"),
			}
		}), 1, 8).Draw(t, "passages")
		x := Extractive{MaxTokens: rapid.IntRange(1, 80).Draw(t, "budget")}
		first, err := x.Summarize(context.Background(), passages)
		if err != nil {
			require.ErrorIs(t, err, ErrNoText)
			return
		}
		require.NotEmpty(t, first.Text)
		require.True(t, utf8.ValidString(first.Text))
		require.NotContains(t, first.Text, "\x00")
		require.LessOrEqual(t, lineage.EstimateTokens(first.Text), x.MaxTokens)
		second, err := x.Summarize(context.Background(), passages)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}

// A sentence that begins with another space than that of ASCII is quoted from its first character.
func TestSentenceAfterWideSpace(t *testing.T) {
	summary, err := Extractive{MaxTokens: 1}.Summarize(context.Background(), []lineage.Passage{{Role: "user", Text: "? \u30000"}})
	require.NoError(t, err)
	require.Equal(t, "0", summary.Text)
}

// Superlinear time runs into the test's timeout.
func TestLargeTexts(t *testing.T) {
	const size = 10 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, text := range map[string]string{
		"one word":           fill("x"),
		"one line":           fill("word "),
		"tiny sentences":     fill("A. "),
		"lines":              fill("line of a log with error\n"),
		"blank":              "Start." + fill(" ") + "End.",
		"full stops":         "Start" + fill("."),
		"quotes":             "Start." + fill(`"`),
		"unbalanced fences":  "Start.\n" + fill("```\n~~~\n````\n"),
		"open fence":         "Start.\n```\n" + fill("code\n"),
		"zeros":              "Start." + fill("\x00"),
		"invalid":            "Start. " + fill("\x80"),
		"no spaces":          fill("汉字"),
		"wide full stops":    "Start" + fill("。"),
		"list marks":         "Start.\n" + fill("- "),
		"words of all kinds": manyWords(size / 10),
	} {
		t.Run(name, func(t *testing.T) {
			got := extract(t, 100, lineage.Passage{Role: "user", Text: text})
			require.NotEmpty(t, got)
			require.True(t, utf8.ValidString(got))
			require.LessOrEqual(t, lineage.EstimateTokens(got), 100)
		})
	}
}

func manyWords(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Word%d meets word%d at place%d. ", i, i*7, i%1000)
	}
	return b.String()
}

func TestManyMessages(t *testing.T) {
	var passages []lineage.Passage
	for i := range 5_000 {
		passages = append(passages, lineage.Passage{Role: "user", Text: fmt.Sprintf("Order %d ships to town%d. Invoice %d follows on day %d.", i, i%977, i*31, i%365)})
	}
	for _, budget := range []int{1, 100, 1_000_000} {
		got := extract(t, budget, passages...)
		require.NotEmpty(t, got)
		require.LessOrEqual(t, lineage.EstimateTokens(got), budget)
	}
}

func TestBothEndsOfALongTextAreRead(t *testing.T) {
	text := "Zebra contract must be signed on Monday.\n" + strings.Repeat("filler line\n", 2*maxRead/12) + "Giraffe invoice must be paid on Sunday."
	got := extract(t, 100, lineage.Passage{Role: "user", Text: text})
	require.Contains(t, got, "Zebra")
	require.Contains(t, got, "Giraffe")
}

func BenchmarkExtractive(b *testing.B) {
	passages := conversation(b, "coding")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Extractive{}.Summarize(context.Background(), passages)
	}
}
