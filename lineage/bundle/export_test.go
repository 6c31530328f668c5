package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/structure"
)

// Entries describes what is in a bundle.
func Entries(b []byte) (all []string, err error) {
	in, err := newReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer in.close()
	for {
		tag, e, err := in.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if tag == entryRun {
			p, _ := decodePiece(e)
			all = append(all, fmt.Sprintf("piece %+v", p))
			continue
		}
		if tag == entryLeftKey {
			all = append(all, fmt.Sprintf("left %x", e))
			continue
		}
		c, err := structure.DecodeCommit(e)
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprintf("%d at %v", tag, c.Time))
		for _, r := range c.Records {
			if c, ok := r.(*structure.Chunk); ok {
				r = &structure.Chunk{Key: c.Key}
			}
			if b, ok := r.(*structure.Block); ok {
				r = &structure.Block{Block: b.Block, Tree: b.Tree}
			}
			all = append(all, fmt.Sprintf("  %v %+v", r.Kind(), r))
		}
	}
}
