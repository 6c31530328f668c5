// Package export writes conversations in formats for other programs and for people.
//
// [Write] writes the content of a [Scope]: a context, threads with all their branches, or the whole
// store. It streams: it holds one message in memory, not a history. The same store gives the same
// bytes.
//
// The formats:
//
//   - openai: a conversation per line, for chat and fine-tuning endpoints. Histories of
//     text, and of messages imported from this format, have equal digests when they
//     are imported again.
//   - sharegpt: a list of conversations with from and value; the same holds, except that
//     tool calls of other formats become turns of this one.
//   - markdown: for reading, with branches after the line they fork from.
//   - html: a self-contained page with collapsible branches. The Markdown of assistants
//     is rendered; links, images and HTML in it are shown as text.
//
// openai and sharegpt have no branches: each end of a thread's histories is a separate
// conversation. The system prompt in force for a context is its first message, unless its history
// begins with the same system message. An import makes it a message of the history.
//
// markdown and html do not show system prompts of contexts, because branches that share messages
// may have different ones.
//
// Erased content is replaced by a marker. Ids, times, origins, models and other settings of
// contexts are lost; only a bundle keeps them.
package export
