package archive

import (
	"context"
	"iter"
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
	// Beside is set if what belongs to an input is also in files beside it, which may change when the input does not.
	Beside bool
	// Tried says what the reader of an agent's sessions was tried on, empty if it follows a description only.
	Tried string
}
