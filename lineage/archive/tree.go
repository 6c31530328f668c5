package archive

import (
	"iter"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Tree orders the messages of a conversation that its archive stores as a table with parents.
type Tree struct {
	// At is the position of the conversation.
	At Position
	// Of is the item whose text has the messages, and Node makes a node of such a text. They are needed if messages are added
	// with their texts: only the first nodes are kept, and the others are made again.
	Of   Item
	Node func(raw []byte) Node
	// Repairs are the irregularities found.
	Repairs []*Damage
	// RepairsMore counts those beyond the first MaxReported.
	RepairsMore int64

	messages []treeMessage
	kept     []Node // of the first messages
	keptSize int64
	index    map[IDHash]int32 // the first message that has an id
	stated   []IDHash         // the parents that messages were added with
	newest   struct {
		id string
		at time.Time
	}
	// void maps the ids of entries that are not messages to their parents. Children of such an entry follow its
	// parent.
	void map[IDHash]string
}

// treeMessage is a message of a tree. Its id and that of its parent are in its text. It has no pointers, so that many cost the
// garbage collector nothing.
type treeMessage struct {
	at     int64 // where its text begins in that of the item
	parent int32 // -1 for none
	alone  bool  // another message has its id
	moved  bool  // its text does not state the id of its parent
}

// treeMessageSize is the memory of a treeMessage with its place in the order.
const treeMessageSize = int64(unsafe.Sizeof(treeMessage{}) + unsafe.Sizeof(int32(0)))

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

// Add adds a message with its id and parent. If raw is not nil, it is the text of the message, a value or a member in the text of
// the item, which Node reads again if there are many; linked reports whether it states the parent, else the parent is a message of
// the tree. All messages are added with their texts, or none.
func (t *Tree) Add(n Node, raw []byte, linked bool) {
	i, m := int32(len(t.messages)), treeMessage{parent: -1, moved: !linked}
	if raw != nil {
		m.at = int64(t.Of.offset(raw))
	}
	if raw == nil || !t.Of.isMapped() && len(t.kept) == len(t.messages) && len(t.kept) < PartNodes && t.keptSize < PartBytes {
		t.kept = append(t.kept, n)
		t.keptSize += NodesSize(t.kept[i:])
	}
	if i == 0 || !n.Created.Before(t.newest.at) {
		t.newest.id, t.newest.at = n.ID, n.Created
	}
	if key := HashID(n.ID); key != (IDHash{}) {
		if t.index == nil {
			t.index = make(map[IDHash]int32)
		}
		if _, taken := t.index[key]; taken {
			m.alone = true
			t.Repair("message "+n.ID, Malformed("duplicate message id; kept without its id"))
		} else {
			t.index[key] = i
		}
	}
	t.messages, t.stated = append(t.messages, m), append(t.stated, HashID(n.Parent))
}

// Newest returns the id of the newest message, the last one if times are equal.
func (t *Tree) Newest() string { return t.newest.id }

// Len returns the number of messages.
func (t *Tree) Len() int { return len(t.messages) }

// given returns the node of a message with the id and the parent that its text states.
func (t *Tree) given(i int32) Node {
	if int(i) < len(t.kept) {
		return t.kept[i]
	}
	n := t.Node(rawjson.PartAt(t.Of.Raw, int(t.messages[i].at)))
	if t.Of.isMapped() {
		n.own()
		runtime.KeepAlive(t.Of.text)
	}
	return n
}

// nodes yields the nodes of messages.
func (t *Tree) nodes(order []int32) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		before, id := int32(-1), "" // the message before, and its id
		for _, i := range order {
			n, m := t.given(i), &t.messages[i]
			if m.alone {
				n.ID = ""
			}
			switch n.Root = m.parent < 0; {
			case n.Root:
				n.Parent = ""
			case m.parent == before:
				n.Parent = id
			case m.moved:
				n.Parent = t.given(m.parent).ID
			}
			before, id = i, n.ID
			if !yield(n) {
				return
			}
		}
	}
}

// Skip adds an entry that is not a message.
func (t *Tree) Skip(id, parent string) {
	if t.void == nil {
		t.void = make(map[IDHash]string)
	}
	if _, taken := t.void[HashID(id)]; !taken {
		t.void[HashID(id)] = parent
	}
}

// Fill sets the nodes of the conversation, each after its parent, and adds the repairs. Those on the path to the current
// one come first. A missing or circular parent is reported, and its child begins a history.
func (t *Tree) Fill(c *Conversation) {
	order := t.order(c.Current)
	t.index, t.stated = nil, nil
	c.Nodes = slices.Grow(c.Nodes, min(len(order), PartNodes))
	size := int64(0)
	for n := range t.nodes(order) {
		if c.Nodes = append(c.Nodes, n); len(c.Nodes) == PartNodes {
			break
		}
		if size += NodesSize(c.Nodes[len(c.Nodes)-1:]); size >= PartBytes {
			break
		}
	}
	if first := len(c.Nodes); first < len(order) {
		size = t.Of.Memory(t.Of.Raw) + treeMessageSize*int64(len(order))
		for _, i := range order[first:] {
			if int(i) < len(t.kept) {
				size += NodesSize(t.kept[i : i+1])
			}
		}
		c.AddRest(size, t.nodes(order[first:]))
	}
	c.Repairs, c.RepairsMore = append(c.Repairs, t.Repairs...), c.RepairsMore+t.RepairsMore
}

// order returns the messages in the order of Fill.
func (t *Tree) order(current string) []int32 {
	for i := range t.messages {
		t.messages[i].parent = t.parent(int32(i))
	}
	t.cutCircles()
	children, starts := t.children()
	onPath := make([]bool, len(t.messages)) // to the current message
	if i, ok := t.index[HashID(current)]; ok {
		for ; i >= 0; i = t.messages[i].parent {
			onPath[i] = true
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
			first := int32(-1) // the child that is visited first
			for _, child := range slices.Backward(children[starts[i]:starts[i+1]]) {
				if onPath[child] {
					first = child
				} else {
					stack = append(stack, child)
				}
			}
			if first >= 0 {
				stack = append(stack, first)
			}
		}
	}
	for _, wanted := range []bool{true, false} {
		for i := range t.messages {
			if t.messages[i].parent < 0 && onPath[i] == wanted {
				visit(int32(i))
			}
		}
	}
	return out
}

// children returns the children of all messages, in the order of their parents. Those of message i begin at starts[i] and end
// before starts[i+1].
func (t *Tree) children() (children, starts []int32) {
	starts = make([]int32, len(t.messages)+2) // while the list is filled, message i has its place at i+1
	for i := range t.messages {
		if p := t.messages[i].parent; p >= 0 {
			starts[p+2]++
		}
	}
	for i := range t.messages {
		starts[i+2] += starts[i+1]
	}
	children = make([]int32, starts[len(t.messages)+1])
	for i := range t.messages {
		if p := t.messages[i].parent; p >= 0 {
			children[starts[p+1]] = int32(i)
			starts[p+1]++
		}
	}
	return children, starts
}

// cutCircles makes the first message of each circle the beginning of a history.
func (t *Tree) cutCircles() {
	const (
		walking = 1 + iota
		walked
	)
	state := make([]uint8, len(t.messages))
	for i := range t.messages {
		at := int32(i)
		for ; at >= 0 && state[at] == 0; at = t.messages[at].parent {
			state[at] = walking
		}
		first := int32(-1)
		if at >= 0 && state[at] == walking {
			first = at
			for p := t.messages[at].parent; p != at; p = t.messages[p].parent {
				first = min(first, p)
			}
		}
		for at = int32(i); at >= 0 && state[at] == walking; at = t.messages[at].parent {
			state[at] = walked
		}
		if first >= 0 {
			t.Repair("message "+t.given(first).ID, Malformed("it is an ancestor of itself; it begins a history"))
			t.messages[first].parent = -1
		}
	}
}

// parent returns the index of a message's parent, -1 for none.
func (t *Tree) parent(i int32) int32 {
	key := t.stated[i]
	if key == (IDHash{}) {
		return -1
	}
	p, there := t.index[key]
	if _, void := t.void[key]; !void && there && p != i {
		return p
	}
	m, n := &t.messages[i], t.given(i) // its text states this parent, because the parents of others are messages
	if m.alone {
		n.ID = ""
	}
	above, known := t.above(n.Parent)
	if above == "" && known {
		return -1
	}
	p, there = t.index[HashID(above)]
	switch {
	case above == "" || p == i && there:
		t.Repair("message "+n.ID, Malformed("it is an ancestor of itself; it begins a history"))
	case !there:
		t.Repair("message "+n.ID, Malformed("its parent %q is missing; it begins a history", above))
	default:
		m.moved = true
		return p
	}
	return -1
}

// above returns the nearest id, from this one upwards, that is not in void. It returns the empty id at the beginning
// of a history, and false for circular entries. Entries on the path are pointed to the result.
func (t *Tree) above(id string) (string, bool) {
	top, circular := id, false
	for steps := 0; ; steps++ {
		next, void := t.void[HashID(top)]
		if !void {
			break
		}
		if circular = next == top || steps > len(t.void); circular {
			break
		}
		top = next
	}
	for t.void[HashID(id)] != id && id != top { // an entry that points to itself is circular
		next := t.void[HashID(id)]
		if t.void[HashID(id)] = top; circular {
			t.void[HashID(id)] = id
		}
		id = next
	}
	if circular {
		t.void[HashID(top)] = top
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
