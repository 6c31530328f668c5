package archive

import "time"

// Tree orders the messages of a conversation that its archive stores as a table with parents.
type Tree struct {
	// At is the position of the conversation.
	At Position
	// Node makes the node of a message again, given its id and what was added with it. It is needed if that is not nil.
	Node func(id string, raw []byte) Node
	// Repairs are the irregularities found.
	Repairs []*Damage
	// RepairsMore counts those beyond the first MaxReported.
	RepairsMore int64

	messages []treeMessage
	kept     []Node
	newest   struct {
		id string
		at time.Time
	}
	// void maps entries that are not messages to their parents. Children of such an entry follow its parent.
	void map[string]string
}

// treeMessage is a message of a tree.
type treeMessage struct {
	id, parent string
	root       bool
	kept       int32 // its node in Tree.kept, -1 for none
	raw        []byte
}

// treeMessageSize is the memory of a treeMessage and its id.
const treeMessageSize = 80

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

// Add adds a message with its id and parent. If raw is not nil, and there are many messages, Node makes the node of it
// again when it is read.
func (t *Tree) Add(n Node, raw []byte) {
	m := treeMessage{id: n.ID, parent: n.Parent, kept: -1, raw: raw}
	if raw == nil || len(t.kept) < PartNodes {
		m.kept, m.raw = int32(len(t.kept)), nil
		t.kept = append(t.kept, n)
	}
	if len(t.messages) == 0 || !n.Created.Before(t.newest.at) {
		t.newest.id, t.newest.at = n.ID, n.Created
	}
	t.messages = append(t.messages, m)
}

// Newest returns the id of the newest message, the last one if times are equal.
func (t *Tree) Newest() string { return t.newest.id }

// Len returns the number of messages.
func (t *Tree) Len() int { return len(t.messages) }

// node returns the node of a message.
func (t *Tree) node(i int32) (n Node) {
	m := &t.messages[i]
	if m.kept >= 0 {
		n = t.kept[m.kept]
	} else {
		n = t.Node(m.id, m.raw)
	}
	n.ID, n.Parent, n.Root = m.id, m.parent, m.root
	return n
}

// Skip adds an entry that is not a message.
func (t *Tree) Skip(id, parent string) {
	if t.void == nil {
		t.void = make(map[string]string)
	}
	if _, taken := t.void[id]; !taken {
		t.void[id] = parent
	}
}

// Fill sets the nodes of the conversation, each after its parent, and adds the repairs. Those on the path to the current
// one come first. A missing or circular parent is reported, and its child begins a history.
func (t *Tree) Fill(c *Conversation) {
	order := t.order(c.Current)
	first := min(len(order), PartNodes)
	c.Nodes = make([]Node, first)
	for i := range first {
		c.Nodes[i] = t.node(order[i])
	}
	if order = order[first:]; len(order) > 0 {
		size := int64(0)
		for _, i := range order {
			m := &t.messages[i]
			if size += int64(len(m.raw)) + treeMessageSize; m.kept >= 0 {
				size += NodesSize(t.kept[m.kept : m.kept+1])
			}
		}
		c.AddRest(size, func(yield func(Node) bool) {
			for _, i := range order {
				if !yield(t.node(i)) {
					return
				}
			}
		})
	}
	c.Repairs, c.RepairsMore = append(c.Repairs, t.Repairs...), c.RepairsMore+t.RepairsMore
}

// order returns the messages in the order of Fill.
func (t *Tree) order(current string) []int32 {
	index := make(map[string]int32, len(t.messages))
	for i := range t.messages {
		m := &t.messages[i]
		if m.id == "" {
			continue
		}
		if _, taken := index[m.id]; taken {
			t.Repair("message "+m.id, Malformed("duplicate message id; kept without its id"))
			m.id = ""
			continue
		}
		index[m.id] = int32(i)
	}
	parents := make([]int32, len(t.messages))
	starts := make([]int32, len(t.messages)+2) // of the children of a message among all, from the second on
	for i := range t.messages {
		parents[i] = t.parent(int32(i), index)
	}
	t.cutCircles(parents)
	for i, p := range parents {
		if t.messages[i].root = p < 0; p < 0 {
			t.messages[i].parent = ""
			continue
		}
		starts[p+2]++
	}
	// Children of a message are adjacent, in the order of their parents.
	for i := range t.messages {
		starts[i+2] += starts[i+1]
	}
	lists := make([]int32, starts[len(t.messages)+1])
	for i, p := range parents {
		if p >= 0 {
			lists[starts[p+1]] = int32(i)
			starts[p+1]++
		}
	}
	onWay := make([]bool, len(t.messages))
	if i, ok := index[current]; ok {
		for ; i >= 0; i = parents[i] {
			onWay[i] = true
		}
	}
	out := make([]int32, 0, len(t.messages))
	var stack []int32
	visit := func(root int32) {
		stack = append(stack[:0], root)
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			out = append(out, i)
			below := lists[starts[i]:starts[i+1]]
			way := int32(-1)
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
				visit(int32(i))
			}
		}
	}
	return out
}

// cutCircles makes the first message of each circle the beginning of a history.
func (t *Tree) cutCircles(parents []int32) {
	const (
		walking = 1 + iota
		walked
	)
	state := make([]uint8, len(parents))
	for i := range parents {
		at := int32(i)
		for ; at >= 0 && state[at] == 0; at = parents[at] {
			state[at] = walking
		}
		first := int32(-1)
		if at >= 0 && state[at] == walking {
			first = at
			for p := parents[at]; p != at; p = parents[p] {
				first = min(first, p)
			}
		}
		for at = int32(i); at >= 0 && state[at] == walking; at = parents[at] {
			state[at] = walked
		}
		if first >= 0 {
			t.Repair("message "+t.messages[first].id, Malformed("it is an ancestor of itself; it begins a history"))
			parents[first] = -1
		}
	}
}

// parent returns the index of a message's parent, -1 for none, and sets its parent.
func (t *Tree) parent(i int32, index map[string]int32) int32 {
	n := &t.messages[i]
	if n.parent == "" {
		return -1
	}
	above, known := t.above(n.parent)
	if above == "" && known {
		return -1
	}
	p, there := index[above]
	switch {
	case above == "" || p == i && there:
		t.Repair("message "+n.id, Malformed("it is an ancestor of itself; it begins a history"))
	case !there:
		t.Repair("message "+n.id, Malformed("its parent %q is missing; it begins a history", above))
	default:
		n.parent = t.messages[p].id // the same text, in one place of memory
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
