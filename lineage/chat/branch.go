package chat

// Branch is a name for a message of a chat, its head.
type Branch struct {
	ID            string `json:"id"`
	ChatID        string `json:"chatId"`
	Name          string `json:"name"`
	HeadMessageID Ref    `json:"headMessageId"`
	IsActive      bool   `json:"isActive"`
	// CreatedAt is in Unix milliseconds; 0 in a new branch is now.
	CreatedAt int64 `json:"createdAt"`
}

// BranchInfo is a branch with the length of its chain.
type BranchInfo struct {
	Branch
	MessageCount int `json:"messageCount"`
}

// Summary stands for the messages from First to Last of a branch's chain, counted from 1.
type Summary struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Text  string `json:"text"`
	// Level is 0 for a summary of messages, and greater for a summary of summaries.
	Level int `json:"level"`
}

// Checkpoint is a name for a message of a chat. Unlike a branch, it does not move when messages are added.
type Checkpoint struct {
	// ID may be empty in a new checkpoint, which then gets a new id.
	ID        string `json:"id"`
	ChatID    string `json:"chatId"`
	Name      string `json:"name"`
	MessageID string `json:"messageId"`
	// CreatedAt is in Unix milliseconds; 0 in a new checkpoint is now.
	CreatedAt int64 `json:"createdAt"`
}
