package message

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Record is a stored record that may state the usage of a model's answer: a message, or a record that an agent keeps
// beside the messages.
type Record struct {
	// Body is the stored body. Its texts are not read and may be missing.
	Body []byte
	// Role and Model are those of the message.
	Role, Model string
	// Metadata is a JSON object with the members around the message, nil for none.
	Metadata []byte
}

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

// MayStateUsage reports whether records of a role may state usage. For other records Usage returns nothing, unless
// they are a whole response of an API.
func MayStateUsage(role string) bool {
	switch role {
	case "assistant", "model", "tool", "gemini", "progress", "event_msg", "token_usage_record", "session.shutdown", "usage_ledger", "api_req_started":
		return true
	}
	return false
}

// Once adds answers to a list. If several have the same id, the last one counts.
func Once(all []Answer, more ...Answer) []Answer {
	for _, a := range more {
		i := -1
		if a.ID != "" {
			i = slices.IndexFunc(all, func(b Answer) bool { return b.ID == a.ID })
		}
		if i < 0 {
			all = append(all, a)
		} else {
			all[i] = a
		}
	}
	return all
}

// MentionsUsage reports whether a document may contain something that Usage reads. It is fast.
func MentionsUsage(document []byte) bool {
	return bytes.Contains(document, []byte("oken")) || bytes.Contains(document, []byte("sage")) || bytes.Contains(document, []byte("cost"))
}

// Usage returns the answers whose usage a record states. It is the only place that knows where a format keeps tokens,
// models and the provider's ids of answers. The answers do not share memory with the record.
func Usage(r Record) []Answer {
	if !rawjson.Valid(r.Metadata) {
		r.Metadata = nil
	}
	if r.Body = trim(r.Body); !rawjson.IsObject(r.Body) || !rawjson.Valid(r.Body) {
		r.Body = nil // a text; its metadata may state usage
	}
	if r.Body == nil && r.Metadata == nil {
		return nil
	}
	f := fieldsOf(r.Body)
	switch kind := f.text("type"); {
	case kind == "token_usage_record" && rawjson.IsObject(f["payload"]): // Codex, from 0.171
		return codexUsage(fieldsOf(f["payload"]), "usage", "thread_token_usage", r.Model)
	case kind == "event_msg" && rawjson.IsObject(f["payload"]): // Codex
		return codexCount(fieldsOf(f["payload"]), r.Model)
	case r.Role == "api_req_started": // a task of Cline or Roo Code
		return clineRequest(f)
	case r.Role == "usage_ledger": // Goose
		a := Answer{ID: f.text("usage_id"), Model: f.text("model"), Requests: 1, Cost: cost(f["cost"])}
		if !a.read(r.Body) && a.Cost == "" {
			return nil
		}
		return []Answer{a}
	case kind == "session.shutdown" && rawjson.IsObject(f["data"]): // Copilot CLI
		return copilotTotals(rawjson.Last(f["data"], "modelMetrics"))
	case kind == "progress" && rawjson.Str(rawjson.Last(f["data"], "type")) == "agent_progress": // Claude Code, of a subagent
		line := rawjson.Last(f["data"], "message")
		if rawjson.Str(rawjson.Last(line, "type")) != "assistant" {
			return nil
		}
		return Usage(Record{Body: line, Role: "assistant", Model: r.Model})
	case (kind == "assistant" || kind == "response_item") && (rawjson.IsObject(f["message"]) || rawjson.IsObject(f["payload"])):
		inner, _ := enveloped(f) // a whole line
		if inner == nil {
			return nil
		}
		return Usage(Record{Body: inner, Role: "assistant", Model: r.Model, Metadata: r.Body})
	}
	a, ok := answer(f, &r)
	if !ok {
		return nil
	}
	return []Answer{a}
}

// answer reads a message that states its usage.
func answer(f fields, r *Record) (a Answer, ok bool) {
	var all fields
	around := func(key string) []byte {
		if all == nil {
			all = fieldsOf(r.Metadata)
		}
		return all[key]
	}
	info := f
	if rawjson.IsObject(f["info"]) && rawjson.IsArray(f["parts"]) { // OpenCode
		info = fieldsOf(f["info"])
	}
	switch role := info.text("role"); {
	case r.Role == "tool" && (role == "" || role == "tool"): // a program that ran a model may state it of its result
		f, info = nil, nil
	case role == "assistant", role == "model":
	case role == "" && (r.Role == "assistant" || r.Role == "model" || f.text("type") == "gemini"):
	case f.text("object") == "chat.completion", f.text("object") == "response":
	default:
		return a, false
	}
	a = Answer{Requests: 1, Model: info.first("model", "modelID"), Provider: info.first("provider", "providerID")}
	if rawjson.IsObject(info["model"]) { // OpenCode
		model := fieldsOf(info["model"])
		a.Model, a.Provider = model.first("modelID", "id"), model.text("providerID")
	}
	if a.Model == "" {
		a.Model = r.Model
	}
	if a.Model == "<synthetic>" { // Claude Code wrote it, no model
		return a, false
	}
	switch {
	case rawjson.IsObject(info["tokens"]): // OpenCode, Gemini CLI
		ok = a.read(info["tokens"])
		if id := f.text("id"); id != "" && f.text("type") == "gemini" {
			a.ID = "gemini:" + id // the program writes an answer again under its id
		}
		a.Cost = cost(info["cost"])
	case rawjson.IsObject(f["usage"]):
		ok = a.read(f["usage"])
		switch id := f.text("id"); {
		case f.text("responseId") != "": // pi
			a.ID = "pi:" + f.text("responseId")
		case strings.HasPrefix(id, "msg_") || f.text("type") == "message" && id != "": // Anthropic
			a.ID = "anthropic:" + id + ":" + rawjson.Str(rawjson.Last(r.Metadata, "requestId"))
		case strings.HasPrefix(id, "resp_"), strings.HasPrefix(id, "chatcmpl-"): // OpenAI, a whole response
			a.ID = "response:" + id
		}
	case rawjson.IsString(f["bubbleId"]) && rawjson.IsObject(f["tokenCount"]): // Cursor, which states zeros where it does not know
		if ok = a.read(f["tokenCount"]); a.Tokens.of == [TokenKinds]int64{} {
			return a, false
		}
		a.ID = "cursor:" + f.text("bubbleId")
	case f["step_id"] != nil && rawjson.IsObject(f["metrics"]): // ATIF
		if rawjson.IsTrue(f["is_copied_context"]) {
			return a, false
		}
		ok = a.read(f["metrics"])
		a.Cost = cmp.Or(a.Cost, cost(rawjson.Get(f["metrics"], "cost_usd")))
	case rawjson.Get(f["metrics"], "inputTokens") != nil: // Cline
		ok = a.read(f["metrics"])
		a.Provider = rawjson.Str(rawjson.Get(f["modelInfo"], "provider"))
		if id := f.text("id"); id != "" {
			a.ID = "cline:" + id
		}
	case rawjson.IsObject(f["usage_metadata"]): // LangChain
		ok = a.read(f["usage_metadata"])
	case rawjson.IsObject(f["usageMetadata"]): // Gemini
		ok = a.read(f["usageMetadata"])
	case rawjson.IsObject(around("usageMetadata")): // Qwen Code
		ok = a.read(around("usageMetadata"))
	case rawjson.IsObject(rawjson.Last(f["metadata"], "usage")): // UI messages
		ok = a.read(rawjson.Last(f["metadata"], "usage"))
	case rawjson.IsObject(rawjson.Last(f["metadata"], "totalUsage")):
		ok = a.read(rawjson.Last(f["metadata"], "totalUsage"))
	case rawjson.IsObject(around("usage")): // what a program states of a message that it appends
		ok = a.read(around("usage"))
	case rawjson.IsObject(around("totalUsage")):
		ok = a.read(around("totalUsage"))
	case around("input_tokens") != nil, around("inputTokens") != nil, around("output_tokens") != nil, around("outputTokens") != nil, around("prompt_tokens") != nil, around("promptTokens") != nil:
		ok = a.read(r.Metadata)
	case rawjson.IsObject(rawjson.Last(around("result"), "usage")): // VS Code
		ok = a.read(rawjson.Last(around("result"), "usage"))
	case f["outputTokens"] != nil: // Copilot CLI
		ok = a.read(new(object).raw("outputTokens", f["outputTokens"]).bytes())
	}
	if a.Model == "unknown" && a.Provider == "unknown" && a.Tokens.of == [TokenKinds]int64{} { // translated for pi, no model wrote it
		return a, false
	}
	if a.Cost == "" && bytes.Contains(r.Metadata, []byte("costUSD")) {
		a.Cost = cost(around("costUSD")) // Claude Code, of old versions
	}
	return a, ok || a.Cost != ""
}

// read reads an object with numbers of tokens. Its keys identify the format. ok is false if it has no numbers.
func (a *Answer) read(raw []byte) (ok bool) {
	u := fieldsOf(raw)
	details := func(keys ...string) fields {
		for _, key := range keys {
			if rawjson.IsObject(u[key]) {
				return fieldsOf(u[key])
			}
		}
		return nil
	}
	c := counts{}
	in := details("input_tokens_details", "prompt_tokens_details", "input_token_details", "inputTokenDetails", "cache")
	out := details("output_tokens_details", "completion_tokens_details", "output_token_details", "outputTokenDetails")
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
	switch {
	case u["cache_read_input_tokens"] != nil, u["cache_creation_input_tokens"] != nil, u["cacheRead"] != nil, rawjson.IsObject(u["cache"]):
		c.apart = true // Anthropic, pi, OpenCode: the input does not include cached tokens
	}
	if u["candidatesTokenCount"] != nil || u["thoughts"] != nil || rawjson.IsObject(u["cache"]) {
		c.outputApart() // Gemini, OpenCode
	}
	c.into(&a.Tokens)
	if split := details("cache_creation"); split != nil {
		short, hour := first(split, "ephemeral_5m_input_tokens"), first(split, "ephemeral_1h_input_tokens")
		if hour != nil {
			a.Tokens.Set(CacheWrite1h, *hour)
			rest := int64(0)
			if c.written != nil && *c.written > *hour {
				rest = *c.written - *hour
			} else if c.written == nil && short != nil {
				rest = *short
			}
			a.Tokens.Set(CacheWrite, rest)
		}
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
		if a.Cost = cost(u["cost"]); a.Cost == "" {
			a.Cost = cost(rawjson.Last(u["cost"], "total"))
		}
	}
	return a.Tokens.known != 0 || c.total != nil
}
