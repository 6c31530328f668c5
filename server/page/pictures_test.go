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
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/server/page"
)

// The pictures of the README and docs are of the page with the sample sessions. LINEAGE_UPDATE_GOLDEN=1 takes them again.
func TestPictures(t *testing.T) {
	s := newSite(t, page.Options{})
	const samples = "../../lineage/archive/testdata"
	imported := func(from ...string) {
		for _, path := range from {
			_, err := importer.Import(t.Context(), s.store, archive.Path(path), importer.Options{})
			require.NoError(t, err)
		}
	}
	address := func(source string) string {
		thread, err := s.store.FindThread(t.Context(), source)
		require.NoError(t, err)
		return s.url + "/t/" + thread.ID().String()
	}
	imported(samples+"/agents", samples+"/claude-code-log", samples+"/claude-code-spotter")
	b := s.tab()
	b.Do(chromedp.EmulateViewport(1160, 640))
	for _, view := range []struct {
		name, scheme string
		address      func() string
	}{
		{"conversations", "light", func() string { return s.url + "/" }},
		{"conversation", "light", func() string { return address("01a21e45-f55e-755b-8a3a-83892853cb0e") + "?at=1" }},
		{"graph", "dark", func() string {
			imported("../../testdata/demo/oasst-trees.jsonl.gz")
			return address("8d133a5a-f25c-4738-ae22-8a4901dfc3db") + "/graph"
		}},
	} {
		_, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.scheme}},
		})
		require.NoError(t, err)
		open(b, view.address())
		until(b, `document.querySelector("#live.on")`)
		shot := browser.Get(b, chromedp.CaptureScreenshot())
		path := filepath.Join("../../docs/pictures", view.name+".png")
		if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, shot, 0o644))
		}
		is, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, picture := range [][]byte{shot, is} { // letters and times differ from one machine to another
			config, err := png.DecodeConfig(bytes.NewReader(picture))
			require.NoError(t, err)
			require.Equal(t, [2]int{1160, 640}, [2]int{config.Width, config.Height}, view.name)
		}
	}
	require.Empty(t, b.Problems())
}
