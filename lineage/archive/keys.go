package archive

// Keys of the metadata of threads that are sessions of agents. Each is missing where the session does not state it.
const (
	// KeyAgent is the name of the agent: of the format, unless a follower knows that another agent has written it.
	KeyAgent = "agent"
	// KeyVersion is the version of the program that wrote the last record.
	KeyVersion = "agentVersion"
	// KeyModel is the model that wrote the last answer, or that was set after it.
	KeyModel = "model"
	// KeyProject is the folder in which the session began, KeyGitBranch the branch that was checked out then.
	KeyProject   = "cwd"
	KeyGitBranch = "gitBranch"
	// KeyMachine is the name of the machine on which the session was found.
	KeyMachine = "machine"
)
