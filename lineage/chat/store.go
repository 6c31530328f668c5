package chat

import (
	"context"
	"iter"
)

// Store keeps chats. All methods are safe for concurrent use, and every call sees the changes of earlier calls.
// Package chattest tests implementations against these comments.
//
// Messages, branches and checkpoints are looked up in one chat. If only another chat has an id, the error is
// ErrOtherChat, and nothing else of that chat is returned. It depends on the store whether several chats may have
// messages with the same id: see On.
type Store interface {
	// CreateChat creates a chat with an empty, active branch named MainBranch. If the id is taken, the error is
	// ErrExists.
	CreateChat(ctx context.Context, c Chat) (Chat, error)
	// UpsertChat returns the chat with the id. If there is none, it creates it like CreateChat. An existing chat is
	// not changed. If it has another user, the error is ErrOtherUser; if it has no user, ErrNoUser.
	UpsertChat(ctx context.Context, c Chat) (Chat, error)
	// Chat returns a chat, nil if there is none.
	Chat(ctx context.Context, id string) (*Chat, error)
	// UpdateChat replaces the fields that the update sets.
	UpdateChat(ctx context.Context, id string, u ChatUpdate) (Chat, error)
	// ChangeChat applies the update that change returns for the current chat, atomically: nothing that another caller
	// or process writes in the meantime is overwritten. change may be called again if the chat has changed, and must
	// not use the store. If it returns an error, nothing is changed and the error is returned as it is. A store that
	// cannot do this atomically returns errors.ErrUnsupported and does not call change.
	ChangeChat(ctx context.Context, id string, change func(Chat) (ChatUpdate, error)) (Chat, error)
	// ListChats yields the chats that match the options, last updated first.
	ListChats(ctx context.Context, o ListOptions) iter.Seq2[ChatInfo, error]
	// DeleteChat deletes a chat with everything in it, and reports whether there was a chat to delete. Its ids become
	// free.
	DeleteChat(ctx context.Context, id string, o DeleteOptions) (bool, error)

	// AddMessage adds a message after its parent, or as a root. It moves no branch. If the id exists and the message
	// is the same, nothing happens: see Message.Same. Otherwise the error is ErrExists, or ErrOtherChat if another
	// chat has the id and ids are unique in the store.
	AddMessage(ctx context.Context, m Message) error
	// Message returns a message of a chat, nil if there is none.
	Message(ctx context.Context, chatID, id string) (*Message, error)
	// MessageChain yields the messages from the root to the one with the id, however many. It yields nothing if there
	// is no such message. It starts after a parent that is not in the chat.
	MessageChain(ctx context.Context, chatID, id string) iter.Seq2[Message, error]
	// Ancestors yields the same messages from the one with the id to the root. The cost depends on the number of
	// messages read, not on the length of the chain.
	Ancestors(ctx context.Context, chatID, id string) iter.Seq2[Message, error]
	// CountMessages returns the length of that chain, 0 if there is none. It reads no messages.
	CountMessages(ctx context.Context, chatID, id string) (int, error)
	// HasChildren reports whether a message is the parent of another one of its chat.
	HasChildren(ctx context.Context, chatID, id string) (bool, error)
	// Messages yields the messages of the active branch, oldest first. If there is no such chat, the error is
	// ErrNotFound.
	Messages(ctx context.Context, chatID string) iter.Seq2[Message, error]

	// CreateBranch creates a branch. An empty id is replaced by a new one. If the branch is active, the previous
	// active branch no longer is. If the id or name is taken, the error is ErrExists.
	CreateBranch(ctx context.Context, b Branch) (Branch, error)
	// Branch returns the branch of a chat with a name, nil if there is none.
	Branch(ctx context.Context, chatID, name string) (*Branch, error)
	// ActiveBranch returns the active branch of a chat, nil if there is no such
	// chat.
	ActiveBranch(ctx context.Context, chatID string) (*Branch, error)
	// SetActiveBranch makes a branch of the chat the active one.
	SetActiveBranch(ctx context.Context, chatID, branchID string) error
	// UpdateBranchHead moves a branch to any message of its chat, or to none.
	UpdateBranchHead(ctx context.Context, chatID, branchID string, head Ref) error
	// ListBranches returns the branches of a chat, oldest first.
	ListBranches(ctx context.Context, chatID string) ([]BranchInfo, error)
	// BranchNames returns names of branches of a chat that start with a prefix, up to a limit, in any order.
	BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error)
	// TakenBranchNames returns those of the names that branches of a chat have, in any order.
	TakenBranchNames(ctx context.Context, chatID string, names []string) ([]string, error)

	// Summaries returns the summaries of parts of a branch's history, ordered by their start. It returns none if the
	// store keeps no summaries or there is no such branch.
	Summaries(ctx context.Context, chatID, branchID string) ([]Summary, error)

	// CreateCheckpoint sets a checkpoint at a message. An existing checkpoint with the name is moved: it gets the new
	// time and keeps its id. The result has that id.
	CreateCheckpoint(ctx context.Context, c Checkpoint) (Checkpoint, error)
	// Checkpoint returns the checkpoint of a chat with a name, nil if there is none.
	Checkpoint(ctx context.Context, chatID, name string) (*Checkpoint, error)
	// ListCheckpoints returns the checkpoints of a chat, newest first.
	ListCheckpoints(ctx context.Context, chatID string) ([]Checkpoint, error)
	// DeleteCheckpoint deletes a checkpoint, if there is one.
	DeleteCheckpoint(ctx context.Context, chatID, name string) error

	// SearchMessages returns the matching messages of a chat, best first. It searches texts and the input and output
	// of tools, not the rest of the data. A query consists of words, "phrases" and prefixes*, combined with AND (the
	// default), OR, NOT, NEAR and parentheses, as in SQLite's FTS5. Words match whatever their ending. If a text is
	// not such a query, its words are searched for. A text without words finds nothing. More than 256 phrases
	// combined with OR and NOT are ErrInvalid. A store that cannot search returns ErrSearchUnavailable.
	SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error)
	// Graph returns everything in a chat, for drawing. It is empty if there is no such chat.
	Graph(ctx context.Context, chatID string) (Graph, error)

	// Append adds messages one after another and moves a branch to the last one, all or nothing. It returns the new
	// head. It is not one of the documented operations. These need a call for each step and can fail halfway.
	//
	// If the branch has another head than the request expects, the error is a *HeadError. If an id exists, the error
	// is ErrExists, even for the same message, or ErrOtherChat as in AddMessage.
	Append(ctx context.Context, r AppendRequest) (Ref, error)
}
