package columns

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// setPlaceholders sets bodies and ids that are not decoded yet: empty bodies, and
// placeholder ids that distinguish contents.
func (x *Commit) setPlaceholders() {
	var names []content.ID
	if x.Rest != nil {
		names = slices.Clone(earlier)
	}
	used := 0
	for i, r := range x.Records {
		switch r := r.(type) {
		case *structure.Block:
			if x.Bodies[i] >= 0 {
				r.ID, r.Body = placeholder(placeholderBlock, i), noBody
			}
			names = append(names, r.ID)
		case *structure.Span:
			var named [3]*content.ID
			for k := range r.Usages {
				for _, id := range r.Usages[k].Named(named[:0]) {
					back := x.Content[used].Back
					if back < 0 {
						names, back = append(names, placeholder(placeholderName, used)), 0
					}
					*id = names[len(names)-1-back]
					used++
				}
			}
		}
	}
}

// measure computes the offsets of the records in the payload, and its size.
func (x *Commit) measure(e *structure.Encoder) error {
	if x.Verbatim {
		x.Payload = x.Sizes[0]
		return nil
	}
	c := &structure.Commit{Time: time.UnixMilli(x.Millis).UTC(), Records: x.Records}
	if x.Rest != nil {
		payload, offsets, err := e.EncodeRest(c, x.Rest.last, earlier)
		if err == nil {
			x.measured(payload, offsets, x.Rest.at)
		}
		return err
	}
	payload, offsets, err := e.Encode(c)
	if err == nil {
		x.measured(payload, offsets, 0)
	}
	return err
}

// measured sets offsets and size from a payload without bodies. moved is the size of
// everything before it.
func (x *Commit) measured(payload []byte, offsets []int, moved int) {
	x.offsets = make([]int, len(offsets))
	for i, at := range offsets {
		x.offsets[i] = at + moved
		if size := int(x.Sizes[i]); size > 0 {
			end := len(payload)
			if i+1 < len(offsets) {
				end = offsets[i+1]
			}
			moved += grown(end-at, size)
		}
	}
	x.Payload = int64(len(payload) + moved)
}

// noBody is a body that is not decoded: empty, but not nil, which would mean erased.
var noBody = []byte{}

// Kinds of placeholder ids, for ids that are not decoded yet.
const (
	placeholderBlock = 0xfc + iota
	placeholderName
	placeholderEarlier
)

// placeholder returns a placeholder id. The first byte differs as in ids of content, because structure.Names finds ids by it.
func placeholder(kind byte, i int) content.ID {
	return content.ID{0: byte(i), 1: byte(i >> 8), 2: byte(i >> 16), 3: byte(i >> 24), 31: kind}
}

// earlier are placeholders for the ids named before the rest of a commit.
var earlier = func() (ids []content.ID) {
	for i := range structure.NamesBack {
		ids = append(ids, placeholder(placeholderEarlier, i))
	}
	return slices.Clip(ids)
}()

// grown returns by how much a record grows when its body of a size is added.
func grown(record, size int) int {
	for v := 1; ; v++ {
		if inner := record - 1 - v; varint.Len(uint64(inner)) == v {
			return size + varint.Len(uint64(inner+size)) - v
		} else if inner < 0 {
			return size // no record
		}
	}
}

// Places returns the original offsets of the records in the payload. It is safe for concurrent use.
func (x *Commit) Places() ([]int, error) {
	x.once.Do(func() {
		if x.offsets == nil {
			var e structure.Encoder
			x.err = x.measure(&e)
		}
	})
	switch {
	case x.err != nil:
		return nil, x.err
	case x.Offsets != nil:
		return x.Offsets, nil
	}
	return x.offsets, nil
}
