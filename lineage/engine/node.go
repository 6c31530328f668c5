package engine

import "strings"

type nodeKind int

const (
	textNode    nodeKind = iota // a string
	numberNode                  // a number in JSON's syntax
	literalNode                 // true or false
	listKind                    // children; only fragments have names
	objectKind                  // children with names
)

// node is a fragment as renderers see it: validated, in order, without nulls and messages.
type node struct {
	name     string
	named    bool
	kind     nodeKind
	text     string
	raw      bool // text is Raw
	children []*node
}

func (n *node) setName(name string) {
	n.name, n.named = strings.ToValidUTF8(name, "\uFFFD"), true
}

func (n *node) isScalar() bool { return n.kind < listKind }

// grouped returns the children of an object with unique names: those with the same name become a
// list, in place of the first.
func (n *node) grouped() []*node {
	count := make(map[string]int, len(n.children))
	for _, c := range n.children {
		count[c.name]++
	}
	if len(count) == len(n.children) {
		return n.children
	}
	lists := make(map[string]*node, len(count))
	var out []*node
	for _, c := range n.children {
		if count[c.name] == 1 {
			out = append(out, c)
			continue
		}
		list := lists[c.name]
		if list == nil {
			list = &node{name: c.name, named: true, kind: listKind}
			lists[c.name] = list
			out = append(out, list)
		}
		item := *c
		item.name, item.named = "", false
		list.children = append(list.children, &item)
	}
	return out
}

// asItem returns n as a list item: a fragment among other items becomes an object with one field.
func (n *node) asItem() *node {
	if !n.named {
		return n
	}
	return &node{kind: objectKind, children: []*node{n}}
}
