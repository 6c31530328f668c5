package follow

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
)

// oddPieces are inserted into session files.
var oddPieces = []string{
	`"`, `{"`, `[{"`, `{`, `[`, `,`, `:`, `\`, `"\`, `\u`, `\ud800`, "\x00", "\xff", "\xef\xbb\xbf", "\n", "\r\n", "\n\"\n", "\n{\"\n", `"x"` + "\n",
	"{}\n", "[]\n", "null\n", "7\n", `{"a":{"`, `{"type":"`, `{"type":"user","message":"`, `{"message":null}` + "\n", `{"parts":[null]}`,
	`{"type":"user","message":{"role":"user","content":null}}` + "\n", `{"timestamp":"","type":"response_item","payload":null}` + "\n", `{"content":[null,1,"",{}]}`,
}

// mutated returns a file that is cut off, or lacks or has some bytes, often at the beginning of a line.
func mutated(choose *rand.Rand, b []byte) []byte {
	for range choose.IntN(4) {
		at := choose.IntN(len(b) + 1)
		if end := bytes.IndexByte(b[at:], '\n'); end >= 0 && choose.IntN(2) == 0 {
			at += end + 1
		}
		before, after := bytes.Clone(b[:at]), b[at:]
		switch choose.IntN(4) {
		case 0:
			b = before
		case 1:
			b = append(before, after[min(len(after), choose.IntN(40)):]...)
		default:
			b = append(append(before, oddPieces[choose.IntN(len(oddPieces))]...), after...)
		}
	}
	return b
}

// The session files of all agents are damaged in any way. What is kept of them comes back byte for byte.
//
//test:norace
func TestMutatedFiles(t *testing.T) {
	const samples = "../archive/testdata/agents"
	kept := 0
	for i := range campaign.Rounds(3) {
		choose := rand.New(rand.NewPCG(campaign.Seed()+uint64(i), 1))
		h, store := newHome(t), memory(t)
		dir := filepath.Join(h.dir, "files")
		require.NoError(t, filepath.WalkDir(samples, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || choose.IntN(3) > 0 {
				return err
			}
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			relative, err := filepath.Rel(samples, path)
			require.NoError(t, err)
			to := filepath.Join(dir, relative)
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
			return os.WriteFile(to, mutated(choose, b), 0o600)
		}))
		o := h.options()
		o.From = []string{dir}
		once(t, store, o)
		for s, err := range Sources(bg, store) {
			require.NoError(t, err)
			if s.About.Rows {
				continue
			}
			var out bytes.Buffer
			require.NoError(t, s.Export(bg, &out), s.About.Path)
			file, err := os.ReadFile(s.About.Path)
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(file, out.Bytes()), s.About.Path)
			kept += out.Len()
		}
	}
	require.NotZero(t, kept)
}
