package archive

// tree puts the messages of a conversation into order whose archive has them as a
// table with parents.
type tree struct {
	nodes []Node
	// void are the parents of entries that are no messages: those after them follow
	// what those follow.
	void    map[string]string
	repairs []*Damage
	at      Position
}

func (t *tree) repair(inside string, err error) {
	at := t.at
	at.Inside = inside
	t.repairs = append(t.repairs, damaged(at, err))
}

// add adds a message with its id and its parent's.
func (t *tree) add(n Node) { t.nodes = append(t.nodes, n) }

// skip adds an entry that is no message.
func (t *tree) skip(id, parent string) {
	if t.void == nil {
		t.void = make(map[string]string)
	}
	if _, taken := t.void[id]; !taken {
		t.void[id] = parent
	}
}

// ordered returns the messages, each after its parent and those on the way to the
// current one first. A parent that is missing, or an ancestor of itself, is
// reported, and its child begins a history.
func (t *tree) ordered(current string) []Node {
	index := make(map[string]int, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.ID == "" {
			continue
		}
		if _, taken := index[n.ID]; taken {
			t.repair("message "+n.ID, malformed("a second message of this id; it is kept without its id"))
			n.ID = ""
			continue
		}
		index[n.ID] = i
	}
	parents := make([]int, len(t.nodes))
	children := make([]int, len(t.nodes)) // how many
	for i := range t.nodes {
		parents[i] = t.parent(i, index)
		if p := parents[i]; p >= 0 {
			children[p]++
		}
	}
	// The children of a node lie together, those of the nodes before it before them.
	starts := make([]int, len(t.nodes)+1)
	for i, n := range children {
		starts[i+1] = starts[i] + n
	}
	lists := make([]int, starts[len(t.nodes)])
	filled := make([]int, len(t.nodes))
	for i, p := range parents {
		if p >= 0 {
			lists[starts[p]+filled[p]] = i
			filled[p]++
		}
	}
	onWay := make([]bool, len(t.nodes))
	if i, ok := index[current]; ok {
		for ; i >= 0 && !onWay[i]; i = parents[i] {
			onWay[i] = true
		}
	}
	out := make([]Node, 0, len(t.nodes))
	done := make([]bool, len(t.nodes))
	var stack []int
	visit := func(root int) {
		stack = append(stack[:0], root)
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if done[i] {
				continue
			}
			done[i] = true
			out = append(out, t.nodes[i])
			below := lists[starts[i]:starts[i+1]]
			way := -1
			for k := len(below) - 1; k >= 0; k-- {
				if onWay[below[k]] {
					way = below[k]
				} else {
					stack = append(stack, below[k])
				}
			}
			if way >= 0 {
				stack = append(stack, way)
			}
		}
	}
	for _, wanted := range []bool{true, false} {
		for i, p := range parents {
			if p < 0 && onWay[i] == wanted {
				t.nodes[i].Root, t.nodes[i].Parent = true, ""
				visit(i)
			}
		}
	}
	for i := range t.nodes {
		if !done[i] {
			t.repair("message "+t.nodes[i].ID, malformed("it is an ancestor of itself; it begins a history"))
			t.nodes[i].Root, t.nodes[i].Parent = true, ""
			visit(i)
		}
	}
	return out
}

// parent returns the message that a message follows, -1 for none, and names it in
// the node.
func (t *tree) parent(i int, index map[string]int) int {
	n := &t.nodes[i]
	parent := n.Parent
	for range len(t.void) + 1 {
		if parent == "" {
			return -1
		}
		if p, ok := index[parent]; ok {
			if n.Parent = parent; p == i {
				break
			}
			return p
		}
		above, ok := t.void[parent]
		if !ok {
			t.repair("message "+n.ID, malformed("its parent %q is not there; it begins a history", parent))
			return -1
		}
		parent = above
	}
	t.repair("message "+n.ID, malformed("it is an ancestor of itself; it begins a history"))
	return -1
}

// resolve returns the message that stands for an id, which may be of an entry that
// is none.
func (t *tree) resolve(id string) string {
	for range len(t.void) + 1 {
		above, ok := t.void[id]
		if !ok {
			return id
		}
		id = above
	}
	return ""
}
