package archive

import (
	"context"
	"iter"
)

// Format is an archive format. Formats are values, so a program can add its own to the list of formats.All.
type Format struct {
	// Name is the name for Options.Format, such as "chatgpt".
	Name string
	// Detect reports whether an input has this format, from its name and first bytes. It must not
	// accept input of other formats.
	Detect func(h Head) bool
	// Read yields the conversations of an input in order. A *Damage reports a skipped item, and reading continues.
	// Any other error ends it. The caller may keep the values yielded.
	Read func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error]
	// Group, for a format with several files per conversation, gets the file names of a folder and returns those that
	// are read together, nil for none. The input then has Files, and Detect is not called.
	Group func(names []string) []string
	// Sift calls Detect for each file of a group and drops files that it does not recognise.
	Sift bool
	// Grows is set if inputs can be read while they grow: see [Feed]. Then Read uses Input.Lines. At each item with
	// Pause set it yields one conversation with More set and all nodes of the lines so far that it has not yielded,
	// possibly none. Before it knows the source id, it keeps the nodes and yields a conversation without source id
	// and nodes.
	Grows bool
	// Beside is set if the reader also reads files beside an input, which may change when the input does not.
	Beside bool
	// IsBeside, when not nil, reports whether an input in no format is read beside another input of this format in the same source.
	IsBeside func(in *Input) bool
	// Large is set if the reader keeps of an item only what Item.Keep and Item.Elements return, Fields and the messages of a
	// Tree. Then a large item takes no memory of its own: see Item.Raw.
	Large bool
	// Bare is set if the program also keeps its sessions in another format, which states more of them. What that has
	// stated of a conversation stays: an input of a bare format only adds what was not stated.
	Bare bool
	// Rows is set, for a format of databases, if the rows of a session (Conversation.Rows), one on a line, can be read like a
	// database: as a stream, if the format is named.
	Rows bool
	// Version is increased when the reader of a format that grows states more about sessions that were read before, such as
	// their titles. Followers read them again.
	Version int
	// Tried names the programs whose sessions the reader was tried with. It is empty if the reader follows a
	// description only.
	Tried string
}
