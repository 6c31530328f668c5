package summarize

import (
	"net/http"
	"time"
)

// Options configure a Client. Empty fields are set from the environment, else to their defaults.
type Options struct {
	// BaseURL of the API, including its version. Environment: OPENAI_BASE_URL. Required.
	BaseURL string
	// Key is sent as a bearer token if set. Environment: OPENAI_API_KEY.
	Key string
	// Model is the model for summaries. Environment: OPENAI_MODEL. Required by Summarize.
	Model string
	// EmbeddingModel is the model for embeddings. Environment: OPENAI_EMBEDDING_MODEL. Required by
	// Embed.
	EmbeddingModel string
	// Instructions tell the model how to summarize. The default asks for what is needed to continue
	// the conversation.
	Instructions string
	// MaxTokens limits the summary. Default 1,000.
	MaxTokens int
	// Timeout limits each attempt, including reading the response. Default one minute.
	Timeout time.Duration
	// Attempts limits the number of attempts per request. Default 4.
	Attempts int
	// Backoff is the wait after the first failed attempt; it doubles with each attempt, up to a
	// minute. A wait requested by the server takes precedence. If that is longer than a minute, its
	// APIError with RetryAfter is returned at once. Default 500 ms.
	Backoff time.Duration
	// HTTP is the client to use. Default: one without a timeout of its own.
	HTTP *http.Client
}
