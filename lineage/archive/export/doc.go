// Package export writes conversations in formats for other programs and for people.
//
// [Write] writes the content of a [Scope]: a context, threads with all their branches, or the whole
// store. The same store gives the same bytes. It holds one message in memory in the formats for
// people and with [Options.AsGiven], and one history in the formats for programs.
//
// The formats:
//
//   - openai: a line per history with messages of OpenAI's chat completions, and tools.
//   - responses: a line per history with input items of OpenAI's Responses API.
//   - anthropic: a line per history with the system prompt and messages of Anthropic's Messages API.
//   - sharegpt: a list of conversations with from and value. Calls of tools are turns of their own.
//   - markdown: for reading, with branches after the line they fork from.
//   - html: a self-contained page with collapsible branches and an index of prompts. The Markdown of
//     assistants is rendered; links, images and HTML in it are shown as text.
//
// [WriteSite] writes a folder of such pages with a list that is searched.
//
// Those for people write a transcript (package transcript): a call of a tool says what was run, with
// its results in it.
//
// Package message translates messages to the formats for programs, so that an API accepts the
// result: each call of a tool has its result, and roles are those of the API. What a format cannot
// express is a [Loss].
//
// With [Options.AsGiven], openai and sharegpt have messages byte for byte as they were given. openai
// adds the role and name to a message that states none, and takes what is not an object as the
// content of a message. sharegpt writes turns of other formats as text. Histories of text and of
// messages imported from the format then have equal digests when they are imported again.
//
// The formats for programs have no branches: each end of a thread's histories is a separate
// conversation. The system prompt in force for a context is its first message, unless its history
// begins with the same system message. An import makes it a message of the history.
//
// markdown and html do not show system prompts of contexts, because branches that share messages
// may have different ones.
//
// Erased content is replaced by a marker. Ids, times, origins, models and other settings of
// contexts are lost; only a bundle keeps them.
package export
