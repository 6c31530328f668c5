// Package summarize condenses histories: [Extractive] picks the sentences that
// say most and needs no network, [Client] asks a model behind an OpenAI-compatible
// endpoint. Both are a lineage.Summarizer; the client embeds, too.
package summarize
