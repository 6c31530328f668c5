package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Format is one kind of archive and how it is read. Formats are values: a program
// imports the list it wants, which begins with what Formats returns.
type Format struct {
	// Name is what Options.Format asks for: "chatgpt".
	Name string
	// Detect reports whether an input looks like this format, from its name and its
	// first bytes. It must not take another format's input for its own.
	Detect func(h Head) bool
	// Read yields the conversations of an input, in its order. A *Damage as error
	// says that an item was left out, and reading goes on; any other error ends it.
	// What is yielded belongs to the caller, who may keep it while reading goes on.
	Read func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error]
	// Group, for a format that keeps a conversation in several files, returns those
	// of a folder's files that are read together, nil for none. Such an input has
	// Files and is not asked Detect about.
	Group func(names []string) []string
	// Sift asks Detect about each file of a group and leaves those out that it does
	// not know.
	Sift bool
}

// Head is what is known of an input before it is read.
type Head struct {
	// Name is the input's name, without its folder; empty for a stream.
	Name string
	// Bytes are its first bytes, up to HeadSize of them, after decompression.
	Bytes []byte
}

// HeadSize is how much of an input Detect is shown.
const HeadSize = 64 << 10

// Conversation is a conversation as an archive holds it: a tree of messages. It
// becomes a thread. A format that does not know something leaves it zero.
type Conversation struct {
	// SourceID is its id in the archive. Conversations of one source id, in one
	// archive or in several, are merged. Where an archive has none it is left empty:
	// the id is then derived from what the conversation says.
	SourceID string
	Title    string
	UserID   string
	// Model is the model that the conversation was set to.
	Model            string
	Created, Updated time.Time
	// Metadata is a JSON object of all that has no place elsewhere, nil for nothing.
	Metadata []byte
	// Nodes are its messages, each after its parent.
	Nodes []Node
	// Current is the id of the node that it stands at. Empty leaves that to the
	// node whose Branch is "main" or, when there is none, to the last.
	Current string
	// ForkedFrom is the source id of the conversation that this one was forked from.
	ForkedFrom string
	// SharedIDs says that a message of this conversation that has the id of a message of
	// another one is that message: one conversation was resumed from the other.
	SharedIDs bool
	// More says that the next conversation yielded goes on with this one: more of
	// its nodes, for readers that need not hold all of them. What else is said
	// there replaces what was said here, unless it is zero.
	More bool
	// Repairs tell what was odd and how it was taken, Skipped what of it was left out.
	Repairs, Skipped []*Damage

	repairedMore, skippedMore int64 // beyond maxReported
}

// skip notes that something of the conversation was left out.
func (c *Conversation) skip(at Position, err error) {
	if len(c.Skipped) >= maxReported {
		c.skippedMore++
		return
	}
	c.Skipped = append(c.Skipped, damaged(at, err))
}

// Node is a message of a conversation.
//
// Histories are compared by all that a reader can see of their nodes, and what is equal
// from the start is stored once. So nothing in a node may change when its conversation goes
// on.
type Node struct {
	// ID is its id in the archive, unique in the conversation, empty for none.
	ID string
	// Parent is the id of the node that it follows. Empty: it follows the node
	// before it, unless it is a Root.
	Parent string
	// Root says that it begins a history.
	Root bool
	// Role and Name are the message's. Name is that of a tool or a participant.
	Role, Name string
	// Body is what it says: the object that the archive has for the message, byte for byte,
	// or text. Type is its media type, text/plain by default. Converted says that the object
	// had members that are not in Body: see [Node.Give].
	Body      []byte
	Type      string
	Converted bool
	// Model is the model that made it, UserID the user.
	Model, UserID string
	Created       time.Time
	// Metadata is a JSON object of all that has no place elsewhere, nil for nothing.
	Metadata []byte
	// Attachments came with the message.
	Attachments []Attachment
	// Branch, when not empty, names a branch that stands at this node. Leaves that
	// no branch is named for get one under an automatic name.
	Branch string
	// Aside, when not empty, takes the node out of the conversation proper: it
	// belongs to a subagent, or to a log beside the messages. Nodes of one aside are
	// a history, or several, of their own; it becomes a context without a name whose
	// metadata says {"aside": …}, a child of the main one. Its first node is a Root,
	// or names as Parent a node of the conversation whose history it goes on from.
	Aside string
	// At says where it was read, for reports.
	At Position

	// leavesWay says that it begins a run: that of its parent leads to the current message.
	leavesWay bool
}

// Give makes the object that the archive has for a message its body. Members that hold or name
// the messages after it are left out: they are other ones when the conversation goes on.
func (n *Node) Give(object []byte, links ...string) {
	n.Body, n.Type = object, typeJSON
	if len(links) > 0 {
		n.Body = rawjson.RemoveFunc(object, func(key string) bool { return slices.Contains(links, key) })
	}
	n.Converted = len(n.Body) != len(object)
}

// Attachment is a file that came with a message.
type Attachment struct {
	Filename string
	Type     string
	Body     []byte
}

// Position is a place in an archive.
type Position struct {
	// File is the name of the input, with its path in the archive.
	File string
	// Line counts from 1 where the input is read by lines, else it is 0.
	Line int64
	// Item counts the items of the input from 1; 0 is none of them.
	Item int64
	// Offset is where the item begins in the input, decompressed.
	Offset int64
	// Inside, when not empty, is what inside the item is meant: an id, a name.
	Inside string
}

// String returns the position for people: "chats.json: item 3 (byte 120)".
func (p Position) String() string {
	s := p.File
	if s == "" {
		s = "input"
	}
	switch {
	case p.Line > 0:
		s += ": line " + strconv.FormatInt(p.Line, 10)
	case p.Item > 0:
		s += ": item " + strconv.FormatInt(p.Item, 10)
	}
	if p.Line > 0 || p.Item > 0 {
		s += " (byte " + strconv.FormatInt(p.Offset, 10) + ")"
	}
	if p.Inside != "" {
		s += ", " + p.Inside
	}
	return s
}

// Damage tells of an item that cannot be used, or not as it is.
type Damage struct {
	At  Position
	Err error
}

func (d *Damage) Error() string { return d.At.String() + ": " + d.Err.Error() }

// Unwrap returns what is wrong with the item.
func (d *Damage) Unwrap() error { return d.Err }

var (
	// ErrMalformed is returned for input that is not what its format says.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is returned for input beyond a limit.
	ErrTooLarge = errors.New("too large")
	// ErrTooDeep is returned for values or archives nested beyond a limit.
	ErrTooDeep = rawjson.ErrTooDeep
	// ErrUnknownFormat is returned for input that no format recognises.
	ErrUnknownFormat = errors.New("unknown format")
	// ErrRefused is returned for input that is not read for safety's sake.
	ErrRefused = errors.New("refused")
	// ErrNoMessages is returned for a file of a known format without any message.
	ErrNoMessages = errors.New("no messages")
	// ErrNothingFound is returned for an archive without any conversation.
	ErrNothingFound = errors.New("no conversations found")
)

// damaged returns the damage at a position.
func damaged(at Position, err error) *Damage { return &Damage{At: at, Err: err} }

// malformed returns an error that matches ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
