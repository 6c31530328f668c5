// Package export writes conversations in formats that other programs and people
// read.
//
// [Write] writes what a [Scope] names: one context, threads with all their
// branches, or the whole store. It streams: a message is held in memory, not a
// history. The same store gives the same bytes.
//
// The formats:
//
//   - openai: a conversation a line, as chat and fine-tuning endpoints take it.
//     Histories of text and of messages that came from this format come back
//     with equal digests when they are imported.
//   - sharegpt: a list of conversations with from and value; the same holds, but
//     what other formats say of calls becomes turns of this one.
//   - markdown: to read, with the branches after the line they leave.
//   - html: one page that needs nothing else, with branches to unfold. The Markdown of
//     assistants is rendered; links, images and HTML in it are shown as text.
//
// openai and sharegpt know no branches: each end of a thread's histories is a
// conversation of its own. The system prompt that is in force for a context is its first
// message, unless its history begins with a system message of that text. An import
// takes it for a message of the history, which it is from then on.
//
// markdown and html say what was said, and no system prompt of a context: branches that
// share messages may have different ones.
//
// Content that was erased leaves a marker. What is lost, ids, times, origins, models
// and other settings of contexts among it, only a bundle keeps.
package export
