package archive

// Keys in the metadata of threads that are sessions of agents. A key is absent if the session does not state the
// value.
const (
	// KeyAgent is the name of the agent: the name of the format, unless a follower knows that another agent wrote the
	// file.
	KeyAgent = "agent"
	// KeyVersion is the version of the program that wrote the last record.
	KeyVersion = "agentVersion"
	// KeyModel is the model that wrote the last answer, or that was chosen after it.
	KeyModel = "model"
	// KeyProject is the folder in which the session began. KeyGitBranch is the branch that was checked out then.
	KeyProject   = "cwd"
	KeyGitBranch = "gitBranch"
	// KeyCopiedFrom is the id of the session whose lines this one begins with. If that one is a copy, too, it is the first of them.
	KeyCopiedFrom = "copiedFrom"
	// KeyMachine is the name of the machine on which the session was found.
	KeyMachine = "machine"
)
