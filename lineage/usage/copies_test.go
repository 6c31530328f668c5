package usage_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

func said(id, source string, output string) lineage.Item {
	body := `{"role":"assistant","content":"x","usage":{"input_tokens":10,"output_tokens":` + output + `}}`
	if id != "" {
		body = `{"id":"` + id + `",` + body[1:]
	}
	return lineage.Item{Kind: lineage.Message, Role: "assistant", Body: []byte(body), Type: "application/json", SourceID: source, CreatedAt: time.Date(2026, 1, 1, 0, 0, len(output), 0, time.UTC)}
}

// Equal ids of messages in two threads are two answers. An id of the provider is one for two users: each of them has it, and
// together it counts once.
func TestCopies(t *testing.T) {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	total := func(q usage.Query) [2]int64 {
		report, err := x.Report(bg, q)
		require.NoError(t, err)
		return [2]int64{report.Total.Requests, report.Total.Tokens[message.Output].N}
	}
	main := func(user string) *lineage.Context {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		c, err := thread.Active(bg)
		require.NoError(t, err)
		return c
	}
	ann, bob := main("ann"), main("bob")
	for _, c := range []*lineage.Context{ann, bob} {
		_, err := c.Extend(bg, said("", "m1", "5"))
		require.NoError(t, err)
	}
	require.Equal(t, [2]int64{2, 10}, total(usage.Query{}))
	for _, c := range []*lineage.Context{ann, bob} {
		_, err := c.Extend(bg, said("msg_1", "", "100"))
		require.NoError(t, err)
	}
	require.Equal(t, [2]int64{3, 110}, total(usage.Query{}))
	require.Equal(t, [2]int64{2, 105}, total(usage.Query{Users: []string{"ann"}}))
	require.Equal(t, [2]int64{2, 105}, total(usage.Query{Users: []string{"bob"}}))
	require.Equal(t, [2]int64{3, 110}, total(usage.Query{Users: []string{"bob", "ann"}}))
	require.Equal(t, [2]int64{0, 0}, total(usage.Query{Users: []string{"eve' OR 1=1 --"}}))
	_, err = ann.Extend(bg, said("", "", "1"), said("", "", "1"))
	require.NoError(t, err)
	require.Equal(t, [2]int64{5, 112}, total(usage.Query{}), "without an id each place counts")
}

// Versions of a message are one answer, of which the last one counts.
func TestVersions(t *testing.T) {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	for i, output := range []string{"5", "77"} {
		session := `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}
{"type":"message","id":"e1","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"q"}}
{"type":"message","id":"e2","parentId":"e1","timestamp":"2026-01-01T00:00:0` + strconv.Itoa(2+i) + `Z","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"said ` + output + `"}],"usage":{"input":10,"output":` + output + `}}}
`
		_, err := importer.Import(bg, store, archive.Stream("s.jsonl", strings.NewReader(session)), importer.Options{})
		require.NoError(t, err)
		report, err := x.Report(bg, usage.Query{})
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Total.Requests)
		require.Equal(t, output, strconv.FormatInt(report.Total.Tokens[message.Output].N, 10))
	}
}

// Absurd numbers of many answers stay numbers.
func TestAbsurdSums(t *testing.T) {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	for range 3 {
		_, err = c.Extend(bg, said("", "", "1000000000000"), said("", "", "9223372036854775807"), said("", "", "1e400"))
		require.NoError(t, err)
	}
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.EqualValues(t, 9, report.Total.Requests)
	require.EqualValues(t, int64(3_000_000_000_000), report.Total.Tokens[message.Output].N)
	require.EqualValues(t, 6, report.Total.Tokens[message.Output].Unknown)
}

// An answer just before the ones that a window adds is gone with its thread, too.
func TestDeletedAfterMore(t *testing.T) {
	store, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	x, err := usage.Open(bg, store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	requests := func() int64 {
		report, err := x.Report(bg, usage.Query{})
		require.NoError(t, err)
		return report.Total.Requests
	}
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.User("one"), said("msg_1", "", "5"))
	require.NoError(t, err)
	require.Equal(t, int64(1), requests())
	_, err = main.Extend(bg, lineage.User("two"), said("msg_2", "", "5"))
	require.NoError(t, err)
	require.NoError(t, thread.Delete(bg))
	require.Zero(t, requests())
}

// Branches that continue where the main one ends are in the same run of the store. An answer is that of the oldest branch that
// sees it, from the totals and from what spans state, and one that no branch sees any more counts where it was.
func TestBranchesOfARun(t *testing.T) {
	store, x, _ := opened(t)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, said("msg_1", "", "1"))
	require.NoError(t, err)
	for name, output := range map[string]string{"one": "10", "two": "100"} {
		fork, err := main.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		require.NoError(t, thread.NameBranch(bg, name, fork))
		_, err = fork.Extend(bg, said("msg_"+name, "", output))
		require.NoError(t, err)
		_, err = fork.Extend(bg, said("", "", output), said("msg_1", "", "2")) // a line of the first answer again
		require.NoError(t, err)
	}
	requireBranches := func(want map[string]int64) {
		t.Helper()
		for _, q := range []usage.Query{{}, {Since: time.UnixMilli(1)}, {Thread: thread.ID()}} {
			q.By = []usage.By{usage.Branch}
			report, err := x.Report(bg, q)
			require.NoError(t, err)
			got := make(map[string]int64)
			for _, row := range report.Rows {
				got[row.Keys[0]] = row.Tokens[message.Output].N
			}
			require.Equal(t, want, got)
		}
	}
	requireBranches(map[string]int64{"main": 2, "one": 20, "two": 200})
	_, err = main.Extend(bg, said("", "", "1000"))
	require.NoError(t, err)
	requireBranches(map[string]int64{"main": 1002, "one": 20, "two": 200})
}

// A report by branch, or about a thread, takes as many statements for many answers as for a few.
func TestStatementsOfAReport(t *testing.T) {
	store, x, _ := opened(t)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, said("msg_0", "", "1"))
	require.NoError(t, err)
	fork, err := main.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(bg, "other", fork))
	queries := []usage.Query{{By: []usage.By{usage.Branch}}, {By: []usage.By{usage.Branch}, Thread: thread.ID()}, {Thread: thread.ID()}}
	var few []int
	answers := 1
	for round := range 2 {
		for range 1 + 30*round {
			_, err := fork.Extend(bg, said("msg_"+strconv.Itoa(answers), "", "1"), said("", "", "1"))
			require.NoError(t, err)
			answers += 2
		}
		for i, q := range queries {
			require.NoError(t, x.Update(bg))
			n := usage.CountStatements(func() {
				report, err := x.Report(bg, q)
				require.NoError(t, err)
				require.EqualValues(t, answers, report.Total.Requests)
			})
			require.Positive(t, n)
			if round == 0 {
				few = append(few, n)
			} else {
				require.Equal(t, few[i], n, "%v", q)
			}
		}
	}
}
