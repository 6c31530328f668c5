package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A message has the same large file twice, which is also its text; once new and once known.
func TestLargeAttachmentTwice(t *testing.T) {
	s := storetest.New(t)
	large := strings.Repeat("0123456789abcdef", 5000)
	for i := range 2 {
		attachment := fmt.Sprintf(`{"file_name":"a.txt","file_type":"txt","extracted_content":%q}`, large)
		small := `{"file_name":"b.txt","file_type":"txt","extracted_content":"small"}`
		line := fmt.Sprintf(`[{"uuid":"c%d","name":"n","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","chat_messages":[`+
			`{"uuid":"m%d","text":%q,"sender":"human","created_at":"2026-01-01T00:00:00Z","attachments":[%s,%s,%s]}]}]`, i, i, large, attachment, attachment, small)
		report, err := importer.Import(t.Context(), s, archive.Stream("", strings.NewReader(line)), importer.Options{Format: "claude"})
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
		thread, err := s.FindThread(t.Context(), fmt.Sprint("c", i))
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		entries, err := main.All(t.Context())
		require.NoError(t, err)
		require.Len(t, entries, 4)
		text, err := s.Text(t.Context(), entries[0])
		require.NoError(t, err)
		require.True(t, large == text, "the message has the files, and does not say them")
		same := 0
		for _, p := range entries[0].Pieces {
			if p.Content == entries[1].Content {
				same++
			}
		}
		require.Equal(t, 3, same, "what is said and what a file has is there once")
		for k, e := range entries[1:] {
			body, err := s.Original(t.Context(), e)
			require.NoError(t, err)
			want := large
			if k == 2 {
				want = "small"
			}
			require.True(t, want == string(body), k)
			require.Equal(t, "text/plain", e.Type)
		}
		require.Equal(t, lineage.Asset, entries[1].Kind)
	}
}
