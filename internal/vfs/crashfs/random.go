package crashfs

import (
	"math/rand/v2"
	"slices"
)

// sectorSize is the unit that a disk writes completely or not at all.
const sectorSize = 512

// someLinks returns a random prefix of the changes of each directory.
func someLinks(rng *rand.Rand, log []pendingChange) []*nameChange {
	made := map[*dir]int{}
	for _, c := range log {
		if c.link != nil {
			made[c.link.dir]++
		}
	}
	left := map[*dir]int{} // drawn in the order of the log, to be repeatable
	var kept []*nameChange
	for _, c := range log {
		if c.link == nil {
			continue
		}
		d := c.link.dir
		if _, drawn := left[d]; !drawn {
			left[d] = rng.IntN(made[d] + 1)
		}
		if left[d] > 0 {
			left[d]--
			kept = append(kept, c.link)
		}
	}
	return kept
}

// someContents returns a possible content for every file with changes.
func someContents(rng *rand.Rand, log []pendingChange) map[*file][]byte {
	edits := map[*file][]*edit{}
	var files []*file // in a repeatable order
	for _, c := range log {
		if c.edit == nil {
			continue
		}
		f := c.edit.file
		if len(edits[f]) == 0 {
			files = append(files, f)
		}
		edits[f] = append(edits[f], c.edit)
	}
	contents := make(map[*file][]byte, len(files))
	for _, f := range files {
		contents[f] = scatter(rng, f.durable, edits[f])
	}
	return contents
}

// scatter returns a possible content of a file after a crash. A prefix of its
// changes of size survives, since a file system journals them. The version of
// each sector is independent of everything else, except that a surviving
// truncation leaves nothing older beyond its end.
func scatter(rng *rand.Rand, durable []byte, edits []*edit) []byte {
	sized := rng.IntN(len(edits) + 1)
	found := slices.Clone(durable)
	for _, e := range edits[:sized] {
		found = resize(found, e.sizeAfter(int64(len(found))))
	}

	sectors := map[int64]*sector{}
	now := slices.Clone(durable)
	for i, e := range edits {
		before := int64(len(now))
		now = e.apply(now)
		if e.truncate && i < sized {
			dropFrom(sectors, e.off)
		}
		first, last := e.touched(before)
		for at := first; at <= last; at++ {
			if sectors[at] == nil {
				sectors[at] = new(sector)
			}
			sectors[at].draw(rng, now[at*sectorSize:min((at+1)*sectorSize, int64(len(now)))])
		}
	}

	for at, s := range sectors {
		if s.found == nil {
			continue
		}
		start := at * sectorSize
		found = resize(found, max(int64(len(found)), start+int64(len(s.found))))
		rest := found[start:min(start+sectorSize, int64(len(found)))]
		clear(rest[copy(rest, s.found):])
	}
	return found
}

// touched returns the first and last sector that the edit changes in a file of so many bytes. If it changes none, last is less than
// first.
func (e *edit) touched(before int64) (first, last int64) {
	if !e.truncate {
		return e.off / sectorSize, (e.off + int64(len(e.data)) - 1) / sectorSize
	}
	at := e.off / sectorSize
	if e.off < before && e.off%sectorSize != 0 {
		return at, at // bytes beyond the end become zeros
	}
	return at, at - 1
}

// dropFrom drops the versions of sectors that reach beyond size.
func dropFrom(sectors map[int64]*sector, size int64) {
	for at := range sectors {
		if (at+1)*sectorSize > size {
			delete(sectors, at)
		}
	}
}

// sector is a version of a sector, drawn uniformly from all versions. Nil is
// the durable one.
type sector struct {
	versions int
	found    []byte
}

// draw considers content as one more version.
func (s *sector) draw(rng *rand.Rand, content []byte) {
	s.versions++
	if rng.IntN(s.versions+1) == 0 {
		s.found = slices.Clone(content)
	}
}
