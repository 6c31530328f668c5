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

// Format is an archive format. Formats are values: a program can extend the list that Formats
// returns.
type Format struct {
	// Name is the name for Options.Format, such as "chatgpt".
	Name string
	// Detect reports whether an input has this format, from its name and first bytes. It must not
	// accept input of other formats.
	Detect func(h Head) bool
	// Read yields the conversations of an input in order. A *Damage reports a skipped item, and
	// reading continues; any other error ends it. The values yielded belong to the caller, who may
	// keep them.
	Read func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error]
	// Group, for a format with several files per conversation, returns those of a folder's files
	// that belong together, nil for none. Such an input has Files, and Detect is not called.
	Group func(names []string) []string
	// Sift calls Detect for each file of a group and drops files that it does not recognise.
	Sift bool
	// Grows is set if inputs can be read while they grow: see [Growing]. Then Read takes Input.Lines, and at each
	// item with Pause set it yields one conversation with More set and with all nodes of the lines so far that
	// it has not yielded, or with none. Before it knows the source id it yields one without source id and nodes,
	// and keeps the nodes.
	Grows bool
	// Tried says what the reader of an agent's sessions was tried on, empty if it follows a description only.
	Tried string
}

// Head is the beginning of an input, for detection.
type Head struct {
	// Name is the input's name without folder, empty for a stream.
	Name string
	// Bytes are the first bytes after decompression, up to HeadSize.
	Bytes []byte
}

// HeadSize is the size of the beginning that Detect gets.
const HeadSize = 64 << 10

// Conversation is a conversation in an archive: a tree of messages. It becomes a thread. Unknown
// fields are zero.
type Conversation struct {
	// SourceID is its id in the archive. Conversations with the same source id are merged, also
	// across archives. If it is empty, an id is derived from the content.
	SourceID string
	Title    string
	UserID   string
	// Model is the model set for the conversation.
	Model            string
	Created, Updated time.Time
	// Metadata is a JSON object with all other fields, nil for none.
	Metadata []byte
	// Nodes are its messages, each after its parent.
	Nodes []Node
	// Empty are branches without messages.
	Empty []EmptyBranch
	// Current is the id of the current node. Default: the node whose Branch is "main", else the
	// last node. If the branch "main" is empty, it is current.
	Current string
	// ForkedFrom is the source id of the conversation that this one was forked from.
	ForkedFrom string
	// SharedIDs is set if equal message ids in different conversations mean the same message,
	// because one conversation was resumed from the other.
	SharedIDs bool
	// Copies is set if it may be a copy of another conversation up to some message, in which lines have other ids and times:
	// an answer with the same id of its provider shows that.
	Copies bool
	// More is set if the next conversation yielded continues this one with more nodes, so that
	// readers need not hold all. Its non-zero fields replace those of this one, but Updated is the latest.
	More bool
	// Rows are the rows of a database that it was read from, if they are wanted: see Options.Rows.
	Rows []Row
	// Repairs describe irregularities and how they were handled, Skipped what was left out.
	Repairs, Skipped []*Damage

	repairedMore, skippedMore int64 // beyond maxReported
}

// Row is a row of a table of a database.
type Row struct {
	// Key identifies it in the database: its table, a space, and its primary key there.
	Key string
	// JSON is an object on one line with its "table", its "key" and all of the "row".
	JSON []byte
}

// skip records a skipped part of the conversation.
func (c *Conversation) skip(at Position, err error) {
	if len(c.Skipped) >= maxReported {
		c.skippedMore++
		return
	}
	c.Skipped = append(c.Skipped, damaged(at, err))
}

// EmptyBranch is a branch without messages, with what Node.Branch, BranchOf and BranchMetadata say of others.
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
	// Branch, when not empty, names a branch that ends at this node. Leaves without one get an
	// automatic name. BranchOf, when not empty, is the name of the branch that it was made from, and
	// BranchMetadata becomes the metadata of its context when it is created, and again when its "name" has changed
	// and its "updatedAt" is later.
	Branch, BranchOf string
	BranchMetadata   []byte
	// Aside, when not empty, moves the node out of the conversation into a subagent or log. Nodes
	// with the same aside form separate histories; they become a context without a name with the
	// metadata {"aside": …}, a child of the main context. Its first node is a Root, or has as
	// Parent the node of the conversation that it continues.
	Aside string
	// At is where it was read, for reports.
	At Position

	// leavesWay is set if it begins a new run because the run of its parent leads to the current
	// message.
	leavesWay bool
}

// Give sets the archive's object as the body. Members that contain or name later messages are
// removed, because they change when the conversation grows.
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

// Position is a position in an archive.
type Position struct {
	// File is the name of the input, with its path in the archive.
	File string
	// Line is the line, from 1, if the input is read by lines, else 0.
	Line int64
	// Item is the number of the item in the input, from 1; 0 for none.
	Item int64
	// Offset is the start of the item in the decompressed input.
	Offset int64
	// Inside, when not empty, is an id or name inside the item.
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

// Damage describes an item that cannot be used, or not unchanged.
type Damage struct {
	At  Position
	Err error
}

func (d *Damage) Error() string { return d.At.String() + ": " + d.Err.Error() }

// Unwrap returns the reason.
func (d *Damage) Unwrap() error { return d.Err }

var (
	// ErrMalformed is returned for input that does not conform to its format.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge is returned for input that exceeds a limit.
	ErrTooLarge = errors.New("too large")
	// ErrTooDeep is returned for values or archives nested deeper than a limit.
	ErrTooDeep = rawjson.ErrTooDeep
	// ErrUnknownFormat is returned for input that no format recognises.
	ErrUnknownFormat = errors.New("unknown format")
	// ErrRefused is returned for input that is not read for security reasons.
	ErrRefused = errors.New("refused")
	// ErrNoMessages is returned for a file of a known format without messages.
	ErrNoMessages = errors.New("no messages")
	// ErrNothingFound is returned for an archive without conversations.
	ErrNothingFound = errors.New("no conversations found")
)

// damaged returns a damage at a position.
func damaged(at Position, err error) *Damage { return &Damage{At: at, Err: err} }

// malformed returns an error that matches ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
