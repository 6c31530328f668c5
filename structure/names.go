package structure

import "github.com/lineage-store/lineage/content"

// Names are the ids by which the spans of a commit can name content, in the order in which the
// commit states them: those of its blocks, and those that a span states because they were not
// among the latest. So no id is written twice within a short distance.
type Names struct {
	ids []content.ID
	// last has for each first byte of an id the place behind the last id that begins so, and
	// before has the same for what comes before each id. 0 is none.
	last   [256]int32
	before []int32
}

// NamesBack is how many ids back an encoder looks.
const NamesBack = 512

// Reset forgets all ids and then adds some.
func (n *Names) Reset(ids ...content.ID) {
	for i := range n.ids {
		n.last[n.ids[i][0]] = 0
	}
	n.ids, n.before = n.ids[:0], n.before[:0]
	for _, id := range ids {
		n.Add(id)
	}
}

// Add adds an id behind the others.
func (n *Names) Add(id content.ID) {
	last := &n.last[id[0]]
	n.ids, n.before = append(n.ids, id), append(n.before, *last)
	*last = int32(len(n.ids))
}

// Len returns how many ids there are.
func (n *Names) Len() int { return len(n.ids) }

// Back returns how many ids were added behind the given one, or -1 if it is not among the
// latest. Of several that are equal, the last counts.
func (n *Names) Back(id content.ID) int {
	for at := int(n.last[id[0]]); at > 0 && len(n.ids)-at < NamesBack; at = int(n.before[at-1]) {
		if n.ids[at-1] == id {
			return len(n.ids) - at
		}
	}
	return -1
}
