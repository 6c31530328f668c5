package structure

import "github.com/lineage-store/lineage/content"

// Names are the ids by which the spans of a commit can name content, in the order of the
// commit: those of its blocks, and those stated by a span because they were not among the
// latest. So no id is written twice within a short distance.
type Names struct {
	ids []content.ID
	// last has, for each first byte of an id, the index after the last id with that byte, and
	// before has the same for the ids before each id. 0 is none.
	last   [256]int32
	before []int32
}

// NamesBack is the number of latest ids that an encoder searches.
const NamesBack = 512

// Reset removes all ids and adds the given ones.
func (n *Names) Reset(ids ...content.ID) {
	for i := range n.ids {
		n.last[n.ids[i][0]] = 0
	}
	n.ids, n.before = n.ids[:0], n.before[:0]
	for _, id := range ids {
		n.Add(id)
	}
}

// Add appends an id.
func (n *Names) Add(id content.ID) {
	last := &n.last[id[0]]
	n.ids, n.before = append(n.ids, id), append(n.before, *last)
	*last = int32(len(n.ids))
}

// Len returns the number of ids.
func (n *Names) Len() int { return len(n.ids) }

// Back returns the number of ids added after the given one, or -1 if it is not among the
// latest. Of equal ids, the last counts.
func (n *Names) Back(id content.ID) int {
	for at := int(n.last[id[0]]); at > 0 && len(n.ids)-at < NamesBack; at = int(n.before[at-1]) {
		if n.ids[at-1] == id {
			return len(n.ids) - at
		}
	}
	return -1
}
