package pack

import (
	"encoding/binary"
	"slices"

	"github.com/lineage-store/lineage/internal/varint"
)

// identity is a commit id and the first commit with it. Frames state ids after their
// payloads, which a pack does not store.
type identity struct{ commit, id uint64 }

// identify records the id stated by a frame.
func (w *Writer) identify(f Frame) {
	if f.ID != 0 {
		w.identities = append(w.identities, identity{f.Number, f.ID})
	}
}

// appendIdentities writes the start of the table: the number of ids, and for each the
// difference between its commit and the one before, and its 8 bytes.
func appendIdentities(dst []byte, first uint64, all []identity) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, x := range all {
		dst = binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, x.commit-first), x.id)
		first = x.commit
	}
	return dst
}

// readIdentities reads ids and returns the bytes after them.
func readIdentities(b []byte, h Header) (all []identity, rest []byte, err error) {
	v := varint.Reader{Rest: b}
	commit := h.FirstCommit
	for i := range v.AtMost(uint64(len(b)) / 9) {
		step := v.AtMost(h.LastCommit)
		if v.Bad || i > 0 && step == 0 || len(v.Rest) < 8 {
			return nil, nil, errTable
		}
		commit += step
		x := identity{commit, binary.LittleEndian.Uint64(v.Rest)}
		if v.Rest = v.Rest[8:]; commit > h.LastCommit || x.id == 0 {
			return nil, nil, errTable
		}
		all = append(all, x)
	}
	if v.Bad {
		return nil, nil, errTable
	}
	return all, v.Rest, nil
}

// idFrom returns the id stated by a commit, or 0. The table must have been read.
func (p *File) idFrom(commit uint64) uint64 {
	i, ok := slices.BinarySearchFunc(p.identities, commit, func(x identity, n uint64) int {
		switch {
		case x.commit < n:
			return -1
		case x.commit > n:
			return 1
		}
		return 0
	})
	if !ok {
		return 0
	}
	return p.identities[i].id
}
