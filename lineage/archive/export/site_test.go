package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

const attack = `</script><script>document.title = "attacked"</script><img src=x onerror="document.title = 'attacked'">` + "\u202e\x1b[2J"

// siteStore has threads with hostile names, and two with equal titles and message ids.
func siteStore(t *testing.T) (*lineage.Store, []*lineage.Thread) {
	s := lineagetest.New(t, lineage.Options{})
	var threads []*lineage.Thread
	add := func(o lineage.ThreadOptions, items ...lineage.Item) *lineage.Context {
		thread, err := s.CreateThread(t.Context(), o)
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		_, err = main.Extend(t.Context(), items...)
		require.NoError(t, err)
		threads = append(threads, thread)
		return main
	}
	agent := func(name, folder string) []byte {
		b, err := json.Marshal(map[string]string{"agent": name, "cwd": folder})
		require.NoError(t, err)
		return b
	}
	add(lineage.ThreadOptions{Title: attack, UserID: attack, Metadata: agent(attack, "../../"+attack)}, lineage.User(attack+" aubergine").WithID("1"), lineage.Assistant(attack))
	twin := add(lineage.ThreadOptions{Title: "Lisbon", Metadata: agent("codex", "/home/ada/trip")}, lineage.User("a weekend in Lisbon").WithID("1"), lineage.Assistant("By train."), lineage.User("and the hotels?"))
	_, err := threads[1].CreateBranch(t.Context(), "other", lineage.BranchOptions{})
	require.NoError(t, err)
	_, err = twin.Extend(t.Context(), lineage.User("the last question"))
	require.NoError(t, err)
	add(lineage.ThreadOptions{Title: "Lisbon"}, lineage.User("another weekend").WithID("1"))
	return s, threads
}

// A folder of pages has a page for each thread and a list, both times the same bytes, with no text that is markup, and
// nothing that is loaded. What is in the way is kept.
func TestWriteSite(t *testing.T) {
	s, threads := siteStore(t)
	dir := filepath.Join(t.TempDir(), "new", "site")
	got, err := export.WriteSite(t.Context(), s, dir, export.Options{})
	require.NoError(t, err)
	require.Equal(t, 3, got.Conversations)
	files := make(map[string]string)
	size := int64(0)
	require.NoError(t, os.CopyFS(filepath.Join(t.TempDir(), "copy"), os.DirFS(dir)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(body)
		size += int64(len(body))
		return err
	}))
	require.Equal(t, got.Bytes, size)
	require.Len(t, files, 4)
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for name, body := range files {
		for _, bad := range []string{"<script>document", "<img src=x", "\u202e", "\x1b", "http-equiv=\"refresh"} {
			require.NotContains(t, body, bad, name)
		}
		require.Contains(t, body, `content="default-src 'none'; `)
		for _, link := range links.FindAllStringSubmatch(body, -1) {
			path, _, _ := strings.Cut(link[1], "#")
			require.NotContains(t, path, ":", name)
			if path != "" {
				require.Contains(t, files, filepath.Join(filepath.Dir(name), path), "a link leads to a file of the folder")
			}
		}
	}
	require.Contains(t, files["index.html"], "4 messages")
	require.Contains(t, files["index.html"], "2 branches")
	for _, thread := range threads {
		require.Contains(t, files["index.html"], `<li id="`+thread.ID().String()+`">`)
	}
	again := filepath.Join(t.TempDir(), "again")
	_, err = export.WriteSite(t.Context(), s, again, export.Options{Scope: export.Scope{Threads: threads}})
	require.NoError(t, err)
	for name, body := range files {
		same, err := os.ReadFile(filepath.Join(again, name))
		require.NoError(t, err)
		require.Equal(t, body, string(same), name)
	}

	_, err = export.WriteSite(t.Context(), s, dir, export.Options{})
	require.ErrorIs(t, err, lineage.ErrExists)
	main, err := threads[0].Active(t.Context())
	require.NoError(t, err)
	_, err = export.WriteSite(t.Context(), s, filepath.Join(t.TempDir(), "x"), export.Options{Scope: export.Scope{Context: main}})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.NoError(t, threads[0].Delete(t.Context()))
	got, err = export.WriteSite(t.Context(), s, filepath.Join(t.TempDir(), "x"), export.Options{Scope: export.Scope{Threads: threads}})
	require.NoError(t, err)
	require.Equal(t, 2, got.Conversations)
	empty := lineagetest.New(t, lineage.Options{})
	last := filepath.Join(t.TempDir(), "empty")
	_, err = export.WriteSite(t.Context(), empty, last, export.Options{})
	require.NoError(t, err)
	body, err := os.ReadFile(filepath.Join(last, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(body), "There is nothing here.")
}

// In a browser, without a server: the list is searched by words of titles and prompts, and what it finds leads to the message.
func TestBrowserSite(t *testing.T) {
	s, _ := siteStore(t)
	dir := filepath.Join(t.TempDir(), "site")
	_, err := export.WriteSite(t.Context(), s, dir, export.Options{})
	require.NoError(t, err)
	b := browser.Open(t)
	at := "file://" + filepath.ToSlash(filepath.Join(dir, "index.html"))
	b.Do(chromedp.Navigate(at))
	b.Until(`document.querySelector("#n")?.textContent === "3 conversations"`)
	enter := func(text string) {
		b.Do(chromedp.SetValue(chromedp.CSS("#q"), text))
		browser.Get(b, chromedp.Evaluate[bool](`document.querySelector("#q").dispatchEvent(new Event("input"))`))
	}
	enter("codex HOTELS")
	b.Until(`document.querySelector("#n").textContent === "1 of 3"`)
	require.Equal(t, "and the hotels?", browser.Get(b, chromedp.Evaluate[string](`document.querySelector(".rows li:not([hidden]) ul").textContent`)))
	enter("aubergine")
	b.Until(`document.querySelector("#n").textContent === "1 of 3" && document.querySelector(".rows li:not([hidden]) ul")?.textContent.includes("<script>")`)
	enter("weekend")
	b.Until(`document.querySelector("#n").textContent === "2 of 3"`)
	require.NotEqual(t, "attacked", browser.Get(b, chromedp.Evaluate[string](`document.title`)))
	browser.Get(b, chromedp.Evaluate[bool](`[...document.querySelectorAll(".rows li:not([hidden]) ul a")].find((a) => a.textContent === "a weekend in Lisbon").click(), true`))
	b.Until(`location.hash !== "" && !!document.querySelector(":target")?.textContent.includes("weekend in Lisbon")`)
	require.Empty(t, b.Problems())
	for _, request := range b.Requests() {
		require.True(t, strings.HasPrefix(request, "file://"+filepath.ToSlash(dir)), request)
	}
}
