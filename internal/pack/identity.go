package pack

import (
	"encoding/binary"
	"slices"
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
	v := varints{rest: b}
	commit := h.FirstCommit
	for i := range v.next(uint64(len(b)) / 9) {
		step := v.next(h.LastCommit)
		if v.bad || i > 0 && step == 0 || len(v.rest) < 8 {
			return nil, nil, errTable
		}
		commit += step
		x := identity{commit, binary.LittleEndian.Uint64(v.rest)}
		if v.rest = v.rest[8:]; commit > h.LastCommit || x.id == 0 {
			return nil, nil, errTable
		}
		all = append(all, x)
	}
	if v.bad {
		return nil, nil, errTable
	}
	return all, v.rest, nil
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
