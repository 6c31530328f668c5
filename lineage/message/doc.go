// Package message is one model of messages: a role and typed parts. It reads plain text and
// the messages of the known formats, each recognised by its shape, and writes a history in the
// format that an API accepts.
//
//	history = append(history, message.Decode(body, "application/json", "assistant")...)
//	request, err := message.Encode(message.Anthropic, history)
//
// [Decode] refuses nothing: a shape that it does not know becomes a part of data.
//
// [Encode] writes what an API accepts. Formats divide a conversation differently: a call of a
// tool and its result are one part of a UI message, two messages of chat completions, two
// items of the Responses API, and blocks of two messages of the Messages API. Encode pairs
// calls with results and divides turns as the format does. What the format cannot express is
// written as text or left out, and reported as a [Loss]. A message that the API accepts as it
// was given is written byte for byte.
//
// [Convert] writes one message for an archive, where nobody refuses anything: no loss but of
// shape, and nothing about the messages around it.
package message
