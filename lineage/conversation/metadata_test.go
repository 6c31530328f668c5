package conversation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

var epoch = time.Date(2026, 1, 10, 0, 0, 0, int(time.Millisecond), time.UTC)

// Metadata is on disk: these bytes must not change.
func TestMetadataForm(t *testing.T) {
	require.Equal(t, `{"name":"Idea"}`, string(newMetadata("Idea", "", 0)))
	require.Equal(t, `{"name":"Idea","parentId":"main"}`, string(newMetadata("Idea", "main", 0)))
	data := newMetadata("Idea", "main", 2)
	require.Equal(t, `{"name":"Idea","parentId":"main","parentMessageIndex":2}`, string(data))
	again, err := renamed(data, &branch{Branch: Branch{ParentID: "main", ParentMessageIndex: 2}}, "New", epoch)
	require.NoError(t, err)
	require.Equal(t, `{"name":"New","parentId":"main","parentMessageIndex":2,"updatedAt":"2026-01-10T00:00:00.001Z"}`, string(again))
}

// feature: branches/rename
func TestRenamedKeepsWhatOthersWrote(t *testing.T) {
	again, err := renamed([]byte(`{"theirs":[1, 2.50],"name":"Old"}`), &branch{}, "New", epoch)
	require.NoError(t, err)
	require.Equal(t, `{"theirs":[1, 2.50],"name":"New","updatedAt":"2026-01-10T00:00:00.001Z"}`, string(again))
	for _, data := range []string{`[]`, `1`, `null`, `{`} {
		_, err := renamed([]byte(data), &branch{Branch: Branch{ID: "x"}}, "New", epoch)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
}
