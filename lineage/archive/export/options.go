package export

import "github.com/lineage-store/lineage/lineage"

// Format is an output format.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"
	Responses Format = "responses"
	Anthropic Format = "anthropic"
	ShareGPT  Format = "sharegpt"
	Markdown  Format = "markdown"
	HTML      Format = "html"
)

// Scope selects what is written. The zero Scope selects the whole store.
type Scope struct {
	// Context is a single history, without branches.
	Context *lineage.Context
	// Threads are written in this order, with all their branches.
	Threads []*lineage.Thread
}

// Options configure Write. The zero value of each field is its default.
type Options struct {
	Scope Scope
	// AsGiven writes messages as they were stored instead of as the API accepts them. Only OpenAI and ShareGPT
	// support it. See the package documentation.
	AsGiven bool
	// Lost, when not nil, is called for each thing that the format cannot express.
	Lost func(Loss)
	// Progress, when not nil, is called with the number of threads that were written or left out, and of all.
	Progress func(done, total int)
	// Title is the heading of a page. Default: the title of the thread if there is one thread.
	Title string
	// MaxBody is the maximum size of a message. Default 64 MiB. A larger message is an error in formats for programs.
	// Formats for people write the start of its texts and a note.
	MaxBody int64
	// MaxImage is the maximum size of an image on a page. Default 4 MiB. Larger ones are only
	// named.
	MaxImage int64
}

const (
	defaultMaxBody  = lineage.MostBody
	defaultMaxImage = 4 << 20
)

// Loss is a part of a conversation that a format cannot express.
type Loss struct {
	// Thread is zero for a context outside of threads.
	Thread lineage.ThreadID
	lineage.Loss
}
