package structure

import "github.com/lineage-store/lineage/content"

// Names are the ids by which the spans of a commit can name content, in the order in which the
// commit states them: those of its blocks, and those that a span states because they were not
// among the latest. So no id is written twice within a short distance.
type Names struct{ ids []content.ID }

// NamesBack is how many ids back an encoder looks.
const NamesBack = 512

// Reset forgets all ids and then adds some.
func (n *Names) Reset(ids ...content.ID) { n.ids = append(n.ids[:0], ids...) }

// Add adds an id behind the others.
func (n *Names) Add(id content.ID) { n.ids = append(n.ids, id) }

// Len returns how many ids there are.
func (n *Names) Len() int { return len(n.ids) }

// Back returns how many ids were added behind the given one, or -1 if it is not among the
// latest. Of several that are equal, the last counts.
func (n *Names) Back(id content.ID) int {
	for back := 0; back < len(n.ids) && back < NamesBack; back++ {
		if n.ids[len(n.ids)-1-back] == id {
			return back
		}
	}
	return -1
}

// at returns the id that so many others were added behind.
func (n *Names) at(back uint64) (content.ID, error) {
	if back >= uint64(len(n.ids)) {
		return content.ID{}, errNotNamed
	}
	return n.ids[len(n.ids)-1-int(back)], nil
}
