package agents

import (
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/archive"
)

// maxBeside is the maximum size of a file that is read beside an input.
const maxBeside = 64 << 20

// beside returns the content of a JSON file in the folder of an input. It returns nil if there is no such file, if it
// is a link, or if the input is in an archive.
func beside(in *archive.Input, name string) []byte {
	if in.DiskPath() == "" || name != filepath.Base(name) {
		return nil
	}
	path := filepath.Join(filepath.Dir(in.DiskPath()), name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, err := vfs.ReadFile(path, maxBeside)
	if err != nil || rawjson.Check(b) != nil {
		return nil
	}
	return b[rawjson.SkipSpace(b, 0):]
}
