package engine_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var renderers = map[string]engine.Renderer{
	"xml":  engine.XMLRenderer{},
	"md":   engine.MarkdownRenderer{},
	"toml": engine.TOMLRenderer{},
	"toon": engine.TOONRenderer{},
}

// feature: fragment/render
// feature: fragment/nested
func TestRenderGolden(t *testing.T) {
	for format, r := range renderers {
		for _, c := range renderCases {
			t.Run(format+"/"+c.name, func(t *testing.T) {
				got, err := r.Render(c.fragments...)
				require.NoError(t, err)
				path := filepath.Join("testdata", c.name+"."+format)
				if *update {
					require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(want), got)
			})
		}
	}
}
