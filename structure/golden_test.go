package structure_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure"
)

// requireGolden compares text with a file of test data, or rewrites the file if
// LINEAGE_UPDATE_GOLDEN is set. A difference means that this program no longer
// agrees with other or older stores.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestGoldenCommit(t *testing.T) {
	want := sampleCommit()
	payload, offsets, err := new(structure.Encoder).Encode(want)
	require.NoError(t, err)
	requireGolden(t, "commit", dump(want, payload, offsets))

	// Commits of older programs are read without the current encoder.
	text, err := os.ReadFile(filepath.Join("testdata", "commit.golden"))
	require.NoError(t, err)
	got, err := structure.DecodeCommit(undump(t, string(text)))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestGoldenSampleHasEveryKind(t *testing.T) {
	kinds := map[structure.Kind]bool{}
	for _, r := range sampleCommit().Records {
		kinds[r.Kind()] = true
	}
	for k := structure.KindBlock; k <= structure.KindRemnant; k++ {
		require.True(t, kinds[k], "%v", k)
	}
}

// dump writes a payload in hex, record by record.
func dump(c *structure.Commit, payload []byte, offsets []int) string {
	var b strings.Builder
	section := func(title string, bytes []byte) {
		fmt.Fprintf(&b, "# %s\n", title)
		for len(bytes) > 0 {
			n := min(len(bytes), 16)
			fmt.Fprintf(&b, "% x\n", bytes[:n])
			bytes = bytes[n:]
		}
	}
	section("version, time", payload[:offsets[0]])
	for i, start := range offsets {
		end := len(payload)
		if i+1 < len(offsets) {
			end = offsets[i+1]
		}
		section(fmt.Sprintf("byte %d: %v", start, c.Records[i].Kind()), payload[start:end])
	}
	return b.String()
}

// undump is the inverse of dump.
func undump(t *testing.T, text string) []byte {
	var payload []byte
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		b, err := hex.DecodeString(strings.Join(strings.Fields(line), ""))
		require.NoError(t, err)
		payload = append(payload, b...)
	}
	return payload
}
