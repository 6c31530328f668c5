package layout

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/lineage-store/lineage/internal/varint"
)

// Identity is a commit id and the first commit with it. Frames state ids after their
// payloads, which a pack does not store.
type Identity struct{ Commit, ID uint64 }

// AppendIdentities writes the start of the table: the number of ids, and for each the
// difference between its commit and the one before, and its 8 bytes.
func AppendIdentities(dst []byte, first uint64, all []Identity) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, x := range all {
		dst = binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, x.Commit-first), x.ID)
		first = x.Commit
	}
	return dst
}

// ReadIdentities reads ids and returns the bytes after them.
func ReadIdentities(b []byte, h Header) (all []Identity, rest []byte, err error) {
	v := varint.Reader{Rest: b}
	commit := h.FirstCommit
	for i := range v.AtMost(uint64(len(b)) / 9) {
		step := v.AtMost(h.LastCommit)
		if v.Bad || i > 0 && step == 0 || len(v.Rest) < 8 {
			return nil, nil, ErrTable
		}
		commit += step
		x := Identity{commit, binary.LittleEndian.Uint64(v.Rest)}
		if v.Rest = v.Rest[8:]; commit > h.LastCommit || x.ID == 0 {
			return nil, nil, ErrTable
		}
		all = append(all, x)
	}
	if v.Bad {
		return nil, nil, ErrTable
	}
	return all, v.Rest, nil
}

// StatedBy returns the id stated by a commit, or 0.
func StatedBy(all []Identity, commit uint64) uint64 {
	i, ok := slices.BinarySearchFunc(all, commit, func(x Identity, n uint64) int { return cmp.Compare(x.Commit, n) })
	if !ok {
		return 0
	}
	return all[i].ID
}
