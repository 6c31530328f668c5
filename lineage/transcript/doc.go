// Package transcript turns a history into what people read: prompts, answers, tool calls with their results, files,
// and notes about the rest.
//
// A [Message] is a message as a store has it, in any format that package message reads. [Items] returns the items of
// one message. [All] yields the items of a history, with each result in its call. [Pairer] does the same for
// histories that arrive in pieces or fork. [Line] returns a message in one line, and [Title] the title of a
// conversation.
//
// Nothing is lost: each part of a message that is not blank is one item, or the result in the item of its call. A
// text longer than [Options.MaxText] is cut, and the item states how much was left out.
//
// Texts are data. They have no sequences for colours and styles of a terminal, but may contain other control characters, and
// markup. The code that shows them must remove or escape these.
package transcript
