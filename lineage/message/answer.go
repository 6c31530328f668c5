package message

import "github.com/lineage-store/lineage/internal/rawjson"

// Answer is an answer of a model, as stated by a record.
type Answer struct {
	// ID is the provider's id of the answer, after a prefix for the kind of record. It is empty if the record states
	// none.
	ID string
	// Model and Provider are empty if the record does not state them. Tier is the class of service, such as "batch",
	// empty for the standard one.
	Model, Provider, Tier string
	Tokens                Tokens
	// Requests is 1 for an answer. It is 0 for a record that adds tokens to answers stated elsewhere. Covers is the
	// number of these answers.
	Requests, Covers int64
	// Cost is the cost that the record states, in dollars as a decimal number, empty for none.
	Cost string
	// Total, when not nil, is a counter: the tokens of the session up to this answer. Two records of a session with
	// the same total state the same answer. Then Tokens belong to the last answer only if LastStated is set.
	Total      *Tokens
	LastStated bool
}

// read reads an object with numbers of tokens. ok is false if it has none.
func (a *Answer) read(raw []byte) (ok bool) {
	u := pairsOf(raw)
	c := readCounts(u)
	c.into(&a.Tokens)
	if split := details(u, "cache_creation"); split != nil {
		a.Tokens.setHourly(split, c.written)
	}
	switch tier := u.text("service_tier"); tier {
	case "", "standard", "default", "auto":
	default:
		a.Tier = tier
	}
	if speed := u.text("speed"); speed != "" && speed != "standard" && a.Tier == "" {
		a.Tier = speed
	}
	if a.Cost == "" {
		if a.Cost = cost(u.get("cost")); a.Cost == "" {
			a.Cost = cost(rawjson.Last(u.get("cost"), "total"))
		}
	}
	return a.Tokens.known != 0 || c.total != nil
}

// readCounts reads the numbers of an object. Its keys identify the format.
func readCounts(u pairs) (c counts) {
	in := details(u, "input_tokens_details", "prompt_tokens_details", "input_token_details", "inputTokenDetails", "cache")
	out := details(u, "output_tokens_details", "completion_tokens_details", "output_token_details", "outputTokenDetails")
	c.input = first(u, "input_tokens", "prompt_tokens", "promptTokenCount", "inputTokens", "promptTokens", "input")
	c.output = first(u, "output_tokens", "completion_tokens", "candidatesTokenCount", "outputTokens", "completionTokens", "output")
	c.total = first(u, "total_tokens", "totalTokenCount", "totalTokens", "total")
	c.cached = first(u, "cache_read_input_tokens", "cached_input_tokens", "cachedContentTokenCount", "cacheReadTokens", "cachedInputTokens", "cacheRead", "cached", "prompt_cache_hit_tokens", "cache_read_tokens", "cached_tokens")
	if c.cached == nil {
		c.cached = first(in, "cached_tokens", "cache_read", "cacheReadTokens", "read")
	}
	c.written = first(u, "cache_creation_input_tokens", "cache_write_input_tokens", "cacheWriteTokens", "cacheWrite", "cache_write_tokens")
	if c.written == nil {
		c.written = first(in, "cache_write_tokens", "cache_creation", "cacheWriteTokens", "write")
	}
	c.reasoning = first(u, "reasoning_output_tokens", "thoughtsTokenCount", "thoughts", "reasoningTokens", "reasoning")
	if c.reasoning == nil {
		c.reasoning = first(out, "reasoning_tokens", "reasoning", "reasoningTokens")
	}
	c.tool = first(u, "toolUsePromptTokenCount", "tool")
	if u.get("cache_read_input_tokens") != nil || u.get("cache_creation_input_tokens") != nil || u.get("cacheRead") != nil || rawjson.IsObject(u.get("cache")) {
		c.apart = true // Anthropic, pi, OpenCode: the input does not include cached tokens
	}
	if u.get("candidatesTokenCount") != nil || u.get("thoughts") != nil || rawjson.IsObject(u.get("cache")) {
		c.outputApart() // Gemini, OpenCode
	}
	return c
}

// details returns the first member of u under one of some keys that is an object.
func details(u pairs, keys ...string) pairs {
	for _, key := range keys {
		if rawjson.IsObject(u.get(key)) {
			return pairsOf(u.get(key))
		}
	}
	return nil
}

// setHourly sets the tokens that were written to the cache for an hour, and those for five minutes. written is the sum of both
// if the record states it.
func (t *Tokens) setHourly(split pairs, written *int64) {
	short, hour := first(split, "ephemeral_5m_input_tokens"), first(split, "ephemeral_1h_input_tokens")
	if hour == nil {
		return
	}
	t.Set(CacheWrite1h, *hour)
	rest := int64(0)
	switch {
	case written != nil:
		rest = max(*written-*hour, 0)
	case short != nil:
		rest = *short
	}
	t.Set(CacheWrite, rest)
}
