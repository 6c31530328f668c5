// Package message has one model for messages: a role and typed parts. It reads plain text and
// messages of the known formats, recognised by their shape, and writes a history in the format of
// an API.
//
//	history = append(history, message.Decode(body, "application/json", "assistant")...)
//	request, err := message.Encode(message.Anthropic, history)
//
// [Decode] accepts everything: an unknown shape becomes a data part.
//
// [Encode] writes what an API accepts. Formats split a conversation differently: a tool call and
// its result are one part of a UI message, two messages of chat completions, two items of the
// Responses API, and blocks in two messages of the Messages API. Encode pairs calls with results
// and splits turns as the format requires. What the format cannot express is written as text or
// omitted, and reported as a [Loss]. A message that the API accepts as it was given is written byte
// for byte.
package message
