package pack

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/lineage-store/lineage/internal/varint"
)

// identity is a commit id and the first commit with it. Frames state ids after their
// payloads, which a pack does not store.
type identity struct{ commit, id uint64 }

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

// statedBy returns the id stated by a commit, or 0.
func statedBy(all []identity, commit uint64) uint64 {
	i, ok := slices.BinarySearchFunc(all, commit, func(x identity, n uint64) int { return cmp.Compare(x.commit, n) })
	if !ok {
		return 0
	}
	return all[i].id
}
