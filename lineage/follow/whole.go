package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// maxWhole is the size in bytes of the largest file that is recorded as a whole.
const maxWhole = 256 << 20

// recordWhole records a session file that was imported as a whole, so that it can be restored byte for byte. A file
// that has changed since is imported again. again is set if another process recorded it meanwhile.
func (r *run) recordWhole(ctx context.Context, f *file, t *taking) (again bool, err error) {
	ending := filepath.Ext(f.path)
	if f.folder.agent.Name == "" || len(t.ids) != 1 || len(t.stored) != 1 || ending != ".json" && ending != ".jsonl" || f.now.size > maxWhole {
		return false, nil
	}
	raw, err := vfs.ReadFile(f.path, maxWhole)
	if err != nil || int64(len(raw)) != f.now.size {
		return false, err
	}
	found, sum, err := r.recorded(ctx, f, bytes.NewReader(raw), f.now)
	if err != nil || sum != nil && found.Recorded.Bytes == f.now.size {
		return false, err
	}
	known, rest := found, raw
	if sum != nil && ending == ".jsonl" && raw[found.Recorded.Bytes-1] == '\n' {
		rest = raw[found.Recorded.Bytes:]
	} else {
		known, sum = nil, sha256.New()
	}
	recorder := record(r.store, r.options.Machine, r.sourceOf(f), known, sum)
	if known == nil && found != nil {
		switch again, err := recordAgain(ctx, r.store, r.options.Machine, r.sourceOf(f), found); {
		case err == nil:
			recorder = again
		case errors.Is(err, lineage.ErrErased):
			return false, nil
		case errors.Is(err, lineage.ErrCorrupt), errors.Is(err, lineage.ErrNotFound):
			recorder.was = found.tip // it starts afresh
		default:
			return false, err
		}
	}
	recorder.seen, recorder.whole = true, true
	for part := range parts(rest, ending == ".jsonl") {
		recorder.add(ctx, t.ids[0], t.branchOf(t.ids[0]), []importer.Line{{RawLine: archive.RawLine{Raw: part}}})
	}
	if err = recorder.flush(ctx); isOvertaken(err) {
		return true, nil
	}
	return false, err
}
