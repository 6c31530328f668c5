package transcript

import (
	"time"
	"unicode/utf8"
)

// Message is a message of a history, or a document or file in it.
type Message struct {
	// Position is its position in the history, from 1, and ID its id in the store.
	Position uint64
	ID       string
	// Role, Name and Model say who wrote it.
	Role, Name, Model string
	Created           time.Time
	// Type is the media type of Body, default text/plain. Size, when not zero, is the size of what
	// is stored: Body is nil if that was not read, and may be the start of a text.
	Type string
	Body []byte
	Size int64
	// Erased is set if Body is nil because it was erased.
	Erased bool
	// Metadata is a JSON object with what the source of the message recorded beside it, or nil.
	Metadata []byte
	// Document and Revision are set for a revision of a document, Filename for a file.
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
	// Answer is what a model wrote, and Thinking its reasoning.
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
	// Command is a command that a person gave to an agent, such as /init, and not to the model.
	Command
	// Reminder is a text that a program put in the place of a person's.
	Reminder
	// Text is a text of another role, or a document.
	Text
	// Data is JSON of an unknown shape.
	Data
	// Note says that content is not here: it was erased or not read.
	Note
	// Mark is a value that a caller put into a history with [Pairer.Mark].
	Mark
)

func (k Kind) String() string {
	return [...]string{"prompt", "answer", "thinking", "call", "result", "file", "instruction", "command", "reminder", "text", "data", "note", "mark"}[k]
}

// Item is a part of what a history says.
type Item struct {
	Kind Kind
	// From is the message that it is from, nil for a mark.
	From *Message
	// Text is the text of all kinds but calls, results and files. Left is the number of bytes that
	// were cut from its end.
	Text string
	Left int
	// Tag is the name of the element around a reminder, such as system-reminder, or of data.
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
	// ID is empty if the format has none.
	ID, Tool string
	// Title is what is run, in one line: a command, a path, a query. It is empty for a call
	// without input.
	Title string
	// Text is the input in full, if it is mainly one text: the command of a shell, or an input that
	// is not JSON. Left is the number of bytes that were cut from it.
	Text string
	Left int
	// About is what the model says that the call does, in its input.
	About string
	// Diff is the change of an edit: lines that begin with a space, -, + or @@.
	Diff     string
	DiffLeft int
	// Rest is the JSON of the input that is not in Text, About or Diff, nil if there is none.
	Rest []byte
	// Results are in the order in which they came. Most calls have one or, if it is missing, none.
	Results []*ToolResult
}

// ToolResult is a result of a call.
type ToolResult struct {
	// From is the message that it is from.
	From *Message
	// Call is the call that it answers, nil if it is unknown.
	Call *ToolCall
	// ID and Tool are those of the call as the result states them.
	ID, Tool string
	Text     string
	Left     int
	Files    []*FileInfo
	// Failed is set if the call failed. Exit is the exit status of a command, if it is known.
	Failed bool
	Exit   *int

	diff string // the change of an edit, as the source of the message recorded it
}

// FileInfo describes an image or another file.
type FileInfo struct {
	// Kind is image, audio, video or file.
	Kind string
	// Name and Type are its file name and media type, if they are known.
	Name, Type string
	// URL is its address or a data: URL, empty if the content is elsewhere.
	URL string
	// Size is its size in bytes, 0 if it is not known.
	Size int64
}

// Options configure what is shown. The zero value shows everything.
type Options struct {
	// MaxText, when not zero, is the length in bytes from which a text is cut.
	MaxText int
}

// cut returns the start of a text, and how many bytes are left out.
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
