package message

import "github.com/lineage-store/lineage/internal/rawjson"

// codexCount reads an event of Codex that counts tokens.
func codexCount(payload pairs, model string) []Answer {
	if payload.text("type") != "token_count" {
		return nil
	}
	if rawjson.IsObject(payload.get("info")) {
		return codexUsage(pairsOf(payload.get("info")), "last_token_usage", "total_token_usage", model)
	}
	if payload.get("input_tokens") != nil { // early versions
		var total Answer
		if total.read(new(object).raw("input_tokens", payload.get("input_tokens")).raw("cached_input_tokens", orNull(payload.get("cached_input_tokens"))).
			raw("output_tokens", orNull(payload.get("output_tokens"))).raw("reasoning_output_tokens", orNull(payload.get("reasoning_output_tokens"))).bytes()) {
			return []Answer{{Model: model, Requests: 1, Total: &total.Tokens}}
		}
	}
	return nil
}

func orNull(raw []byte) []byte {
	if raw == nil {
		return []byte("null")
	}
	return raw
}

// codexUsage reads the usage of an answer and the counter of the session.
func codexUsage(f pairs, last, total string, model string) []Answer {
	a := Answer{Model: model, Requests: 1}
	a.LastStated = rawjson.IsObject(f.get(last)) && a.read(f.get(last))
	if id := f.text("response_id"); id != "" {
		a.ID = "codex:" + id
	}
	var sum Answer
	if rawjson.IsObject(f.get(total)) && sum.read(f.get(total)) {
		a.Total = &sum.Tokens
	}
	if !a.LastStated && a.Total == nil {
		return nil
	}
	return []Answer{a}
}

// copilotRecord reads the record of an answer of Copilot CLI. The id that it has from the provider may be that of another
// answer, too: local ones begin again to count.
func copilotRecord(usage []byte) []Answer {
	a := Answer{Model: rawjson.Str(rawjson.Last(usage, "model")), Requests: 1}
	if !a.read(usage) {
		return nil
	}
	a.Cost = "" // it is in requests of a plan, not in money
	accounting := rawjson.Last(usage, "accounting")
	if session, number := rawjson.Str(rawjson.Last(accounting, "sourceSessionId")), rawjson.Last(accounting, "sequence"); session != "" && number != nil {
		a.ID = "copilot:" + session + ":" + string(number)
	}
	return []Answer{a}
}

// copilotTotals reads the tokens per model that Copilot CLI states at the end of a session. Its messages state the
// output only, in versions up to 1.0.80.
func copilotTotals(metrics []byte) (all []Answer) {
	for m := range rawjson.Members(metrics) {
		a := Answer{Model: m.Key}
		if !a.read(rawjson.Last(m.Value, "usage")) {
			continue
		}
		a.Tokens.known &^= 1<<Output | 1<<Reasoning
		a.Tokens.counts[Output], a.Tokens.counts[Reasoning] = 0, 0
		if n, ok := number(rawjson.Last(rawjson.Last(m.Value, "requests"), "count")); ok {
			a.Covers = n
		}
		if len(all) < maxAnswers {
			all = append(all, a)
		}
	}
	return all
}

// maxAnswers limits the answers of one record.
const maxAnswers = 64
