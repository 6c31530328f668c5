package follow

import "time"

// Kind is the kind of an event.
type Kind string

// The kinds of event.
const (
	// Found is a folder of an agent, with the number and total size of its files.
	Found Kind = "found"
	// Reading is a file about to be read. Done and Total are bytes of all files to read.
	Reading Kind = "reading"
	// Read is a file that was read.
	Read Kind = "read"
	// Failed is a file or folder that could not be read.
	Failed Kind = "failed"
	// Gone is a file that no longer exists. The store keeps its sessions.
	Gone Kind = "gone"
	// LeftOut is a file that is not read, with the Reason.
	LeftOut Kind = "left out"
	// StoreFailed is sent when the store takes no changes any more, as on a full disk, with Err. Following goes on when it does.
	StoreFailed Kind = "store failed"
	// StoreWorks is sent after StoreFailed, when everything that was found meanwhile is in the store.
	StoreWorks Kind = "store works"
	// Slow is a folder that is polled because the system does not report its changes, with the Reason.
	Slow Kind = "slow"
	// Waiting is sent when everything has been read.
	Waiting Kind = "waiting"
)

// Event is something that happened in a run. Kind determines which fields are set.
type Event struct {
	Kind  Kind
	Agent string // empty for a folder of Choice.From
	Path  string
	// Files and Bytes are the number and size of the files of a folder, or of those read since the last Waiting.
	// Databases is how many of the files are databases, which have any number of sessions.
	Files, Bytes, Databases int64
	// Soon is the number of files in a folder that are not in the store yet and that the agent will delete within
	// SoonTime. The agent keeps an unchanged file for the time Keeps.
	Soon  int64
	Keeps time.Duration
	// Done and Total are numbers of bytes.
	Done, Total int64
	// Messages is the number of messages that were new to the store. Conversations are the source ids of their
	// threads.
	Messages      int64
	Conversations []string
	// Skipped is the number of unusable items of a file. Err is the reason for the first of them, which does not name the file
	// again, or the reason why the file was not read.
	Skipped int64
	Err     error
	Reason  string
}
