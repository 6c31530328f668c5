package page_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/page"
)

// axe returns the script of axe-core in the folder that LINEAGE_TEST_AXE names, or where scripts/axe.sh puts it.
func axe(t *testing.T) string {
	folder := os.Getenv("LINEAGE_TEST_AXE")
	if folder == "" {
		folder = filepath.Join("..", "..", ".bin", "axe")
	}
	script, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	if os.IsNotExist(err) {
		t.Skip("NOT RUN with axe-core: it is not installed; scripts/axe.sh fetches it")
	}
	require.NoError(t, err)
	return string(script)
}

// No view has a fault of accessibility that axe-core finds, in light and dark, on a wide screen and on a phone, with what is
// folded open.
func TestBrowserAccessible(t *testing.T) {
	script := axe(t)
	s := newSite(t, page.Options{Agents: []string{"codex", "pi"}, Resume: func(context.Context, page.ResumeQuery) (*page.Resumed, error) {
		return &page.Resumed{Resumed: &records.Resumed{Agent: "codex", Command: "codex resume 1"}, Losses: []lineage.Loss{{Position: 1, Reason: "no place for it"}}, Note: "a note"}, nil
	}})
	call := mustJSON(map[string]any{"id": "m1", "model": "claude-sonnet-4-5", "role": "assistant", "usage": map[string]any{"input_tokens": 10, "output_tokens": 5}, "content": []any{
		map[string]any{"type": "thinking", "thinking": "much"}, map[string]any{"type": "text", "text": "# Words\n\n```go\nfunc f() string { return \"a\" } // b\n```\n\n|a|b|\n|-|-|\n|1|[c](https://example.org)|"},
		map[string]any{"type": "tool_use", "id": "1", "name": "Edit", "input": map[string]any{"file_path": "a.go", "old_string": "a", "new_string": "b"}},
		map[string]any{"type": "tool_use", "id": "2", "name": "Bash", "input": map[string]any{"command": "make", "description": "build"}},
	}})
	result := mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "2", "content": "failed", "is_error": true}}})
	thread, main := s.thread(lineage.ThreadOptions{Title: "Lisbon", UserID: "ada", Metadata: []byte(`{"agent":"codex","cwd":"/home/ada/app"}`)},
		lineage.User("the first words"), lineage.Item{Role: "assistant", Body: call, Type: "application/json"}, lineage.Item{Role: "user", Body: result, Type: "application/json"})
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: s.first(main)})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.Assistant("another answer"))
	require.NoError(t, err)
	_, err = thread.SetCheckpoint(t.Context(), "mark", lineage.CheckpointOptions{})
	require.NoError(t, err)
	at := "/t/" + thread.ID().String()
	b := s.tab()
	for _, one := range []struct {
		scheme string
		width  int64
	}{{"light", 1200}, {"dark", 360}} {
		_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: one.scheme}}})
		require.NoError(t, err)
		b.Do(chromedp.EmulateViewport(one.width, 800))
		for _, path := range []string{"/", "/?agent=nobody", at, at + "?in=" + other.ID().String(), at + "/graph", at + "/sides?a=&b=" + other.ID().String(), at + "/delete", at + "/edit?at=1", at + "/resume", "/usage", "/usage?days=365", "/search?q=words", "/search?q=after:x", "/t/none"} {
			open(b, s.url+path)
			until(b, `true`)
			run(b, `for (const d of document.querySelectorAll("details")) d.open = true; for (const h of document.querySelectorAll("#tools, #map")) h.hidden = false`)
			run(b, script)
			faults := browser.Get(b, chromedp.Evaluate[string](`axe.run({ resultTypes: ["violations"] }).then((r) => r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 4).map((n) => "    " + n.html.slice(0, 160) + "\n      " + n.any.concat(n.all, n.none).map((c) => c.message).join("; ")).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
			if faults != "" {
				t.Errorf("%s, %s, %d pixels:\n%s", path, one.scheme, one.width, faults)
			}
		}
	}
}
