package usage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/structure"
)

const samples = "../archive/testdata/"

// imported returns a store with the sample sessions of folders, and an index of it.
func imported(t *testing.T, paths ...string) (*lineage.Store, *usage.Index) {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	for _, path := range paths {
		_, err = importer.Import(bg, store, archive.Path(samples+path), importer.Options{})
		require.NoError(t, err)
	}
	x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return store, x
}

// unknown is a number of tokens that no answer states.
const unknown = -1

// want is what a report says of a group of answers: requests, input, cached input, cache writes for five minutes and an
// hour, output, reasoning, and the cost; empty without a price.
type want struct {
	key                                                    string
	requests, input, cached, write, write1h, output, think int64
	cost                                                   string
}

func requireRows(t *testing.T, x *usage.Index, q usage.Query, wants ...want) {
	t.Helper()
	report, err := x.Report(bg, q)
	require.NoError(t, err)
	var got []want
	for _, r := range report.Rows {
		n := func(k message.TokenKind) int64 {
			if !r.Tokens[k].Known {
				return unknown
			}
			return r.Tokens[k].N
		}
		w := want{"", r.Requests, n(message.Input), n(message.CachedInput), n(message.CacheWrite), n(message.CacheWrite1h), n(message.Output), n(message.Reasoning), ""}
		for _, key := range r.Keys {
			w.key += key + " "
		}
		if r.Unpriced < r.Requests {
			w.cost = r.Cost.String()
		}
		got = append(got, w)
	}
	require.Equal(t, wants, got)
}

// The values of these tests were computed by hand from the lines of the samples.

// Ten answers of one model in three files; dollars for a million tokens: input 3, output 15.
func TestClaudeCodeSamples(t *testing.T) {
	_, x := imported(t, "claude-code-log")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Model}},
		// Input 35+200+85 +25+45+78+25+45 +20 = 558, output 145+25+180 +120+85+95+35+110 +35 = 830:
		// 558×3 + 830×15 = 1674 + 12450 = 14124 millionths.
		want{"claude-3-sonnet-20240229 ", 9, 558, 0, 0, unknown, 830, unknown, "0.014124"},
		// msg_004 of req_004 is in two files. Input 20+25+150+168+250+270 = 883, output 25+85+18+85+20+95 = 328:
		// 883×3 + 328×15 = 2649 + 4920 = 7569 millionths.
		want{"claude-sonnet-4 ", 6, 883, unknown, unknown, unknown, 328, unknown, "0.007569"},
	)
}

// An answer in five lines counts once. Input 5, cached 0.5, written for an hour 10, output 25:
// 3×5 + 11515×0.5 + 13835×10 + 13×25 = 15 + 5757.5 + 138350 + 325 = 144447.5 millionths. From 200,000 tokens of
// input on it would be twice as much, until 2026-03-13.
func TestAnswerInSeveralLines(t *testing.T) {
	_, x := imported(t, "claude-code-spotter")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Day, usage.Project}},
		want{"2026-02-10 /home/marco/projects/spotter ", 1, 3, 11515, 0, 13835, 13, unknown, "0.1444475"})
}

// The last line of msg_1 counts: 10 and 12. msg_2 has 20 and 2. The copy of msg_1 in the resumed session has only the first
// of its lines, and the subagent's answer states no output.
func TestLastLineCounts(t *testing.T) {
	for _, order := range [][]string{
		{"claude-code-made"},
		{"claude-code-made/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550002.jsonl", "claude-code-made"},
	} {
		_, x := imported(t, order...)
		requireRows(t, x, usage.Query{By: []usage.By{usage.Subagent, usage.Model}},
			want{" claude-x ", 2, 30, unknown, unknown, unknown, 14, unknown, ""},
			want{"a1 claude-h ", 1, 1, unknown, unknown, unknown, unknown, unknown, ""})
		report, err := x.Report(bg, usage.Query{})
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Total.Incomplete)
		require.Equal(t, map[string]int64{"claude-x": 2, "claude-h": 1}, report.Unpriced)
	}
}

// Three answers of Codex, each in a record with the response id and again in a counter: 100 input, 40 of it cached, 7 output.
func TestCodexSamples(t *testing.T) {
	_, x := imported(t, "agents/codex")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Agent, usage.Model, usage.Branch}},
		want{"codex demo-1 main ", 3, 3 * 60, 3 * 40, 0, unknown, 3 * 7, 0, ""})
}

// Three answers of Gemini CLI, one of them written twice: 100 input, 7 output. Input 1.25, output 10:
// 3×(100×1.25 + 7×10) = 3×195 = 585 millionths. The sample that was written by hand states nothing.
func TestGeminiSamples(t *testing.T) {
	_, x := imported(t, "agents/gemini")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Agent, usage.Model}},
		want{"gemini gemini-2.5-pro ", 3, 300, 0, unknown, unknown, 21, 0, "0.000585"})
}

// Seven answers of Qwen Code, whose output includes the reasoning: 846+194+291 + 527+127+231+490 = 1331 + 1375 = 2706, of it
// reasoning 846+194+240 + 527+108+231+490 = 1280 + 1356 = 2636. The input is 2050 each. The made session, and the one
// forked from it, state a total of one answer only.
func TestQwenSamples(t *testing.T) {
	_, x := imported(t, "agents/qwen")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Agent, usage.Model}},
		want{"qwen qwen3 ", 1, unknown, unknown, unknown, unknown, unknown, unknown, ""},
		want{"qwen qwen3:0.6b ", 7, 7 * 2050, 0, unknown, unknown, 2706, 2636, ""})
}

// Four answers of pi with response ids: 100 input, 7 output; and a session with its fork, which has four answers of it and one
// of its own: 9 input, 4 cached, 3 output, and a stated cost of 0.3 dollars each.
func TestPiSamples(t *testing.T) {
	_, x := imported(t, "agents/pi")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Model}},
		want{"demo-1 ", 4, 400, 0, 0, unknown, 28, unknown, ""},
		want{"m-1 ", 4, 36, 16, 0, unknown, 12, unknown, ""},
		want{"m-2 ", 1, 9, 4, 0, unknown, 3, unknown, ""})
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.Equal(t, "1.5", report.Total.Stated.String()) // 5×0.3 + 4×0
	require.EqualValues(t, 9, report.Total.StatedBy)
}

// Copilot CLI states the output of an answer with it, and the input when the session ends: 470+508 and 382 output, and
// 4100 and 2050 input. The made session states nothing.
func TestCopilotSamples(t *testing.T) {
	_, x := imported(t, "agents/copilot")
	requireRows(t, x, usage.Query{By: []usage.By{usage.Agent, usage.Model}},
		want{"copilot qwen3:0.6b ", 3, 6150, 0, 0, unknown, 1360, unknown, ""})
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.Zero(t, report.Total.Incomplete)
}

// A session and its fork share four answers. Each thread has all answers of its history, those of the other one as shared,
// and when the first thread is deleted, the second one has them.
func TestSharedAnswers(t *testing.T) {
	store, x := imported(t, "agents/pi/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl", "agents/pi/2026-11-27T18-30-31-006Z_01a21e45-f55e-755b-8a3a-83892853cb0e.jsonl")
	first, err := store.FindThread(bg, "01a21e45-f55a-7165-8fa1-7f4a09997b5f")
	require.NoError(t, err)
	second, err := store.FindThread(bg, "01a21e45-f55e-755b-8a3a-83892853cb0e")
	require.NoError(t, err)
	counts := func(thread structure.ThreadID) (own, shared int64) {
		report, err := x.Report(bg, usage.Query{Thread: thread})
		require.NoError(t, err)
		for _, r := range report.Rows {
			if r.Shared {
				shared += r.Requests
			} else {
				own += r.Requests
			}
		}
		return own, shared
	}
	require.Equal(t, [2]int64{4, 0}, pair(counts(first.ID())))
	require.Equal(t, [2]int64{1, 4}, pair(counts(second.ID())))
	require.NoError(t, first.Delete(bg))
	require.Equal(t, [2]int64{5, 0}, pair(counts(second.ID())))
	report, err := x.Report(bg, usage.Query{By: []usage.By{usage.Thread}})
	require.NoError(t, err)
	require.Len(t, report.Rows, 1)
	require.EqualValues(t, 5, report.Total.Requests)
	require.NoError(t, second.Delete(bg))
	report, err = x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.Zero(t, report.Total.Requests)
}

func pair(a, b int64) [2]int64 { return [2]int64{a, b} }

// What no group is made of is refused, and so is a report whose context has ended.
func TestRefused(t *testing.T) {
	_, x := imported(t)
	_, err := x.Report(bg, usage.Query{By: []usage.By{"colour"}})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err = x.Report(ctx, usage.Query{})
	require.ErrorIs(t, err, context.Canceled)
}
