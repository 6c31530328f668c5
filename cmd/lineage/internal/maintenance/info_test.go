package maintenance

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// A store that is not in a directory, such as one on a server, is open in no other process.
func TestInfoOfAStoreWithoutADirectory(t *testing.T) {
	var out bytes.Buffer
	a := app.New(nil, &out, &bytes.Buffer{}, func(string) string { return "" })
	s := &app.OpenStore{App: a, Name: "on a server", Store: lineagetest.New(t, lineage.Options{})}
	require.NoError(t, runInfo(t.Context(), s))
	require.NoError(t, a.Flush())
	require.Contains(t, out.String(), "on a server")
	require.NotContains(t, out.String(), "process")
}
