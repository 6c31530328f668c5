package usage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

// rollout writes a session of Codex: its id, those that it was forked from, the last one first, whose headers it copies, and pairs
// of a counter and the last answer, each input, cached input and output. A last answer of nil is not stated.
func rollout(t *testing.T, dir, id string, from []string, older bool, counts ...[2][]int64) {
	var b strings.Builder
	line := func(kind, payload string) {
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:%02dZ","type":%q,"payload":%s}`+"\n", strings.Count(b.String(), "\n"), kind, payload)
	}
	for i, id := range append([]string{id}, from...) {
		forked := "" // older versions state it by the headers only
		if i < len(from) && !older {
			forked = fmt.Sprintf(`,"forked_from_id":%q`, from[i])
		}
		line("session_meta", fmt.Sprintf(`{"id":%q,"timestamp":"2026-03-01T10:00:00Z","cwd":"/w","cli_version":"0.50.0"%s}`, id, forked))
	}
	line("turn_context", `{"model":"gpt-5-codex","cwd":"/w"}`)
	line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`)
	of := func(n []int64) string {
		if n == nil {
			return "null"
		}
		return fmt.Sprintf(`{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":0,"total_tokens":%d}`, n[0], n[1], n[2], n[0]+n[2])
	}
	for _, c := range counts {
		line("event_msg", `{"type":"token_count","info":{"total_token_usage":`+of(c[0])+`,"last_token_usage":`+of(c[1])+`}}`)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rollout-"+id+".jsonl"), []byte(b.String()), 0o600))
}

// Counters are compared with those before: the same one again is no answer, one that went back states its last answer, and
// where a line is missing, what it counted is not lost. A fork repeats the counters of the session, which count once, in
// whatever order they come.
func TestCounters(t *testing.T) {
	a := [][2][]int64{
		{{100, 40, 10}, {100, 40, 10}},
		{{100, 40, 10}, {100, 40, 10}}, // again
		{{350, 140, 25}, {150, 60, 5}}, // 250, 100 and 15: the answer of a missing line is in it
		{{300, 0, 0}, {0, 0, 0}},       // set back, without an answer
		{{420, 20, 8}, {120, 20, 8}},   // 120, 20 and 8
		{{500, 100, 18}, nil},          // 80, 80 and 10
	}
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"b"}} {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer store.Close()
		dir := t.TempDir()
		rollout(t, dir, "a", nil, false, a...)
		// Forked after the fifth counter: one answer of its own.
		rollout(t, dir, "b", []string{"a"}, i >= 3, append(a[:5:5], [2][]int64{{470, 40, 12}, {50, 20, 4}})...)
		x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
		require.NoError(t, err)
		defer x.Close()
		for _, id := range order {
			_, err := importer.Import(bg, store, archive.Path(filepath.Join(dir, "rollout-"+id+".jsonl")), importer.Options{})
			require.NoError(t, err)
			require.NoError(t, x.Update(bg))
		}
		report, err := x.Report(bg, usage.Query{By: []usage.By{usage.Model}})
		require.NoError(t, err)
		require.Len(t, report.Rows, 1)
		require.Equal(t, []string{"gpt-5-codex"}, report.Rows[0].Keys)
		n := func(k message.TokenKind) int64 { return report.Total.Tokens[k].N }
		got := []int64{report.Total.Requests, n(message.Input), n(message.CachedInput), n(message.Output)}
		// Answers of both: 100/40/10, 250/100/15, 120/20/8; of a 80/80/10, of b 50/20/4. Input is without what was cached.
		want := []int64{5, 60 + 150 + 100 + 0 + 30, 40 + 100 + 20 + 80 + 20, 10 + 15 + 8 + 10 + 4}
		if len(order) == 1 {
			want = []int64{4, 60 + 150 + 100 + 30, 40 + 100 + 20 + 20, 10 + 15 + 8 + 4}
		}
		require.Equal(t, want, got, order)
	}
}

// A fork of a fork repeats the counters of both, which count once, in whatever order they come.
func TestCountersOfForks(t *testing.T) {
	a := [][2][]int64{{{100, 40, 10}, {100, 40, 10}}}
	b := append(a[:1:1], [2][]int64{{200, 40, 20}, {100, 0, 10}})
	c := append(b[:2:2], [2][]int64{{250, 40, 25}, {50, 0, 5}})
	for _, older := range []bool{false, true} {
		for _, order := range []string{"abc", "cba", "bca", "ac", "ca", "c"} {
			store, err := lineage.OpenMemory(bg, lineage.Options{})
			require.NoError(t, err)
			defer store.Close()
			dir := t.TempDir()
			rollout(t, dir, "a", nil, older, a...)
			rollout(t, dir, "b", []string{"a"}, older, b...)
			rollout(t, dir, "c", []string{"b", "a"}, older, c...)
			x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
			require.NoError(t, err)
			defer x.Close()
			for _, id := range order {
				_, err := importer.Import(bg, store, archive.Path(filepath.Join(dir, "rollout-"+string(id)+".jsonl")), importer.Options{})
				require.NoError(t, err)
				require.NoError(t, x.Update(bg))
			}
			report, err := x.Report(bg, usage.Query{})
			require.NoError(t, err)
			require.EqualValues(t, 3, report.Total.Requests, "%s %v", order, older)
			require.EqualValues(t, 25, report.Total.Tokens[message.Output].N, "%s %v", order, older)
		}
	}
}
