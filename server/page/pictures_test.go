package page_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server/page"
	"github.com/lineage-store/lineage/structure"
)

// decorators is the session of the pictures.
const decorators = "test_session"

// continued does to the session of the pictures what people do: it asks differently, asks for an answer again, sends a subagent
// and marks a place.
func (s *site) continued() {
	ctx := s.t.Context()
	thread, err := s.store.FindThread(ctx, decorators)
	require.NoError(s.t, err)
	main, err := thread.Active(ctx)
	require.NoError(s.t, err)
	branch := func(name string, from *lineage.Context, at uint64, items ...lineage.Item) *lineage.Context {
		tip, err := from.Tip(ctx)
		require.NoError(s.t, err)
		after, err := s.store.At(ctx, tip, at)
		require.NoError(s.t, err)
		var c *lineage.Context
		if name == "" {
			c, err = from.Fork(ctx, lineage.ForkOptions{At: after, Metadata: []byte(`{"made_by":"subagent"}`)})
		} else {
			c, err = thread.CreateBranch(ctx, name, lineage.BranchOptions{From: from, At: after})
		}
		require.NoError(s.t, err)
		_, err = c.Extend(ctx, items...)
		require.NoError(s.t, err)
		return c
	}
	branch("shorter", main, 3, lineage.Assistant("A decorator with parameters is a function that returns a decorator. `repeat(3)` is called first, and what it returns gets the function."))
	wraps := branch("wraps", main, 2, lineage.User("How does the wrapper keep the name of the function?"), lineage.Assistant("With `functools.wraps`, which copies the name and the documentation."),
		lineage.User("And its signature?"), lineage.Assistant("`inspect.signature` follows `__wrapped__`, which `wraps` sets."))
	branch("typed", wraps, 4, lineage.User("Write it with types"), lineage.Assistant("With `ParamSpec` the wrapper has the parameters of the function."))
	branch("", main, 5, lineage.User("Which decorators of this project lose the name of their function?"), lineage.Assistant("Two: `timed` in metrics.py and `retry` in client.py."))
	_, err = thread.SetCheckpoint(ctx, "it runs", lineage.CheckpointOptions{})
	require.NoError(s.t, err)
}

// The pictures of the README and docs are of the page with sample sessions. LINEAGE_UPDATE_GOLDEN=1 takes them again.
func TestPictures(t *testing.T) {
	costs := make(map[lineage.ThreadID]string)
	s := newSite(t, page.Options{Cost: func(id lineage.ThreadID) string { return costs[id] }})
	const samples = "../../lineage/archive/testdata"
	for _, path := range []string{
		"agents/codex", "agents/opencode", "agents/copilot", "agents/qwen", "claude-code-spotter", "claude-code-log/representative_messages.jsonl", "claude-code-log/todowrite_examples.jsonl",
	} {
		_, err := importer.Import(t.Context(), s.store, archive.Path(filepath.Join(samples, path)), importer.Options{})
		require.NoError(t, err)
	}
	s.continued()
	index, err := usage.Open(t.Context(), s.store, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	report, err := index.Report(t.Context(), usage.Query{By: []usage.By{usage.Thread}})
	require.NoError(t, err)
	for i := range report.Rows {
		id, err := structure.ParseID[lineage.ThreadID](report.Rows[i].Keys[0])
		require.NoError(t, err)
		figures := report.Rows[i].Figures.Record()
		costs[id] = figures.Money()
	}
	require.NoError(t, index.Close())
	thread, err := s.store.FindThread(t.Context(), decorators)
	require.NoError(t, err)
	at := s.url + "/t/" + thread.ID().String()
	b := s.tab()
	b.Do(chromedp.EmulateViewport(1160, 640))
	for _, view := range []struct{ name, scheme, address, script string }{
		{"conversations", "light", s.url + "/", "0"},
		{"conversation", "light", at + "?at=3#m3", `document.querySelector("#m4 details.call, #m4 ~ .m details.call").open = true; 0`},
		{"graph", "dark", at + "/graph", "0"},
	} {
		_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.scheme}},
		})
		require.NoError(t, err)
		open(b, view.address)
		until(b, live)
		run(b, view.script)
		shot := browser.Get(b, chromedp.CaptureScreenshot())
		path := filepath.Join("../../docs/pictures", view.name+".png")
		if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, shot, 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, picture := range [][]byte{shot, got} { // letters and times differ from one machine to another
			config, err := png.DecodeConfig(bytes.NewReader(picture))
			require.NoError(t, err)
			require.Equal(t, [2]int{1160, 640}, [2]int{config.Width, config.Height}, view.name)
		}
	}
	require.Empty(t, b.Problems())
}
