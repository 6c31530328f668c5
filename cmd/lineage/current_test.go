package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// listedFirst returns the thread that `thread list` lists first, and the one that commands
// work on.
func listedFirst(t require.TestingT, dir string) (first, current string) {
	got := runLine(context.Background(), "thread", "list", "--json", "--store", dir)
	require.Equal(t, 0, got.code, got.err)
	for line := range strings.Lines(got.out) {
		var r records.Thread
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if first == "" {
			first = r.ID
		}
		if r.Current {
			current = r.ID
		}
	}
	return first, current
}

// The thread that was updated last is listed first, and is the current one.
func TestTheLatestChatIsCurrent(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		ctx, dir := context.Background(), outer.TempDir()+"/store"
		store, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		var order []lineage.ThreadID // by their last change, oldest first
		changed := func(id lineage.ThreadID) {
			order = append(slices.DeleteFunc(order, func(other lineage.ThreadID) bool { return other == id }), id)
		}
		create := func() {
			thread, err := store.CreateThread(ctx, lineage.ThreadOptions{})
			require.NoError(t, err)
			changed(thread.ID())
		}
		create()
		for step := range rapid.IntRange(0, 12).Draw(t, "steps") {
			do := rapid.SampledFrom([]string{"create", "extend", "title", "fork", "branch", "delete"}).Draw(t, "do")
			if do == "create" || len(order) == 0 {
				create()
				continue
			}
			thread, err := store.Thread(ctx, order[rapid.IntRange(0, len(order)-1).Draw(t, "thread")])
			require.NoError(t, err)
			active, err := thread.Active(ctx)
			require.NoError(t, err)
			changed(thread.ID())
			switch do {
			case "extend":
				_, err = active.Extend(ctx, lineage.User("more"))
			case "title":
				err = thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title += "x"; return nil })
			case "fork":
				_, err = active.Fork(ctx, lineage.ForkOptions{})
			case "branch":
				_, err = thread.CreateBranch(ctx, fmt.Sprint("branch", step), lineage.BranchOptions{})
			case "delete":
				order = order[:len(order)-1]
				err = thread.Delete(ctx)
			}
			require.NoError(t, err)
		}
		want, latest := "", int64(0)
		for _, id := range order {
			thread, err := store.Thread(ctx, id)
			require.NoError(t, err)
			info, err := thread.Info(ctx)
			require.NoError(t, err)
			at := info.UpdatedAt.UnixMilli()
			if at > latest || at == latest && id.String() > want {
				want, latest = id.String(), at
			}
		}
		require.NoError(t, store.Close())
		first, current := listedFirst(t, dir)
		require.Equal(t, first, current)
		require.Equal(t, want, current)
	})
}

// After a thread is deleted, what is said goes into the thread that is listed first.
func TestAppendGoesToTheChatListedFirst(t *testing.T) {
	dir := newStore(t)
	for _, line := range []string{
		"thread create --id old", "append said-first --thread old", "thread create --id imported", "append said-next --thread old",
		"thread create --id doomed", "thread delete doomed --yes",
	} {
		got := runLine(t.Context(), append(strings.Fields(line), "--store", dir)...)
		require.Equal(t, 0, got.code, "%s: %s", line, got.err)
	}
	first, current := listedFirst(t, dir)
	require.Equal(t, first, current)
	require.Equal(t, write.SourceThread("old").String(), current)
	require.Equal(t, 0, runLine(t.Context(), "append", "said-last", "--store", dir).code)
	require.Contains(t, runLine(t.Context(), "log", "--thread", "old", "--store", dir).out, "said-last")
}

// Finding the current thread does not look at the others, however many there are.
func TestTheLatestChatIsFoundWithoutTheOthers(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store := lineagetest.New(t, lineage.Options{})
		var records []structure.Record
		for range n {
			records = append(records, &structure.Thread{ID: structure.NewID[structure.ThreadID]()})
		}
		_, err := write.Of(store).Engine().Apply(t.Context(), &structure.Commit{Records: records}, backend.Options{})
		require.NoError(t, err)
		made, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
		require.NoError(t, err)
		counting := backendtest.NewCounting(write.Of(store).Engine())
		s := &app.OpenStore{App: app.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" }), Store: lineage.New(counting)}
		return map[string]int64{"the latest thread": counting.Cost(func() {
			latest, err := s.LatestThread(t.Context())
			require.NoError(t, err)
			require.Equal(t, made.ID(), latest.ID())
		})}
	})
}

// No command works on another thread because the file that names the chosen one is damaged.
func TestDamagedCurrentChat(t *testing.T) {
	dir := newStore(t)
	run := func(args ...string) result { return runLine(t.Context(), append(args, "--store", dir)...) }
	require.Zero(t, run("thread", "create", "--title", "second").code)
	path := filepath.Join(dir, app.ThreadFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	try := func(b []byte) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, b, 0o600))
		got := run("append", "to the second")
		require.Equal(t, app.ExitCorrupt, got.code, got.err)
		require.Contains(t, got.err, "hint: 'lineage thread use THREAD' chooses the current thread again")
	}
	for at := range whole {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		try(b)
	}
	try(whole[:len(whole)-1])
	try(nil)
	got := run("thread", "use", "second")
	require.Zero(t, got.code, got.err)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, again)
	require.Zero(t, run("append", "to the second").code)
	require.NotContains(t, run("log").out, "hello")
}
