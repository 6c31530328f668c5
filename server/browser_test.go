//test:race

package server

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
)

// TestInBrowser opens the page with a link, as a file that redirects does too, receives events, and then has the page of
// another server, on the same host name, try the same.
func TestInBrowser(t *testing.T) {
	h := open(t)
	_, main := thread(t, h.store, lineage.ThreadOptions{}, "one")
	block, _, err := h.store.Put(t.Context(), strings.NewReader("<script>document.title='run'</script>"), lineage.BlockOptions{Type: "text/html"})
	require.NoError(t, err)
	tab := browser.Open(t)
	atPage := func(tab *browser.Tab) { tab.Do(chromedp.WaitVisible(chromedp.CSS("h1"))) }
	title := func(tab *browser.Tab, want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			got, err := chromedp.Run(tab, chromedp.Title()) // it fails between two documents
			return err == nil && got == want
		}, hangs, 5*time.Millisecond)
	}
	// An address that needs a session is not lost: neither by the tab that gets one, nor by those that wait.
	const address, other = "/?x=1#m5", "/?y=//evil.example#m7"
	waits := tab.Tab()
	for at, asks := range map[string]*browser.Tab{address: waits, other: tab} {
		asks.Do(chromedp.Navigate(h.URL() + at))
		title(asks, "Lineage")
		require.Contains(t, browser.Get(asks, chromedp.Poll[string](`document.getElementById("state").textContent`, chromedp.WithPollingTimeout(0))), "works once", "the anchor is no code")
	}
	link := h.Link()
	tab.Do(chromedp.Navigate(link))
	title(tab, "the page")
	require.Equal(t, h.URL()+other, browser.Get(tab, chromedp.Location()))
	title(waits, "the page")
	require.Equal(t, h.URL()+address, browser.Get(waits, chromedp.Location()))
	for _, r := range tab.Requests() {
		require.True(t, strings.HasPrefix(r, h.URL()), r)
	}
	for _, problem := range append(tab.Problems(), waits.Problems()...) {
		require.Contains(t, problem, "401", "of the addresses without a session only")
	}

	second := tab.Tab()
	second.Do(chromedp.Navigate(link))
	require.Contains(t, browser.Get(second, chromedp.Poll[string](`document.getElementById("state").textContent.includes("has been used") && "used"`, chromedp.WithPollingTimeout(0))), "used")
	second.Do(chromedp.Navigate(h.URL() + "/")) // as an address that a person types
	title(second, "the page")

	// A file on disk redirects to the login.
	third := tab.Tab()
	file := filepath.Join(t.TempDir(), "open.html")
	require.NoError(t, os.WriteFile(file, []byte("<!doctype html><meta http-equiv=refresh content='0;url="+h.Link()+"'>"), 0o600))
	third.Do(chromedp.Navigate("file://" + file))
	title(third, "the page")

	const hears = `new Promise((done) => { const s = new EventSource("ORIGIN/v1/events?from=1", {withCredentials: true});
		s.onmessage = (m) => { s.close(); done(JSON.parse(m.data)[0].kind) }; s.onerror = () => { s.close(); done("error") } })`
	await := func(tab *browser.Tab, script string) string {
		return browser.Get(tab, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	}
	require.Equal(t, "thread created", await(tab, strings.ReplaceAll(hears, "ORIGIN", "")))
	const writes = `fetch("ORIGIN/act", {method: "POST", credentials: "include"}).then((a) => String(a.status), () => "error")`
	require.Equal(t, "200", await(tab, strings.ReplaceAll(writes, "ORIGIN", "")))

	// Content is no document of the page: the tab stays where it was, and nothing in it runs.
	_ = chromedp.Do(third, chromedp.Navigate(h.URL()+"/content/"+block.ID.String())) // it is a download, which is no navigation
	require.NotEqual(t, "run", browser.Get(third, chromedp.Title()))

	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>evil</title><h1>evil</h1>")
	}))
	defer evil.Close()
	_, port, err := net.SplitHostPort(evil.Listener.Addr().String())
	require.NoError(t, err)
	before, err := main.Len(t.Context())
	require.NoError(t, err)
	for _, host := range []string{h.sessions.host, "localhost"} {
		other := tab.Tab()
		other.Do(chromedp.Navigate("http://" + host + ":" + port + "/"))
		atPage(other)
		require.Equal(t, "error", await(other, strings.ReplaceAll(hears, "ORIGIN", h.URL())), host)
		require.Contains(t, []string{"error", "403"}, await(other, strings.ReplaceAll(writes, "ORIGIN", h.URL())), host)
		framed := `new Promise((done) => { const f = document.createElement("iframe"); f.src = "` + h.URL() + `/"; f.onload = () => {
			let text = "refused"; try { text = f.contentDocument.title } catch {} done(text) }; document.body.append(f) })`
		require.Contains(t, []string{"refused", ""}, await(other, framed), host)
	}
	after, err := main.Len(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
	log := h.log.String()
	require.Equal(t, 1, strings.Count(log, "path=/act route=\"POST /act\" status=200"), log)
}
