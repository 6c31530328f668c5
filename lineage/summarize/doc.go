// Package summarize summarizes histories: [Extractive] selects important sentences and works
// offline, [Client] asks a model behind an OpenAI-compatible endpoint. Both are a
// lineage.Summarizer; the client also computes embeddings.
package summarize
