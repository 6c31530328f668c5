package pack

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every byte of a pack is covered by a checksum that Open or CheckParts checks.
func TestCheckPartsMissesNoByte(t *testing.T) {
	for _, name := range []string{"fast", "dense", "chapters"} {
		t.Run(name, func(t *testing.T) {
			dump, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
			require.NoError(t, err)
			whole := undump(t, string(dump))
			check := func(b []byte) error {
				p, err := Open(&memory{b}, int64(len(b)), name, NewCache(1<<20))
				if err != nil {
					return err
				}
				return p.CheckParts(t.Context())
			}
			require.NoError(t, check(whole))
			for at := range whole {
				b := slices.Clone(whole)
				b[at] ^= 0x10
				require.Error(t, check(b), "byte %d of %d", at, len(b))
			}
		})
	}
}
