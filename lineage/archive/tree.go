package archive

// Tree orders the messages of a conversation that its archive stores as a table with parents.
type Tree struct {
	// Nodes are the messages added with Add.
	Nodes []Node
	// void maps entries that are not messages to their parents. Children of such an entry follow its parent.
	void map[string]string
	// Repairs are the irregularities found.
	Repairs []*Damage
	// RepairsMore counts those beyond the first MaxReported.
	RepairsMore int64
	// At is the position of the conversation.
	At Position
}

// Repair records an irregularity of a message.
func (t *Tree) Repair(inside string, err error) {
	if len(t.Repairs) >= MaxReported {
		t.RepairsMore++
		return
	}
	at := t.At
	at.Inside = inside
	t.Repairs = append(t.Repairs, Damaged(at, err))
}

// Add adds a message with its id and parent.
func (t *Tree) Add(n Node) { t.Nodes = append(t.Nodes, n) }

// Skip adds an entry that is not a message.
func (t *Tree) Skip(id, parent string) {
	if t.void == nil {
		t.void = make(map[string]string)
	}
	if _, taken := t.void[id]; !taken {
		t.void[id] = parent
	}
}

// Fill sets the nodes of the conversation in the order of Ordered, the current message, and the repairs.
func (t *Tree) Fill(c *Conversation) {
	c.Nodes = t.Ordered(c.Current)
	c.Repairs, c.RepairsMore = append(c.Repairs, t.Repairs...), c.RepairsMore+t.RepairsMore
}

// Ordered returns the messages, each after its parent. Those on the path to the current one come first. A missing or
// circular parent is reported, and its child begins a history.
func (t *Tree) Ordered(current string) []Node {
	index := make(map[string]int, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.ID == "" {
			continue
		}
		if _, taken := index[n.ID]; taken {
			t.Repair("message "+n.ID, Malformed("duplicate message id; kept without its id"))
			n.ID = ""
			continue
		}
		index[n.ID] = i
	}
	parents := make([]int, len(t.Nodes))
	children := make([]int, len(t.Nodes)) // counts
	for i := range t.Nodes {
		parents[i] = t.parent(i, index)
		if p := parents[i]; p >= 0 {
			children[p]++
		}
	}
	// Children of a node are adjacent, in the order of their parents.
	starts := make([]int, len(t.Nodes)+1)
	for i, n := range children {
		starts[i+1] = starts[i] + n
	}
	lists := make([]int, starts[len(t.Nodes)])
	filled := make([]int, len(t.Nodes))
	for i, p := range parents {
		if p >= 0 {
			lists[starts[p]+filled[p]] = i
			filled[p]++
		}
	}
	onWay := make([]bool, len(t.Nodes))
	if i, ok := index[current]; ok {
		for ; i >= 0 && !onWay[i]; i = parents[i] {
			onWay[i] = true
		}
	}
	out := make([]Node, 0, len(t.Nodes))
	done := make([]bool, len(t.Nodes))
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
			out = append(out, t.Nodes[i])
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
				t.Nodes[i].Root, t.Nodes[i].Parent = true, ""
				visit(i)
			}
		}
	}
	for i := range t.Nodes {
		if !done[i] {
			t.Repair("message "+t.Nodes[i].ID, Malformed("it is an ancestor of itself; it begins a history"))
			t.Nodes[i].Root, t.Nodes[i].Parent = true, ""
			visit(i)
		}
	}
	return out
}

// parent returns the index of a message's parent, -1 for none, and sets Parent of the node.
func (t *Tree) parent(i int, index map[string]int) int {
	n := &t.Nodes[i]
	if n.Parent == "" {
		return -1
	}
	above, known := t.above(n.Parent)
	if above == "" && known {
		return -1
	}
	p, there := index[above]
	switch {
	case above == "" || p == i && there:
		t.Repair("message "+n.ID, Malformed("it is an ancestor of itself; it begins a history"))
	case !there:
		t.Repair("message "+n.ID, Malformed("its parent %q is missing; it begins a history", above))
	default:
		n.Parent = above
		return p
	}
	return -1
}

// above returns the nearest id, from this one upwards, that is not in void. It returns the empty id at the beginning
// of a history, and false for circular entries. Entries on the path are pointed to the result.
func (t *Tree) above(id string) (string, bool) {
	top, circular := id, false
	for steps := 0; ; steps++ {
		next, void := t.void[top]
		if !void {
			break
		}
		if circular = next == top || steps > len(t.void); circular {
			break
		}
		top = next
	}
	for t.void[id] != id && id != top { // an entry that points to itself is circular
		next := t.void[id]
		if t.void[id] = top; circular {
			t.void[id] = id
		}
		id = next
	}
	if circular {
		t.void[top] = top
		return "", false
	}
	return top, true
}

// Resolve returns the id of the message that stands for an entry. Entries that are not messages are replaced by their
// nearest ancestor that is one.
func (t *Tree) Resolve(id string) string {
	id, _ = t.above(id)
	return id
}
