package conversation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
)

// FuzzDecode reads any body, and whatever it reads is stored and read the same.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"role":"user"}`, `{"role":"user","content":"x"}`, `{"role":"other"}`,
		`{"role":"user","content":null}`, `{"role":"user","content":"\ud800"}`, `{"role":"user","content":[1],"a": 1 }`,
		`{"role":"user","content":"x","content":1}`, `{"role":"user","":0}`, "{\"role\":\"user\",\"\xff\":\"\xff\"}",
	} {
		f.Add("user", []byte(body))
	}
	f.Fuzz(func(t *testing.T, role string, body []byte) {
		m := decode(role, content.TypeJSON, body)
		item, err := m.item()
		if err != nil {
			require.Error(t, checkText("message", "role", role), "only the role can be wrong")
			return
		}
		require.True(t, m.Equal(decode(item.Role, item.Type, item.Body)))
	})
}

func FuzzReadMetadata(f *testing.F) {
	for _, data := range []string{
		``, `null`, `1`, `{}`, `{"name":"x"}`, `{"name":1}`, `{"name":"x","parentId":"main","parentMessageIndex":2}`,
		`{"updatedAt":"2026-01-10T00:00:00.001Z","other":[1, 2]}`, `{"parentMessageIndex":-1}`, `{"Name":"x"}`, `{"updatedat":null}`, `{"parentId":0}`,
		`{"createdAt":"2025-03-01T10:00:00+02:00","messages":3}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		was := readMetadata(data)
		b := &branch{Branch: Branch{ID: "id", ParentID: was.ParentID, ParentMessageIndex: was.ParentMessageIndex}}
		again, err := renamed(data, b, "new name", epoch)
		if err != nil {
			return
		}
		got := readMetadata(again)
		require.Equal(t, metadata{Name: "new name", ParentID: was.ParentID, ParentMessageIndex: was.ParentMessageIndex, UpdatedAt: &epoch, CreatedAt: was.CreatedAt}, got)
	})
}
