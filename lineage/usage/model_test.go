package usage_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

// counting is a store that changes at random, and two indexes of it.
type counting struct {
	*rapid.T
	store   *lineage.Store
	indexes [2]*usage.Index
	dir     string
	number  int
}

// answer returns an answer of a model. Few of them have equal ids, and some have none.
func (c *counting) answer() lineage.Item {
	c.number++
	id := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(c.T, "id")
	body := fmt.Sprintf(`{"role":"assistant","model":"m%d","content":"x","usage":{"input_tokens":%d,"cache_read_input_tokens":3,"output_tokens":%d}}`,
		rapid.IntRange(0, 1).Draw(c.T, "model"), rapid.IntRange(0, 300_000).Draw(c.T, "input"), c.number)
	if id != "" {
		body = `{"id":"msg_` + id + `",` + body[1:]
	}
	i := lineage.Item{Kind: lineage.Message, Role: "assistant", Body: []byte(body), Type: "application/json"}
	i.CreatedAt = time.UnixMilli(1_780_000_000_000).Add(time.Duration(rapid.IntRange(0, 6).Draw(c.T, "quarter"))*10*time.Minute + time.Duration(c.number)*time.Millisecond)
	return i
}

func (c *counting) context() *lineage.Context {
	var all []*lineage.Context
	for b, err := range c.store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		require.NoError(c, err)
		got, err := c.store.Context(bg, b.ID)
		require.NoError(c, err)
		all = append(all, got)
	}
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(c.T, "context")
}

// change changes the store.
func (c *counting) change() {
	in := c.context()
	switch step := rapid.IntRange(0, 9).Draw(c.T, "step"); {
	case step == 0 || in == nil:
		t, err := c.store.CreateThread(bg, lineage.ThreadOptions{UserID: rapid.SampledFrom([]string{"ann", "bob"}).Draw(c.T, "user")})
		require.NoError(c, err)
		_, err = t.Active(bg)
		require.NoError(c, err)
	case step <= 4:
		_, err := in.Extend(bg, lineage.User("q"), c.answer(), c.answer())
		require.NoError(c, err)
	case step <= 6:
		at := lineage.ForkOptions{}
		if entries, err := in.All(bg); err == nil && len(entries) > 0 && rapid.Bool().Draw(c.T, "earlier") {
			at.At = entries[rapid.IntRange(0, len(entries)-1).Draw(c.T, "at")].Span
		}
		fork, err := in.Fork(bg, at)
		require.NoError(c, err)
		if info, err := in.Info(bg); err == nil && !info.Thread.IsZero() && rapid.Bool().Draw(c.T, "named") {
			thread, err := c.store.Thread(bg, info.Thread)
			require.NoError(c, err)
			c.number++
			require.NoError(c, thread.NameBranch(bg, fmt.Sprint("b", c.number), fork))
		}
		if rapid.Bool().Draw(c.T, "goes on") {
			_, err = fork.Extend(bg, c.answer())
			require.NoError(c, err)
		}
	case step == 7:
		for t, err := range c.store.View().Threads(bg, lineage.ThreadID{}) {
			require.NoError(c, err)
			if rapid.Bool().Draw(c.T, "this") {
				got, err := c.store.Thread(bg, t.ID)
				require.NoError(c, err)
				require.NoError(c, got.Delete(bg))
				break
			}
		}
	case step == 8:
		if err := in.Delete(bg); err != nil {
			require.True(c, errors.Is(err, lineage.ErrInvalid) || errors.Is(err, lineage.ErrProtected) || errors.Is(err, lineage.ErrConflict), "%v", err)
		}
	default:
		_, err := c.store.Collect(bg, lineage.CollectOptions{})
		require.NoError(c, err)
	}
}

// naive counts the answers that contexts of some threads see, each once: with the figures of the last one, in the month of
// the first one.
func (c *counting) naive(of func(*lineage.Context) bool) map[string][3]int64 {
	type seen struct {
		at time.Time
		a  message.Answer
	}
	spans := make(map[string]seen)
	byKey := make(map[string][]string)
	for b, err := range c.store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		require.NoError(c, err)
		got, err := c.store.Context(bg, b.ID)
		require.NoError(c, err)
		if !of(got) {
			continue
		}
		entries, err := got.All(bg)
		require.NoError(c, err)
		for _, e := range entries {
			for _, a := range message.Usage(message.Record{Body: e.Body, Role: e.Role}) {
				place := fmt.Sprint(e.Span, e.Index)
				if _, known := spans[place]; known {
					continue
				}
				spans[place] = seen{e.CreatedAt, a}
				key := a.ID
				if key == "" {
					key = place
				}
				byKey[key] = append(byKey[key], place)
			}
		}
	}
	rows := make(map[string][3]int64)
	for _, places := range byKey {
		first, last := spans[places[0]], spans[places[0]]
		for _, place := range places {
			if s := spans[place]; s.at.Before(first.at) {
				first = s
			} else if s.at.After(last.at) {
				last = s
			}
		}
		row := rows[first.at.UTC().Format(time.DateOnly)+last.a.Model]
		input, output := last.a.Tokens.Sums()
		rows[first.at.UTC().Format(time.DateOnly)+last.a.Model] = [3]int64{row[0] + 1, row[1] + input, row[2] + output}
	}
	return rows
}

// require compares a report by day and model with a naive count.
func (c *counting) require(x *usage.Index, q usage.Query, of func(*lineage.Context) bool) {
	q.By = []usage.By{usage.Day, usage.Model}
	report, err := x.Report(bg, q)
	require.NoError(c, err)
	rows := make(map[string][3]int64)
	for _, r := range report.Rows {
		t := &r.Tokens
		rows[r.Keys[0]+r.Keys[1]] = [3]int64{r.Requests, t[message.Input].N + t[message.CachedInput].N, t[message.Output].N}
	}
	require.Equal(c, c.naive(of), rows)
	q.By = []usage.By{usage.Thread, usage.Branch, usage.Subagent, usage.Model}
	report, err = x.Report(bg, q)
	require.NoError(c, err)
	q.Since = time.UnixMilli(1) // from what spans state, and not from the totals
	each, err := x.Report(bg, q)
	require.NoError(c, err)
	require.Equal(c, each.Rows, report.Rows)
}

// Whatever happens to a store, an answer counts once as long as any context sees it. Two indexes of one file, which are
// updated in any order, agree with one that is built at once, the figures of a thread and a user with those of spans, and those
// of branches in the totals with those of each answer.
func TestModel(t *testing.T) {
	defer campaign.Checks(30)()
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		c := &counting{T: r, store: store, dir: t.TempDir()}
		for i := range c.indexes {
			c.indexes[i], err = usage.Open(bg, store, c.dir, usage.Options{})
			require.NoError(r, err)
			defer c.indexes[i].Close()
		}
		defer usage.SetWindowLimit(usage.SetWindowLimit(rapid.SampledFrom([]int{1, 5, 0}).Draw(r, "window")))
		for range rapid.IntRange(1, 5).Draw(r, "rounds") {
			for range rapid.IntRange(1, 8).Draw(r, "changes") {
				c.change()
			}
			x := c.indexes[rapid.IntRange(0, 1).Draw(r, "index")]
			c.require(x, usage.Query{}, func(*lineage.Context) bool { return true })
			c.require(x, usage.Query{Users: []string{"bob"}}, func(branch *lineage.Context) bool {
				state, err := branch.Info(bg)
				require.NoError(r, err)
				if state.Thread.IsZero() {
					return false
				}
				thread, err := store.View().Thread(bg, state.Thread)
				require.NoError(r, err)
				return thread.UserID == "bob"
			})
		}
		fresh := t.TempDir()
		x, err := usage.Open(bg, store, fresh, usage.Options{})
		require.NoError(r, err)
		defer x.Close()
		want, err := x.Report(bg, usage.Query{By: []usage.By{usage.Thread, usage.Branch, usage.Model, usage.Day}})
		require.NoError(r, err)
		got, err := c.indexes[0].Report(bg, usage.Query{By: []usage.By{usage.Thread, usage.Branch, usage.Model, usage.Day}})
		require.NoError(r, err)
		require.Equal(r, want, got)
		require.Equal(r, rowsIn(r, fresh), rowsIn(r, c.dir))
		// The slow way, from what spans state, gives the same.
		slow, err := x.Report(bg, usage.Query{By: []usage.By{usage.Thread, usage.Branch, usage.Model, usage.Day}, Since: time.UnixMilli(1)})
		require.NoError(r, err)
		require.Equal(r, want, slow)
		c.countedIn(x, want)
	})
}

// countedIn requires that a report on some threads has the rows of these in the report on all.
func (c *counting) countedIn(x *usage.Index, all *usage.Report) {
	some := []lineage.ThreadID{{1}} // which does not exist
	for t, err := range c.store.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(c, err)
		if rapid.Bool().Draw(c.T, "counted in") {
			some = append(some, t.ID())
		}
	}
	var want []usage.Row
	for _, row := range all.Rows {
		if slices.ContainsFunc(some, func(id lineage.ThreadID) bool { return id.String() == row.Keys[0] }) {
			want = append(want, row)
		}
	}
	for _, since := range []time.Time{{}, time.UnixMilli(1)} {
		got, err := x.Report(bg, usage.Query{By: []usage.By{usage.Thread, usage.Branch, usage.Model, usage.Day}, CountedIn: some, Since: since})
		require.NoError(c, err)
		require.Equal(c, want, got.Rows)
	}
	none, err := x.Report(bg, usage.Query{CountedIn: []lineage.ThreadID{}})
	require.NoError(c, err)
	require.Empty(c, none.Rows)
}
