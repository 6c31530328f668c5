package message

import "github.com/lineage-store/lineage/internal/rawjson"

// clineRequest reads the usage that a task of Cline or Roo Code states for a finished request. Its input does not
// include cached tokens.
func clineRequest(f pairs) []Answer {
	a := Answer{Requests: 1, Cost: cost(f.get("cost"))}
	for key, kind := range map[string]TokenKind{"tokensIn": Input, "tokensOut": Output, "cacheReads": CachedInput, "cacheWrites": CacheWrite} {
		if n, ok := number(f.get(key)); ok {
			a.Tokens.Set(kind, n)
		}
	}
	if rawjson.IsNull(f.get("ts")) {
		return nil
	}
	a.ID = "cline:" + string(f.get("ts")) + ":" + string(f.get("tokensIn")) + ":" + string(f.get("tokensOut"))
	return []Answer{a}
}
