package sealed

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/lineage-store/lineage/internal/varint"
)

const (
	// maxUses limits the uses among which series are found, and so the memory for it: at most some 100 MB. The pieces of the
	// whole table take 40 bytes each in addition.
	maxUses = 512 << 10
	// mixedCost is about what a use more takes in a block with pointers, in quarters of a byte.
	mixedCost = 5
)

// usesWriter collects uses whose keys follow each other, finds series among them, and stores these and what is left.
type usesWriter struct {
	limit     int // of uses that are collected
	mixed     int // cost of a use in a block with pointers
	shape     withSeries
	dicts     *dictionaries
	store     func(key, value []byte) error
	subjects  [][1 + subjectSize]byte
	base      uint64 // of the commits
	all       []use
	others    []Entry // with keys or values of other forms, between these
	plain     []byte  // the subject whose uses were too many
	sequences uint32
	pieces    []piece

	key, value []byte // of an entry to store
}

// add adds an entry: a use of a subject, another entry of a subject, or an entry without a subject, before which what was
// collected is stored.
func (u *usesWriter) add(key, value []byte) error {
	if !u.shape.hasSubject(key) {
		if err := u.flush(); err != nil {
			return err
		}
		return u.store(key, value)
	}
	subject := [1 + subjectSize]byte(key)
	if err := u.makeSpace(subject); err != nil {
		return err
	}
	if bytes.Equal(subject[:], u.plain) {
		return u.store(key, value)
	}
	if !u.isLast(subject) {
		u.subjects = append(u.subjects, subject)
	}
	parsed, ok, err := u.use(key, value)
	switch {
	case err != nil:
		return err
	case ok:
		parsed.subject = uint32(len(u.subjects) - 1)
		u.all = append(u.all, parsed)
	default:
		u.others = append(u.others, Entry{bytes.Clone(key), bytes.Clone(value)})
	}
	return nil
}

// isLast reports whether a subject is that of the entry collected last.
func (u *usesWriter) isLast(subject [1 + subjectSize]byte) bool {
	n := len(u.subjects)
	return n > 0 && u.subjects[n-1] == subject
}

// makeSpace stores what was collected if it is near the limit before the first entry of a subject, so that most subjects are
// not divided, or if it reaches the limit. The subject whose entries reach it becomes the plain one.
func (u *usesWriter) makeSpace(subject [1 + subjectSize]byte) error {
	collected := len(u.all) + len(u.others)
	if begins := len(u.subjects) > 0 && !u.isLast(subject); begins {
		if collected >= u.limit/8*7 {
			return u.flush()
		}
		return nil
	}
	if collected < u.limit {
		return nil
	}
	u.plain = bytes.Clone(subject[:])
	return u.flush()
}

// use reads a use. ok is false if the entry has another form.
func (u *usesWriter) use(key, value []byte) (parsed use, ok bool, err error) {
	if len(key) != useSize {
		return parsed, false, nil
	}
	commit := binary.BigEndian.Uint64(key[1+subjectSize:])
	if len(u.all) == 0 {
		u.base = commit - 1<<31
	}
	position, n := varint.Minimal(value)
	if commit -= u.base; commit > math.MaxUint32 || n == 0 || position == 0 || position > math.MaxUint32 || len(value) < n+idSize {
		return parsed, false, nil
	}
	id, rest := [idSize]byte(value[n:]), value[n+idSize:]
	number, n := varint.Minimal(rest)
	if n == 0 || n < len(rest) || number > math.MaxUint16 {
		return parsed, false, nil
	}
	_, kind := u.shape.Uses()
	run, ok, err := u.dicts.rank(kind, &id)
	parsed = use{
		commit: uint32(commit), place: binary.BigEndian.Uint32(key[useSize-4:]),
		position: uint32(position), run: uint32(run), number: uint16(number),
	}
	return parsed, ok && run <= math.MaxUint32, err
}

// flush stores the uses that were collected.
func (u *usesWriter) flush() error {
	if len(u.subjects) == 0 {
		return nil
	}
	t := track{uses: u.all, base: u.base, number: u.sequences, pointers: make([]subjectPlaces, len(u.subjects))}
	t.build()
	pieces, sequences := t.cut(u.mixed)
	u.pieces = append(u.pieces, pieces...)
	for i := range u.subjects {
		for n, p := range t.pointersOf(uint32(i), sequences) {
			u.key, u.value = appendUseKey(u.key[:0], u.subjects[i][:], 0, uint32(n)), p.appendValue(u.value[:0])
			if err := u.put(); err != nil {
				return err
			}
		}
		if err := u.storeUses(i); err != nil {
			return err
		}
	}
	if err := u.storeOthers(nil); err != nil {
		return err
	}
	u.sequences += uint32(len(sequences))
	u.subjects, u.all, u.others = u.subjects[:0], t.uses[:0], nil
	return nil
}

// storeUses stores the uses of the i-th subject that are in no series. They are the first that were not stored.
func (u *usesWriter) storeUses(i int) error {
	_, kind := u.shape.Uses()
	for ; len(u.all) > 0 && u.all[0].subject == uint32(i); u.all = u.all[1:] {
		use := &u.all[0]
		if use.series {
			continue
		}
		run, err := u.dicts.id(kind, uint64(use.run))
		if err != nil {
			return err
		}
		u.key = appendUseKey(u.key[:0], u.subjects[i][:], u.base+uint64(use.commit), use.place)
		u.value = append(binary.AppendUvarint(u.value[:0], uint64(use.position)), run[:]...)
		u.value = binary.AppendUvarint(u.value, uint64(use.number))
		if err := u.put(); err != nil {
			return err
		}
	}
	return nil
}

// put stores the entry of key and value, after the others that come before it.
func (u *usesWriter) put() error {
	if err := u.storeOthers(u.key); err != nil {
		return err
	}
	return u.store(u.key, u.value)
}

// storeOthers stores the other entries before a key, or all for nil.
func (u *usesWriter) storeOthers(key []byte) error {
	for len(u.others) > 0 && (key == nil || bytes.Compare(u.others[0].Key, key) < 0) {
		if err := u.store(u.others[0].Key, u.others[0].Value); err != nil {
			return err
		}
		u.others = u.others[1:]
	}
	return nil
}

// storePieces stores the pieces of all sequences.
func (u *usesWriter) storePieces() error {
	slices.SortFunc(u.pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.commit, b.commit), cmp.Compare(a.place, b.place), cmp.Compare(a.first, b.first))
	})
	_, kind := u.shape.Uses()
	var key, value []byte
	for _, p := range u.pieces {
		run, err := u.dicts.id(kind, uint64(p.run))
		if err != nil {
			return err
		}
		key = appendPieceKey(key[:0], p.sequence, p.commit, p.place, p.first)
		value = binary.AppendUvarint(binary.AppendUvarint(value[:0], uint64(p.length)), p.position)
		if err := u.store(key, append(value, run[:]...)); err != nil {
			return err
		}
	}
	return nil
}
