package follow

import "time"

// Listing describes a folder of an agent, and what the store has of its files.
type Listing struct {
	// Agent is zero for a folder of Choice.From.
	Agent Agent
	Path  string
	State ListingState
	// Tried describes what the reader of the agent's format was tried on. It is empty if that was no session of this
	// agent.
	Tried string
	// Files is the number of files and Bytes their size. Unread is the number of files with an unread part, LeftOut
	// the number of those that are not read.
	Files, Bytes, Unread, LeftOut int64
	// Gone is the number of files that no longer exist. The store has their sessions.
	Gone int64
	// Keeps is how long the agent keeps an unchanged file, 0 for ever. Soon is the number of files that it will
	// delete within SoonTime.
	Keeps time.Duration
	Soon  int64
	// Problems are the files and folders that cannot be read or have unusable items.
	Problems []Problem
}

// SoonTime is the time within which a deletion counts as soon.
const SoonTime = 7 * 24 * time.Hour

// ListingState tells whether a folder is followed.
type ListingState string

// The states of folders.
const (
	Followed ListingState = "followed"
	// NotThere is set if the folder does not exist. It is followed once it is created.
	NotThere ListingState = "not there"
	// NotReadYet is set if there is no reader of the agent's format.
	NotReadYet ListingState = "not read yet"
	// NotChosen is set if the agent is left out by the choice.
	NotChosen ListingState = "left out"
)

// Problem is a problem of a file or folder.
type Problem struct {
	Path  string
	Error string
	// Skipped is the number of unusable items of the file.
	Skipped int64
}
