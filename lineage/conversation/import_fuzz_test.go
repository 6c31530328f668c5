package conversation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// FuzzBranchFile reads any file. What it takes for a branch can be imported, and
// importing it again adds nothing.
func FuzzBranchFile(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `null`, `{"id":"main","name":"Main conversation","messages":[]}`,
		`{"id":"b","name":"B","parentId":"main","parentMessageIndex":1,"messages":[{"role":"user","content":"hi"}],"createdAt":"2025-03-01T10:00:00.000Z"}`,
		`{"id":"b","name":" ","parentId":null,"parentMessageIndex":null,"messages":[{"role":"assistant","content":null,"tool_calls":[]}],"metadata":{"a":[1e400]}}`,
		`{"id":"../b","messages":[]}`, `{"id":"b","ID":"c","messages":[{"role":"user","Role":"x","content":"\ud800"}]}`,
		"{\"id\":\"b\",\"messages\":[{\"role\":\"user\",\"\xff\":1}]}", `{"id":"b","id":"main","messages":[{}]}`,
		`{"id":"b","messages":[{"role":"user","content":"a","role":"tool"}],"updatedAt":"0001-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBranchFile(data)
		if err != nil {
			require.ErrorIs(t, err, ErrBadFile)
			return
		}
		root := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(root, "s"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, "s", "file.json"), data, 0o644))
		s, err := lineage.Open(t.Context(), t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer s.Close()
		for again := range 2 {
			report, err := Import(t.Context(), s, root, ImportOptions{})
			require.NoError(t, err)
			require.Equal(t, 1, report.Branches)
			require.Equal(t, len(b.messages)*(1-again), report.NewMessages)
		}
		c, err := Open(t.Context(), s, "s", Options{})
		require.NoError(t, err)
		messages, err := c.MessagesOf(t.Context(), b.id)
		require.NoError(t, err)
		require.Len(t, messages, len(b.messages))
		for i := range messages {
			require.True(t, messages[i].Equal(b.messages[i]))
		}
		_, err = c.Branches(t.Context())
		require.NoError(t, err)
	})
}
