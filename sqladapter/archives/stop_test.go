package archives_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

// A reader yields nothing after its caller has stopped, wherever that is, and whether the context has ended or not.
func TestStopReading(t *testing.T) {
	for name, statements := range map[string][]string{
		"cursor": {cursorRows}, "goose": {gooseSchema, gooseRows}, "crush": {crushSchema, crushRows}, "llm": {llmSchema, llmRows}, "langgraph": {graphSchema, graphRows},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "chats.db")
			execute(t, path, statements...)
			all := 0
			for canceled := range 2 {
				for most := 1; ; most++ {
					ctx, cancel := context.WithCancel(bg)
					read := 0
					for range archive.Read(ctx, archive.Path(path), archive.ReadOptions{Formats: archives.Formats(), Format: name}) {
						if read++; read == most {
							if canceled == 1 {
								cancel()
							}
							break
						}
					}
					cancel()
					if read < most {
						break
					}
					all++
				}
			}
			require.GreaterOrEqual(t, all, 2)
		})
	}
}
