package search_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

func TestNoByteStays(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	for _, window := range []int{30, 400, 0} {
		searched.WindowLimit = window
		dir := t.TempDir()
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
		require.NoError(t, err)
		x, err := search.Open(bg, store, dir, search.Options{})
		require.NoError(t, err)
		var gone []*lineage.Thread
		for i := range 3000 {
			text := secret(i)
			if i%2 == 0 {
				text = strings.ReplaceAll(text, "voynich", "staying")
			}
			thread, _ := newMain(t, store, lineage.User(text))
			if i%2 == 1 {
				gone = append(gone, thread)
			}
			if i%300 == 0 {
				require.NoError(t, x.Update(bg))
			}
		}
		require.NoError(t, x.Update(bg))
		for _, thread := range gone {
			require.NoError(t, thread.Delete(bg))
		}
		require.NotContains(t, collect(t, store).Removed, search.FileName)
		b, err := os.ReadFile(filepath.Join(dir, search.FileName))
		require.NoError(t, err)
		fmt.Println(window, len(b), bytes.Count(b, []byte("voynich")), bytes.Count(b, []byte("staying")))
		if i := bytes.Index(b, []byte("voynich")); i >= 0 {
			fmt.Printf("page %d: %q\n", i/4096, b[max(0, i-100):i+100])
		}
		require.NoError(t, x.Close())
		require.NoError(t, store.Close())
	}
}
