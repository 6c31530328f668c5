// Package chat is the documented store of chats: messages as nodes of a graph, with branches and checkpoints as
// pointers to them. [Store] has the documented operations under their documented names, without "get".
// Implementations decide where chats are kept. [On] keeps them in a lineage store.
//
// A message is immutable and has at most one parent, in the same chat. A chat may have any number of roots. A branch
// is a name for a message, its head, or for no message while it is empty. Exactly one branch of a chat is active. A
// checkpoint is a name for a message that does not move when messages are added.
//
// # Ids
//
// Ids are chosen by the caller: any text of 1 to [MaxID] bytes without a NUL. Ids of chats, messages, branches and
// checkpoints are each unique in the store. Names of branches and checkpoints are unique in their chat.
//
// # Errors
//
// Asking for a single thing that does not exist is not an error: the answer is nil. A change that refers to something
// that does not exist is [ErrNotFound]. Errors about a thing are an [*Error], which names it. A failed change has no
// effect.
package chat
