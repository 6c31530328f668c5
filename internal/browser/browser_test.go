package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
)

func TestBrowser(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'nonce-a'")
		w.Write([]byte(`<!doctype html><link rel="icon" href="data:,"><title>before</title><p>text</p>
<script nonce="a">document.title = "after"; console.error("lost", 3)</script>
<script>document.title = "refused"</script><script nonce="a">throw new Error("thrown")</script>`))
	}))
	defer server.Close()
	tab := browser.Open(t)
	tab.Do(chromedp.Navigate(server.URL), chromedp.WaitVisible(chromedp.CSS("p")))
	require.Equal(t, "after", browser.Get(tab, chromedp.Title()), "scripts run, and the policy is kept")
	require.Contains(t, tab.Requests(), server.URL+"/")
	for _, text := range []string{`"lost"`, "thrown", "Content Security Policy"} {
		said := func(problem string) bool { return strings.Contains(problem, text) }
		require.Eventually(t, func() bool { return slices.ContainsFunc(tab.Problems(), said) }, 2*time.Minute, time.Millisecond, text)
	}

	second := tab.Tab()
	second.Do(chromedp.Navigate(server.URL))
	require.Equal(t, "after", browser.Get(second, chromedp.Title()))
	require.Error(t, chromedp.Do(second, chromedp.Navigate("http://example.com/")), "nothing but this machine can be reached")
}
