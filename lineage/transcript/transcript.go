package transcript

import (
	"time"
	"unicode/utf8"
)

// Message is a message of a history, or a document or file in it.
type Message struct {
	// Position is the position in the history, from 1. ID is the id in the store.
	Position uint64
	ID       string
	// Role, Name and Model identify the author.
	Role, Name, Model string
	Created           time.Time
	// Type is the media type of Body. Default text/plain. Size, when not zero, is the size of the stored body. Body
	// is then nil if it was not read, and may be only the start of a text.
	Type string
	Body []byte
	Size int64
	// Erased is set if Body is nil because it was erased.
	Erased bool
	// Metadata is a JSON object with what the source recorded beside the message, or nil.
	Metadata []byte
	// Document and Revision are set for a revision of a document. Filename is set for a file.
	Document string
	Revision uint64
	Filename string
}

// Kind is the kind of an item.
type Kind int

// The kinds of items.
const (
	// Prompt is what a person wrote.
	Prompt Kind = iota
	// Answer is what a model wrote. Thinking is its reasoning.
	Answer
	Thinking
	// Call is a call of a tool with its results.
	Call
	// Result is a result without a call before it, or one that came after its call was yielded.
	Result
	// File is an image or another file.
	File
	// Instruction is a system prompt.
	Instruction
	// Command is a command that a person gave to the agent, such as /init, and not to the model.
	Command
	// Reminder is a text that a program put into a message of a person.
	Reminder
	// Text is a text of another role, or a document.
	Text
	// Data is JSON of an unknown shape.
	Data
	// Note states that content is missing: it was erased or not read.
	Note
	// Mark is a value that a caller put into a history with [Pairer.Mark].
	Mark
)

func (k Kind) String() string {
	return [...]string{"prompt", "answer", "thinking", "call", "result", "file", "instruction", "command", "reminder", "text", "data", "note", "mark"}[k]
}

// Item is a part of a history's content.
type Item struct {
	Kind Kind
	// From is the message of the item, nil for a mark.
	From *Message
	// Text is the text of all kinds except calls, results and files. Left is the number of bytes that were cut from
	// its end.
	Text string
	Left int
	// Tag is the name of the element around a reminder, such as system-reminder, or around data.
	Tag string
	// Call, Result and File are set for these kinds.
	Call   *ToolCall
	Result *ToolResult
	File   *FileInfo
	// Value is the value of a mark.
	Value any
}

// ToolCall is a call of a tool.
type ToolCall struct {
	// ID is empty if the format has no ids.
	ID, Tool string
	// Title is the action of the call, in one line: a command, a path, a query. It is empty for a call without input.
	Title string
	// Text is the full input if it is mainly one text: the command of a shell, or an input that is not JSON. Left is
	// the number of bytes that were cut from it.
	Text string
	Left int
	// About is the model's description of the call, from its input.
	About string
	// Diff is the change of an edit: lines that begin with a space, -, + or @@.
	Diff     string
	DiffLeft int
	// Rest is the part of the JSON input that is not in Text, About or Diff, nil if there is none.
	Rest []byte
	// Results are in the order of their arrival. Most calls have one. A call without a result has none.
	Results []*ToolResult
}

// ToolResult is a result of a call.
type ToolResult struct {
	// From is the message with the result.
	From *Message
	// Call is the call of the result, nil if unknown.
	Call *ToolCall
	// ID and Tool are those of the call, as stated in the result.
	ID, Tool string
	Text     string
	Left     int
	Files    []*FileInfo
	// Failed is set if the call failed. Exit is the exit status of a command, if known.
	Failed bool
	Exit   *int

	diff string // the change of an edit, as recorded by the source of the message
}

// FileInfo describes an image or another file.
type FileInfo struct {
	// Kind is image, audio, video or file.
	Kind string
	// Name and Type are the file name and media type, if known.
	Name, Type string
	// URL is its address or a data: URL, empty if the content is elsewhere.
	URL string
	// Size is the size in bytes, 0 if unknown.
	Size int64
}

// Options configure what is shown. The zero value shows everything.
type Options struct {
	// MaxText, when not zero, is the length in bytes at which a text is cut.
	MaxText int
}

// cut returns the start of a text, and the number of bytes left out.
func (o Options) cut(text string) (string, int) {
	if o.MaxText <= 0 || len(text) <= o.MaxText {
		return text, 0
	}
	n := o.MaxText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], len(text) - n
}
