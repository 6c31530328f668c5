// Package transcript turns a history into what people read: prompts, answers, calls of tools with
// their results, files, and notes about the rest.
//
// A [Message] is a message as a store has it, in any format that package message reads. [Items]
// returns what one message says. [All] returns what a history says, with each result in the call
// that it answers; [Pairer] does the same for histories that arrive in pieces or fork. [Line] is a
// message in one line, and [Title] the title of a conversation.
//
// Nothing is lost: each part of a message that is not blank is one item, or the result in the item
// of its call. A text longer than [Options.MaxText] is cut, and the item states how much is left out.
//
// Texts are data. They may have control characters and markup; whoever shows them removes or
// escapes these.
package transcript
