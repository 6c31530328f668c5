package archive

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// Conversation is a conversation in an archive: a tree of messages. It becomes a thread. Unknown
// fields are zero.
type Conversation struct {
	// SourceID is its id in the archive. Conversations with the same source id are merged, also
	// across archives. If it is empty, an id is derived from the content. One that is long or cannot be shown is
	// shortened, with a hash.
	SourceID string
	// Local, when not empty, is added to SourceID. It distinguishes sessions of different machines when an agent
	// numbers sessions per machine, or people name them: see Mark.
	Local  string
	Title  string
	UserID string
	// Model is the model set for the conversation.
	Model            string
	Created, Updated time.Time
	// Metadata is a JSON object with all other fields, nil for none.
	Metadata []byte
	// Nodes are its messages, each after its parent. Rest, when not nil, yields those after them in parts, the same each
	// time: see AddRest and Parts.
	Nodes []Node
	Rest  iter.Seq[[]Node]
	// Empty are branches without messages.
	Empty []EmptyBranch
	// Current is the id of the current node. Default: the node whose Branch is "main", else the
	// last node. If the branch "main" is empty, it is current.
	Current string
	// ForkedFrom is the source id of the conversation that this one was forked from, or the id of which ChosenID made
	// it.
	ForkedFrom string
	// Continues, when not nil, says that this is no conversation of its own.
	Continues *Continues
	// SharedIDs is set if equal message ids in different conversations mean the same message,
	// because one conversation was resumed from the other.
	SharedIDs bool
	// Copies is set if the conversation may be a copy of the start of another one with other ids and times in its
	// lines. An answer with the same provider id proves the copy.
	Copies bool
	// More is set if the next conversation yielded continues this one with more nodes, so that a reader need not hold
	// all of its input. Non-zero fields of the next one replace those of this one; Updated is the later of the two.
	More bool
	// Rows are the database rows that the conversation was read from, if ReadOptions.Rows is set.
	Rows []Row
	// Repairs describe irregularities and how they were handled. Skipped describes what was left out.
	Repairs, Skipped []*Damage
	// RepairsMore and SkippedMore count those beyond the first MaxReported.
	RepairsMore, SkippedMore int64

	restSize int64 // memory of Rest
}

// Skip records a part of the conversation that was left out.
func (c *Conversation) Skip(at Position, err error) {
	if len(c.Skipped) >= MaxReported {
		c.SkippedMore++
		return
	}
	c.Skipped = append(c.Skipped, Damaged(at, err))
}

// AddRest adds nodes after all others, in parts of about PartNodes or PartBytes. They are made whenever they are read, the
// same each time. So a large conversation in memory is its text, of the given size, and not some hundred bytes more for
// each message.
func (c *Conversation) AddRest(size int64, nodes iter.Seq[Node]) {
	before := c.Rest
	c.restSize += size
	c.Rest = func(yield func([]Node) bool) {
		if before != nil {
			for part := range before {
				if !yield(part) {
					return
				}
			}
		}
		var batch []Node
		bytes := int64(0)
		for n := range nodes {
			batch = append(batch, n)
			if bytes += NodesSize(batch[len(batch)-1:]); len(batch) < PartNodes && bytes < PartBytes {
				continue
			}
			if !yield(batch) {
				return
			}
			batch, bytes = nil, 0 // the caller may keep them
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// Parts yields all nodes: Nodes, and the parts of Rest.
func (c *Conversation) Parts() iter.Seq[[]Node] {
	return func(yield func([]Node) bool) {
		if !yield(c.Nodes) || c.Rest == nil {
			return
		}
		for part := range c.Rest {
			if cleanNodes(part); !yield(part) {
				return
			}
		}
	}
}

// Says reports whether the conversation has messages, and not only records beside them.
func (c *Conversation) Says() bool {
	for part := range c.Parts() {
		if slices.ContainsFunc(part, func(n Node) bool { return n.Aside != lineage.AsideLog }) {
			return true
		}
	}
	return false
}

// Size estimates the memory of the conversation.
func (c *Conversation) Size() int64 {
	return int64(256+len(c.Metadata)+len(c.Title)) + NodesSize(c.Nodes) + c.restSize
}

// NodesSize estimates the memory of nodes.
func NodesSize(nodes []Node) (n int64) {
	for i := range nodes {
		node := &nodes[i]
		n += int64(256 + len(node.Body) + len(node.Metadata))
		for k := range node.Attachments {
			n += int64(64 + len(node.Attachments[k].Body))
		}
	}
	return n
}

// Continues says which thread of the store a conversation continues, as a branch of that thread. What it states of itself, such as a
// title, is not that of the thread.
type Continues struct {
	Thread lineage.ThreadID
	// Branch is the name of the branch.
	Branch string
}

// Row is a row of a database table.
type Row struct {
	// Key identifies the row in the database: the table, a space and the primary key.
	Key string
	// JSON is an object on one line with the members "table", "key" and "row".
	JSON []byte
}

// EmptyBranch is a branch without messages. Its fields are those of Node.Branch, BranchOf and BranchMetadata.
type EmptyBranch struct {
	Name, Of string
	Metadata []byte
}

// Node is a message of a conversation.
//
// Histories are compared by everything visible in their nodes, and equal beginnings are stored
// once. So a node must not change when its conversation grows.
type Node struct {
	// ID is its id in the archive, unique in the conversation; empty for none.
	ID string
	// Parent is the id of its parent. If it is empty, the parent is the previous node, unless Root
	// is set.
	Parent string
	// Follows, when not zero, is the message of the store that it follows, in place of Parent.
	Follows lineage.SpanRef
	// Root is set if it begins a history.
	Root bool
	// Role is the message's role, Name the name of a tool or participant.
	Role, Name string
	// Body is the archive's object for the message, byte for byte, or a text. Type is its media
	// type, default text/plain. Converted is set if members of the object are not in Body: see
	// [Node.Give].
	Body      []byte
	Type      string
	Converted bool
	// Model is the model that wrote the message, UserID its user.
	Model, UserID string
	Created       time.Time
	// Metadata is a JSON object with all other fields, nil for none.
	Metadata []byte
	// Attachments are files that came with the message.
	Attachments []Attachment
	// Branch, when not empty, names a branch that ends at this node. Leaves without a name get an automatic one.
	// BranchOf, when not empty, is the name of the branch that it was created from. BranchMetadata becomes the
	// metadata of the branch's context when it is created, and again when its "name" has changed and its "updatedAt"
	// is later.
	Branch, BranchOf string
	BranchMetadata   []byte
	// Aside, when not empty, moves the node out of the conversation into a subagent or log. Nodes with the same aside
	// form separate histories. They become a context without a name, a child of the main context, with the metadata
	// {"aside": …}. The first node of an aside is a Root, or its Parent is the node of the conversation that it
	// continues.
	Aside string
	// At is the position in the archive, for reports.
	At Position
}

// Give sets the archive's object as the body. Members that contain or name later messages are
// removed, because they change when the conversation grows.
func (n *Node) Give(object []byte, links ...string) {
	n.Body, n.Type = object, content.TypeJSON
	if len(links) > 0 {
		n.Body = rawjson.RemoveFunc(object, func(key string) bool { return slices.Contains(links, key) })
	}
	n.Converted = len(n.Body) != len(object)
}

// own copies what may be part of another text.
func (n *Node) own() {
	n.Body, n.Metadata, n.BranchMetadata = bytes.Clone(n.Body), bytes.Clone(n.Metadata), bytes.Clone(n.BranchMetadata)
	for i := range n.Attachments {
		n.Attachments[i].Body = bytes.Clone(n.Attachments[i].Body)
	}
}

// Attachment is a file that came with a message.
type Attachment struct {
	Filename string
	Type     string
	Body     []byte
}

// clean replaces invalid UTF-8 in text fields by U+FFFD, so that they are read back as stored.
// Bodies are not changed.
func (c *Conversation) clean() {
	for _, s := range []*string{&c.Title, &c.UserID, &c.Model, &c.Current} {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	for i := range c.Empty {
		b := &c.Empty[i]
		b.Name, b.Of = strings.ToValidUTF8(b.Name, "\uFFFD"), strings.ToValidUTF8(b.Of, "\uFFFD")
	}
	cleanNodes(c.Nodes)
}

func cleanNodes(nodes []Node) {
	for i := range nodes {
		n := &nodes[i]
		for _, s := range [...]*string{&n.ID, &n.Parent, &n.Role, &n.Name, &n.Type, &n.Model, &n.UserID, &n.Branch, &n.Aside} {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
		for k := range n.Attachments {
			a := &n.Attachments[k]
			a.Filename, a.Type = strings.ToValidUTF8(a.Filename, "\uFFFD"), strings.ToValidUTF8(a.Type, "\uFFFD")
		}
	}
}
