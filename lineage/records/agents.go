package records

// AgentEntry is the configuration entry that makes a coding agent start a server.
type AgentEntry struct {
	Agent string `json:"agent"`
	// Path is the file of the agent's configuration. Entry is the entry in its format.
	Path  string `json:"path,omitempty"`
	Entry string `json:"entry,omitempty"`
	// Command is the command that adds the entry, if the agent has one.
	Command []string `json:"command,omitempty"`
	// Written is set if the entry was added to the file.
	Written bool `json:"written"`
}

func (*AgentEntry) RecordType() string { return "agent_entry" }

// LoginEntry is what makes a system start a program when its user logs in.
type LoginEntry struct {
	// Path is the file of the entry, and Entry its content.
	Path  string `json:"path"`
	Entry string `json:"entry"`
	// Command is the command that starts the program now and at each login.
	Command []string `json:"command"`
	// Written is set if the file was written.
	Written bool `json:"written"`
}

func (*LoginEntry) RecordType() string { return "login_entry" }
