// Package chat is the documented store of chats: messages as nodes of a graph,
// branches and checkpoints as pointers into it. [Store] has its operations, under
// their documented names without the "get"; what keeps the chats is up to the
// implementation. [On] keeps them in a lineage store.
//
// A message is immutable and has at most one parent, which is of the same chat. A
// chat has any number of roots. A branch is a name for a message, its head, or
// for none while it is empty; exactly one branch of a chat is active. A checkpoint
// is a name that stays where it is put.
//
// # Ids
//
// Ids are the caller's: any text of 1 to [MaxID] bytes without a NUL. Those of
// chats, messages, branches and checkpoints are each unique in the store; names of
// branches and checkpoints are unique in their chat.
//
// # Errors
//
// Asking for one thing that is not there is no error: the answer is nil. A change
// that refers to something that is not there is [ErrNotFound]. Errors about a
// thing are an [*Error], which names it. A change that fails leaves nothing of
// itself behind.
package chat
