package engine

// ResolveOptions configure Resolve.
type ResolveOptions struct {
	// Renderer renders the context. Default XMLRenderer.
	Renderer Renderer
	// Last, when not zero, limits the number of messages: the last ones with content are sent,
	// including pending ones.
	Last int
	// Budget, when not zero, limits the total number of tokens. As many of the latest messages as
	// fit are sent.
	Budget int
	// Tokens counts the tokens of a text. Default lineage.EstimateTokens.
	Tokens func(text string) int
	// AllRevisions sends all revisions of a document, and not only the latest.
	AllRevisions bool
}
