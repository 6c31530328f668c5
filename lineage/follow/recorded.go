package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/lineage-store/lineage/lineage"
)

func (r *run) sourceOf(f *file) SourceOf {
	return SourceOf{Machine: r.options.Machine.Name, Agent: f.agent(), Path: RecordedPath(f.path)}
}

// recorded returns the stored source of a file, or nil, and its hash if the file begins with it.
func (r *run) recorded(ctx context.Context, f *file, opened io.ReaderAt, now stamp) (found *Source, sum hash.Hash, err error) {
	found, err = FindSource(ctx, r.store, r.options.Machine.ID, RecordedPath(f.path))
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil || found.Recorded.Bytes > now.size || found.Recorded.Bytes == 0 {
		return found, nil, err
	}
	sum = sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(opened, 0, found.Recorded.Bytes)); err != nil {
		return nil, nil, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != found.Recorded.Digest {
		return found, nil, nil
	}
	return found, sum, nil
}
