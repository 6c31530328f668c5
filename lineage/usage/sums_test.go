package usage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/lineage/usage/prices"
)

// opened returns an empty store and an index of it.
func opened(t *testing.T) (*lineage.Store, *usage.Index, string) {
	store, dir := lineagetest.New(t, lineage.Options{}), t.TempDir()
	x, err := usage.Open(bg, store, dir, usage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return store, x, dir
}

// A session of Copilot CLI of two days: four answers state their output, and the totals, on the second day, their input. The
// price of each request is that of a quarter of the input: 4×150,000 tokens at 3 dollars a million, and 4×10 of output at 15,
// are 1.8 + 0.0006 dollars, and not twice as much, as a request of more than 200,000 tokens costs. No answer is incomplete.
func TestTotalsOfASession(t *testing.T) {
	store, x, _ := opened(t)
	dir := filepath.Join(t.TempDir(), "s1")
	require.NoError(t, os.Mkdir(dir, 0o700))
	lines := `{"type":"session.start","data":{"sessionId":"s1","copilotVersion":"1"},"id":"e0","timestamp":"2026-03-01T10:00:00Z","parentId":null}` + "\n" +
		`{"type":"user.message","data":{"content":"go"},"id":"e1","timestamp":"2026-03-01T10:00:01Z","parentId":"e0"}` + "\n"
	for i := range 4 {
		lines += fmt.Sprintf(`{"type":"assistant.message","data":{"messageId":"m%d","content":"x","toolRequests":[],"outputTokens":10,"model":"claude-sonnet-4-5"},"id":"e%d","timestamp":"2026-03-01T10:01:0%dZ","parentId":"e%d"}`+"\n", i, i+2, i, i+1)
	}
	lines += `{"type":"session.shutdown","data":{"shutdownType":"routine","modelMetrics":{"claude-sonnet-4-5":{"requests":{"count":4},"usage":{"inputTokens":600000,"outputTokens":40,"cacheReadTokens":0,"cacheWriteTokens":0}}}},"id":"e9","timestamp":"2026-03-02T10:00:00Z","parentId":"e5"}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(lines), 0o600))
	_, err := importer.Import(bg, store, archive.Path(filepath.Join(dir, "events.jsonl")), importer.Options{})
	require.NoError(t, err)
	for _, since := range []time.Time{{}, time.UnixMilli(1)} { // from the totals, and from what spans state
		for _, by := range [][]usage.By{nil, {usage.Day}} {
			report, err := x.Report(bg, usage.Query{By: by, Since: since})
			require.NoError(t, err)
			require.EqualValues(t, 4, report.Total.Requests)
			require.EqualValues(t, 600_000, report.Total.Tokens[message.Input].N)
			require.EqualValues(t, 40, report.Total.Tokens[message.Output].N)
			require.Equal(t, "1.8006", report.Total.Cost.String())
			require.Zero(t, report.Total.Incomplete, "by %v", by)
			require.Zero(t, report.Total.Tokens[message.Input].Unknown)
		}
	}
	shutdown := message.Usage(message.Record{Role: "session.shutdown", Body: []byte(`{"type":"session.shutdown","data":{"modelMetrics":{"claude-sonnet-4-5":{"requests":{"count":4},"usage":{"inputTokens":600000,"outputTokens":40}}}}}`)})
	of := usage.Of(shutdown, time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), prices.Default())
	require.Equal(t, "1.8", of.Cost.String())
}

// Copilot CLI 1.0.102 records the tokens of each answer. Two sessions with equal ids of the provider count twice, and so does an answer
// after a session was resumed; what is stated when a session ends is their sum, and counts for nothing.
func TestRecordsOfAnswers(t *testing.T) {
	store, x, _ := opened(t)
	for _, session := range []string{"s1", "s2"} {
		dir := filepath.Join(t.TempDir(), session)
		require.NoError(t, os.Mkdir(dir, 0o700))
		lines := fmt.Sprintf(`{"type":"session.start","data":{"sessionId":%q,"copilotVersion":"1.0.102"},"id":"e0","timestamp":"2026-11-30T10:00:00Z","parentId":null}`+"\n", session)
		for i := range 3 {
			if i == 2 {
				lines += `{"type":"session.shutdown","data":{"modelMetrics":{"claude-sonnet-4-5":{"requests":{"count":2},"usage":{"inputTokens":2000,"outputTokens":20}}},"usageAccountingWatermarks":{"main":2}},"id":"end","timestamp":"2026-11-30T10:00:09Z","parentId":"m1"}` + "\n"
			}
			lines += fmt.Sprintf(`{"type":"session.usage_record","data":{"usage":{"model":"claude-sonnet-4-5","inputTokens":1000,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"cost":1.0,"accounting":{"sourceSessionId":%q,"sequence":%d,"usageId":"r1"}}},"id":"u%[2]d","timestamp":"2026-11-30T10:01:0%[2]dZ","parentId":"e0"}
{"type":"assistant.message","data":{"messageId":"a%[2]d","content":"x","toolRequests":[],"model":"claude-sonnet-4-5","apiCallId":"r1"},"id":"m%[2]d","timestamp":"2026-11-30T10:01:0%[2]dZ","parentId":"u%[2]d"}
`, session, i)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(lines), 0o600))
		report, err := importer.Import(bg, store, archive.Path(filepath.Join(dir, "events.jsonl")), importer.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
	}
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.EqualValues(t, 6, report.Total.Requests)
	require.EqualValues(t, 6000, report.Total.Tokens[message.Input].N)
	require.EqualValues(t, 60, report.Total.Tokens[message.Output].N)
	require.Equal(t, "0.0189", report.Total.Cost.String()) // 6,000 at 3 dollars a million, and 60 at 15
	require.Zero(t, report.Total.StatedBy, "its cost is in requests of the plan")
	require.Zero(t, report.Total.Incomplete)
}

// Sums of absurd costs end at the largest number, and are not negative.
func TestAbsurdCosts(t *testing.T) {
	store, x, _ := opened(t)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	active, err := thread.Active(bg)
	require.NoError(t, err)
	items := make([]lineage.Item, 2500)
	for i := range items {
		items[i] = lineage.Item{Kind: lineage.Message, Role: "assistant", Type: "application/json", CreatedAt: time.UnixMilli(1_780_000_000_000),
			Body: []byte(`{"role":"assistant","model":"m","content":"x","usage":{"input_tokens":1000000000000,"output_tokens":1000000000000,"cost":1000}}`)}
	}
	for range 4 { // ten million dollars in one quarter of an hour
		_, err = active.Extend(bg, items...)
		require.NoError(t, err)
	}
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.EqualValues(t, 10_000, report.Total.Requests)
	require.Equal(t, "9000000", report.Total.Stated.String())
	require.EqualValues(t, int64(10_000_000_000_000_000), report.Total.Tokens[message.Input].N)
}

// What was translated for pi was written by no model. An answer of a model that the program does not know has tokens.
func TestTranslatedForPi(t *testing.T) {
	body := func(input int) []byte {
		return fmt.Appendf(nil, `{"role":"assistant","content":[],"api":"unknown","provider":"unknown","model":"unknown","usage":{"input":%d,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":%d,"cost":{"total":0}}}`, input, input)
	}
	require.Empty(t, message.Usage(message.Record{Role: "assistant", Body: body(0)}))
	require.Len(t, message.Usage(message.Record{Role: "assistant", Body: body(1)}), 1)
}

// An answer that states no time has the time at which it was stored.
func TestAnswerWithoutATime(t *testing.T) {
	store, x, _ := opened(t)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	active, err := thread.Active(bg)
	require.NoError(t, err)
	before := time.Now().UTC().Add(-time.Minute)
	_, err = active.Extend(bg, lineage.Item{Kind: lineage.Message, Role: "assistant", Type: "application/json", Body: []byte(`{"role":"assistant","content":"x","usage":{"input_tokens":1}}`)})
	require.NoError(t, err)
	report, err := x.Report(bg, usage.Query{By: []usage.By{usage.Day}})
	require.NoError(t, err)
	require.Len(t, report.Rows, 1)
	require.Contains(t, []string{before.Format(time.DateOnly), time.Now().UTC().Format(time.DateOnly)}, report.Rows[0].Keys[0])
}

// After a file could not be opened again, it is tried again, until the index is closed.
func TestOpenedAgain(t *testing.T) {
	_, x, dir := opened(t)
	require.NoError(t, x.Update(bg))
	file := filepath.Join(dir, usage.FileName)
	for range 2 {
		require.NoError(t, os.RemoveAll(file))
		require.NoError(t, os.Mkdir(file, 0o700)) // nothing that can be opened
		for range 2 {
			require.Error(t, x.Update(bg))
			require.NotErrorIs(t, x.Update(bg), lineage.ErrClosed)
		}
		require.NoError(t, os.Remove(file))
		_, err := x.Report(bg, usage.Query{})
		require.NoError(t, err)
	}
	require.NoError(t, x.Close())
	require.ErrorIs(t, x.Update(bg), lineage.ErrClosed)
}
