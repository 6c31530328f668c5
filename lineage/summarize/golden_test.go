package summarize

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// Summaries are stored under their hash, so a history should give the same summary in every version
// that does not change it deliberately.
func TestGoldenSummaries(t *testing.T) {
	for _, name := range []string{"coding", "travel", "multilingual"} {
		t.Run(name, func(t *testing.T) {
			passages := conversation(t, name)
			got, err := Extractive{MaxTokens: 250}.Summarize(context.Background(), passages)
			require.NoError(t, err)
			require.Equal(t, "extractive", got.Model)
			require.LessOrEqual(t, lineage.EstimateTokens(got.Text), 250)
			requireGolden(t, name, got.Text+"\n")
		})
	}
}
