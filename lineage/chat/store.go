package chat

import (
	"context"
	"iter"
)

// Store keeps chats. All methods are safe for concurrent use, and what a method
// changes is visible to every call after it. Package chattest checks that an
// implementation does what is said here.
//
// Messages, branches and checkpoints are looked up in one chat. An id that only another
// chat has is ErrOtherChat, and nothing else of that chat is returned. Whether several chats may
// have messages with the same id depends on the store: see On.
type Store interface {
	// CreateChat makes a chat with an empty, active branch named MainBranch. An id
	// that is taken is ErrExists.
	CreateChat(ctx context.Context, c Chat) (Chat, error)
	// UpsertChat returns the chat with the id, making it as CreateChat does if
	// there is none. A chat that is there stays as it is; if it is another user's,
	// that is ErrOtherUser, and if it has no user, ErrNoUser.
	UpsertChat(ctx context.Context, c Chat) (Chat, error)
	// Chat returns a chat, nil if there is none.
	Chat(ctx context.Context, id string) (*Chat, error)
	// UpdateChat replaces what the update says and leaves the rest.
	UpdateChat(ctx context.Context, id string, u ChatUpdate) (Chat, error)
	// ChangeChat does the update that change makes of the chat as it is, in one step:
	// nothing that another caller or process writes meanwhile is overwritten. change
	// may be called again when the chat was changed meanwhile, and must not use the
	// store. An error that it returns is passed on as it is, and nothing is changed. A
	// store that cannot do this in one step returns errors.ErrUnsupported and does not
	// call change.
	ChangeChat(ctx context.Context, id string, change func(Chat) (ChatUpdate, error)) (Chat, error)
	// ListChats yields the chats that pass the options, the one updated last first.
	ListChats(ctx context.Context, o ListOptions) iter.Seq2[ChatInfo, error]
	// DeleteChat deletes a chat with everything in it and reports whether there was
	// one to delete. Its ids are free again.
	DeleteChat(ctx context.Context, id string, o DeleteOptions) (bool, error)

	// AddMessage adds a message after its parent, or as a root. It moves no branch.
	// A known id is no error if the message is the same: see Message.Same.
	// Otherwise it is ErrExists, or ErrOtherChat if another chat has it and ids are unique in the store.
	AddMessage(ctx context.Context, m Message) error
	// Message returns a message of a chat, nil if there is none.
	Message(ctx context.Context, chatID, id string) (*Message, error)
	// MessageChain yields the messages from the root to the one with the id,
	// whatever their number; nothing if there is none. It ends where a parent is not
	// in the chat.
	MessageChain(ctx context.Context, chatID, id string) iter.Seq2[Message, error]
	// Ancestors yields the same messages from the one with the id to the root. Reading some of them costs
	// as much as they are, however long the chain is.
	Ancestors(ctx context.Context, chatID, id string) iter.Seq2[Message, error]
	// CountMessages returns the length of that chain, 0 if there is none. It reads no
	// message.
	CountMessages(ctx context.Context, chatID, id string) (int, error)
	// HasChildren reports whether a message is the parent of another one of its chat.
	HasChildren(ctx context.Context, chatID, id string) (bool, error)
	// Messages yields the messages of the active branch, oldest first. A chat that
	// is not there is ErrNotFound.
	Messages(ctx context.Context, chatID string) iter.Seq2[Message, error]

	// CreateBranch makes a branch. An empty id is replaced by a fresh one. A branch
	// that is to be active takes that from the one that was. An id or name that is
	// taken is ErrExists.
	CreateBranch(ctx context.Context, b Branch) (Branch, error)
	// Branch returns the branch of a chat with a name, nil if there is none.
	Branch(ctx context.Context, chatID, name string) (*Branch, error)
	// ActiveBranch returns the active branch of a chat, nil if there is no such
	// chat.
	ActiveBranch(ctx context.Context, chatID string) (*Branch, error)
	// SetActiveBranch makes a branch of the chat its active one.
	SetActiveBranch(ctx context.Context, chatID, branchID string) error
	// UpdateBranchHead moves a branch to any message of its chat, or to none.
	UpdateBranchHead(ctx context.Context, chatID, branchID string, head Ref) error
	// ListBranches returns the branches of a chat, oldest first.
	ListBranches(ctx context.Context, chatID string) ([]BranchInfo, error)
	// BranchNames returns names of branches of a chat that begin with a prefix, no more of
	// them than a limit, in no order.
	BranchNames(ctx context.Context, chatID, prefix string, limit int) ([]string, error)
	// TakenBranchNames returns those of some names that branches of a chat have, in no order.
	TakenBranchNames(ctx context.Context, chatID string, names []string) ([]string, error)

	// Summaries returns the summaries that stand for parts of a branch's history, in the order of
	// where these begin. A store that keeps no summaries, or no such branch, has none.
	Summaries(ctx context.Context, chatID, branchID string) ([]Summary, error)

	// CreateCheckpoint puts a checkpoint at a message. If the name is there, it
	// moves, with the time given, and keeps its id; the answer has that id.
	CreateCheckpoint(ctx context.Context, c Checkpoint) (Checkpoint, error)
	// Checkpoint returns the checkpoint of a chat with a name, nil if there is none.
	Checkpoint(ctx context.Context, chatID, name string) (*Checkpoint, error)
	// ListCheckpoints returns the checkpoints of a chat, newest first.
	ListCheckpoints(ctx context.Context, chatID string) ([]Checkpoint, error)
	// DeleteCheckpoint deletes a checkpoint, if there is one.
	DeleteCheckpoint(ctx context.Context, chatID, name string) error

	// SearchMessages returns the messages of a chat that match, best first. It looks in texts
	// and in the input and output of tools, not in the rest of the data. A query is words,
	// "phrases" and prefixes*, joined by AND (or nothing), OR, NOT, NEAR and parentheses, as
	// in SQLite's FTS5; words match whatever their ending. Text that is no such query is
	// searched for its words, and text without words finds nothing. More than 256 phrases
	// joined by OR and NOT are ErrInvalid. A store that cannot search answers
	// ErrSearchUnavailable.
	SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error)
	// Graph returns everything in a chat, for drawing. It is empty for a chat that
	// is not there.
	Graph(ctx context.Context, chatID string) (Graph, error)

	// Append adds messages one after another and moves a branch to the last: all of
	// that or nothing. It is not among the documented operations, which need a
	// call for each of its steps and so can fail halfway. It returns the new head.
	//
	// A branch with another head than the request expects is a *HeadError. An id that is known
	// is ErrExists, or ErrOtherChat as in AddMessage, even for the same message.
	Append(ctx context.Context, r AppendRequest) (Ref, error)
}
