package message

import (
	"cmp"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// clineRequest reads the usage that a task of Cline or Roo Code states for a finished request. Its input does not include cached
// tokens, except in Roo Code since October 2025, and before for models with the protocol of OpenAI. Roo Code names the protocol.
func clineRequest(f pairs) []Answer {
	if rawjson.IsNull(f.get("ts")) {
		return nil
	}
	model := f.get("modelInfo")
	a := Answer{
		ID:    "cline:" + string(f.get("ts")) + ":" + string(f.get("tokensIn")) + ":" + string(f.get("tokensOut")),
		Model: cmp.Or(rawjson.Str(rawjson.Last(model, "modelId")), f.text("model")), Provider: rawjson.Str(rawjson.Last(model, "providerId")),
		Requests: 1, Cost: cost(f.get("cost")),
	}
	n := make(map[TokenKind]int64)
	for key, kind := range map[string]TokenKind{"tokensIn": Input, "tokensOut": Output, "cacheReads": CachedInput, "cacheWrites": CacheWrite} {
		if tokens, ok := number(f.get(key)); ok {
			n[kind] = tokens
		}
	}
	if cached := n[CachedInput] + n[CacheWrite]; f.text("apiProtocol") != "" && 0 < cached && cached <= n[Input] {
		n[Input] -= cached
	}
	for kind, tokens := range n {
		a.Tokens.Set(kind, tokens)
	}
	return []Answer{a}
}
