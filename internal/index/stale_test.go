package index

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// elementAt is one element of a bbolt leaf page.
type elementAt struct {
	pos    int // offset of its position field in the file
	offset int // of its key
	low    string
	leaf   string // the whole value
}

// elements returns the elements of the pages for which keep returns true.
func (v *victim) elements(keep func(page uint64) bool) (all []elementAt) {
	size := pageSize(v.clean)
	for page := 2 * size; page < len(v.clean); page += size {
		b := v.clean[page:]
		if binary.NativeEndian.Uint64(b) != uint64(page/size) || binary.NativeEndian.Uint16(b[8:]) != flagLeaf || !keep(uint64(page/size)) {
			continue
		}
		for i := range int(binary.NativeEndian.Uint16(b[10:])) {
			at := pageHeader + i*elementSize
			pos, ksize, vsize := int(binary.NativeEndian.Uint32(b[at+4:])), int(binary.NativeEndian.Uint32(b[at+8:])), int(binary.NativeEndian.Uint32(b[at+12:]))
			start := at + pos
			if binary.NativeEndian.Uint32(b[at:]) != 0 || ksize == 0 || b[start] != 'L' {
				continue
			}
			all = append(all, elementAt{
				pos: page + at + 4, offset: page + start,
				low: string(b[start+1 : start+ksize]), leaf: string(b[start+ksize : start+ksize+vsize]),
			})
		}
	}
	return all
}

// The position of an element is damaged so that it points to an older leaf of
// the same range, complete and with a valid checksum, in a page that is now
// free. One byte can be enough for that.
func TestStaleLeaf(t *testing.T) {
	v := newVictim(t, false)
	f, err := os.OpenFile(v.path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	free, err := checkFile(f)
	require.NoError(t, err)
	isFree := func(page uint64) bool { return free.free[page/64]&(1<<(page%64)) != 0 }
	past := map[string][]elementAt{}
	for _, e := range v.elements(isFree) {
		past[e.low] = append(past[e.low], e)
	}
	tried := 0
	for _, e := range v.elements(func(page uint64) bool { return !isFree(page) }) {
		for _, old := range past[e.low] {
			if len(old.leaf) != len(e.leaf) || old.leaf == e.leaf || old.offset < e.offset {
				continue
			}
			tried++
			pos := binary.NativeEndian.AppendUint32(nil, binary.NativeEndian.Uint32(v.clean[e.pos:])+uint32(old.offset-e.offset))
			_, err := f.WriteAt(pos, int64(e.pos))
			require.NoError(t, err)

			db, err := Open(v.path, Options{})
			require.NoError(t, err)
			_, _, err = db.Get([]byte(e.low))
			require.ErrorContains(t, err, errStale.Error())
			s := db.Snapshot()
			for _, err = range s.Scan([]byte(e.low), nil) {
				if err != nil {
					break
				}
			}
			require.ErrorContains(t, err, errStale.Error())
			_, _, err = s.Last(nil, []byte(e.low+"\x00"))
			require.ErrorContains(t, err, errStale.Error())
			s.Close()
			db.Apply(at(100), []Entry{{Key: []byte(e.low), Value: []byte("new")}})
			require.ErrorContains(t, db.Checkpoint(), errStale.Error())
			require.Error(t, db.Close())

			_, err = f.WriteAt(v.clean[e.pos:e.pos+4], int64(e.pos))
			require.NoError(t, err)
			if tried == 20 {
				return
			}
		}
	}
	require.Positive(t, tried, "the file has no older leaf to point to")
}
