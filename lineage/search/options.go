package search

import (
	"context"
)

// FileName is the name of the index in a store's directory.
const FileName = "search.db"

// Embedder embeds texts. Both fields are required.
type Embedder struct {
	// Model names the model. All texts are embedded again when it changes.
	Model string
	// Embed returns a vector for each text, in the same order. Searches do not find a text whose
	// vector is empty, all zeros, or not finite. Embed is not called concurrently by one index.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
}

// Options configure an index.
type Options struct {
	// Progress, when not nil, is called during updates with the number of indexed commits.
	Progress func(done, total uint64)
	// Embedder embeds texts for searches by vector. Word searches do not call it.
	Embedder Embedder
}
