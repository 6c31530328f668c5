package archives_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

// Any file is read or refused, and the result is valid.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	small := "PRAGMA page_size = 512;"
	execute(f, dir+"/graph", small+graphSchema)
	addCheckpoints(f, dir+"/graph", weather()[:2]...)
	execute(f, dir+"/llm", small+llmSchema, llmRows)
	execute(f, dir+"/tree", small+llmTree)
	execute(f, dir+"/opencode", small+openCodeSchema, `INSERT INTO session (id) VALUES ('s'); INSERT INTO message VALUES ('m', 's', 1, 1, '{"role":"user"}'); INSERT INTO part VALUES ('p', 'm', 's', 1, 1, '{"type":"text","text":"x"}')`)
	execute(f, dir+"/goose", small+gooseSchema, gooseRows)
	execute(f, dir+"/crush", small+crushSchema, crushRows)
	execute(f, dir+"/cursor", small+cursorRows)
	for _, name := range []string{"graph", "llm", "tree", "opencode", "goose", "crush", "cursor"} {
		b, err := os.ReadFile(dir + "/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		for _, format := range archives.Formats() {
			format.Detect(archive.Head{Bytes: b[:min(len(b), archive.HeadSize)]})
			for c, err := range format.Read(bg, archive.NewInput("in", bytes.NewReader(b))) {
				var d *archive.Damage
				if err != nil {
					require.ErrorAs(t, err, &d)
					continue
				}
				for _, n := range c.Nodes {
					require.True(t, n.Metadata == nil || json.Valid(n.Metadata), "%q", n.Metadata)
					require.True(t, n.Type != "application/json" || json.Valid(n.Body), "%q", n.Body)
				}
			}
		}
	})
}
