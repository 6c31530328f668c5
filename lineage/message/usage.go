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

// MayStateUsage reports whether records of a role may state usage. For other records Usage returns nothing, unless
// they are a whole response of an API.
func MayStateUsage(role string) bool {
	switch role {
	case "assistant", "model", "tool", "gemini", "progress", "event_msg", "token_usage_record", "session.shutdown", "session.usage_record", "usage_ledger", "api_req_started":
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
	f := pairsOf(r.Body)
	switch kind := f.text("type"); {
	case kind == "token_usage_record" && rawjson.IsObject(f.get("payload")): // Codex, from 0.171
		return codexUsage(pairsOf(f.get("payload")), "usage", "thread_token_usage", r.Model)
	case kind == "event_msg" && rawjson.IsObject(f.get("payload")): // Codex
		return codexCount(pairsOf(f.get("payload")), r.Model)
	case r.Role == "api_req_started": // a task of Cline or Roo Code
		return clineRequest(f)
	case r.Role == "usage_ledger": // Goose
		a := Answer{ID: f.text("usage_id"), Model: f.text("model"), Requests: 1, Cost: cost(f.get("cost"))}
		if !a.read(r.Body) && a.Cost == "" {
			return nil
		}
		return []Answer{a}
	case kind == "session.usage_record" && rawjson.IsObject(f.get("data")): // Copilot CLI, of versions after 1.0.80
		return copilotRecord(rawjson.Last(f.get("data"), "usage"))
	case kind == "session.shutdown" && rawjson.IsObject(f.get("data")): // Copilot CLI
		if rawjson.Has(f.get("data"), "usageAccountingWatermarks") { // of what the records of its answers state
			return nil
		}
		return copilotTotals(rawjson.Last(f.get("data"), "modelMetrics"))
	case kind == "progress" && rawjson.Str(rawjson.Last(f.get("data"), "type")) == "agent_progress": // Claude Code, of a subagent
		line := rawjson.Last(f.get("data"), "message")
		if rawjson.Str(rawjson.Last(line, "type")) != "assistant" {
			return nil
		}
		return Usage(Record{Body: line, Role: "assistant", Model: r.Model})
	case (kind == "assistant" || kind == "response_item") && (rawjson.IsObject(f.get("message")) || rawjson.IsObject(f.get("payload"))):
		inner, _ := enveloped(fieldsOf(r.Body)) // a whole line
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

// statement is a message that may state its usage.
type statement struct {
	*Record
	message pairs
	info    pairs // members about the model: those of the message, except for OpenCode
	members pairs // of the metadata, nil before they are needed
}

// around returns a member of the metadata, which a format keeps around the message.
func (s *statement) around(key string) []byte {
	if s.members == nil {
		s.members = pairsOf(s.Metadata)
	}
	return s.members.get(key)
}

// answer reads a message that states its usage.
func answer(f pairs, r *Record) (a Answer, ok bool) {
	s := &statement{Record: r, message: f, info: f}
	if rawjson.IsObject(f.get("info")) && rawjson.IsArray(f.get("parts")) { // OpenCode
		s.info = pairsOf(f.get("info"))
	}
	switch role := s.info.text("role"); {
	case r.Role == "tool" && (role == "" || role == "tool"): // a program that ran a model may state it of its result
		s.message, s.info = nil, nil
	case role == "assistant", role == "model":
	case role == "" && (r.Role == "assistant" || r.Role == "model" || f.text("type") == "gemini"):
	case f.text("object") == "chat.completion", f.text("object") == "response":
	default:
		return a, false
	}
	a = Answer{Requests: 1}
	if a.Model, a.Provider = s.model(); a.Model == "<synthetic>" { // Claude Code wrote it, no model
		return a, false
	}
	ok, counts := s.read(&a)
	if !counts || a.Model == "unknown" && a.Provider == "unknown" && a.Tokens.counts == [TokenKinds]int64{} { // translated for pi, no model wrote it
		return a, false
	}
	if a.Cost == "" && bytes.Contains(r.Metadata, []byte("costUSD")) {
		a.Cost = cost(s.around("costUSD")) // Claude Code, of old versions
	}
	return a, ok || a.Cost != ""
}

// model returns the model and the provider of the answer.
func (s *statement) model() (model, provider string) {
	model, provider = s.info.firstText("model", "modelID"), s.info.firstText("provider", "providerID")
	if rawjson.IsObject(s.info.get("model")) { // OpenCode
		m := pairsOf(s.info.get("model"))
		model, provider = m.firstText("modelID", "id"), m.text("providerID")
	}
	return cmp.Or(model, s.Model), provider
}

// read reads the tokens of the answer, its cost and its id, and reports whether it states tokens. counts is false if the answer
// must not be counted, whatever it costs: it is a copy, or the program did not know its tokens.
func (s *statement) read(a *Answer) (ok, counts bool) {
	f := s.message
	switch {
	case rawjson.IsObject(s.info.get("tokens")): // OpenCode, Gemini CLI
		ok = a.read(s.info.get("tokens"))
		if id := f.text("id"); id != "" && f.text("type") == "gemini" {
			a.ID = "gemini:" + id // the program writes an answer again under its id
		}
		a.Cost = cost(s.info.get("cost"))
	case rawjson.IsObject(f.get("usage")):
		ok = a.read(f.get("usage"))
		a.ID = s.responseID()
	case rawjson.IsString(f.get("bubbleId")) && rawjson.IsObject(f.get("tokenCount")): // Cursor, which states zeros where it does not know
		if ok = a.read(f.get("tokenCount")); a.Tokens.counts == [TokenKinds]int64{} {
			return false, false
		}
		a.ID = "cursor:" + f.text("bubbleId")
	case f.get("step_id") != nil && rawjson.IsObject(f.get("metrics")): // ATIF
		if rawjson.IsTrue(f.get("is_copied_context")) {
			return false, false
		}
		ok = a.read(f.get("metrics"))
		a.Cost = cmp.Or(a.Cost, cost(rawjson.Get(f.get("metrics"), "cost_usd")))
	case rawjson.Get(f.get("metrics"), "inputTokens") != nil: // Cline
		ok = a.read(f.get("metrics"))
		a.Provider = rawjson.Str(rawjson.Get(f.get("modelInfo"), "provider"))
		if id := f.text("id"); id != "" {
			a.ID = "cline:" + id
		}
	default:
		tokens := s.tokens()
		return tokens != nil && a.read(tokens), true
	}
	return ok, true
}

// responseID returns the id of an answer with usage, empty if it does not state its own.
func (s *statement) responseID() string {
	f := s.message
	switch id := f.text("id"); {
	case f.text("responseId") != "": // pi
		return "pi:" + f.text("responseId")
	case strings.HasPrefix(id, "msg_") || f.text("type") == "message" && id != "": // Anthropic
		return "anthropic:" + id + ":" + rawjson.Str(rawjson.Last(s.Metadata, "requestId"))
	case strings.HasPrefix(id, "resp_"), strings.HasPrefix(id, "chatcmpl-"): // OpenAI, a whole response
		return "response:" + id
	}
	return ""
}

// tokens returns the object with the tokens of an answer in a format that states neither its id nor its cost, nil if there is none.
func (s *statement) tokens() []byte {
	f := s.message
	switch {
	case rawjson.IsObject(f.get("usage_metadata")): // LangChain
		return f.get("usage_metadata")
	case rawjson.IsObject(f.get("usageMetadata")): // Gemini
		return f.get("usageMetadata")
	case rawjson.IsObject(s.around("usageMetadata")): // Qwen Code
		return s.around("usageMetadata")
	case rawjson.IsObject(rawjson.Last(f.get("metadata"), "usage")): // UI messages
		return rawjson.Last(f.get("metadata"), "usage")
	case rawjson.IsObject(rawjson.Last(f.get("metadata"), "totalUsage")):
		return rawjson.Last(f.get("metadata"), "totalUsage")
	case rawjson.IsObject(s.around("usage")): // what a program states of a message that it appends
		return s.around("usage")
	case rawjson.IsObject(s.around("totalUsage")):
		return s.around("totalUsage")
	case s.around("input_tokens") != nil, s.around("inputTokens") != nil, s.around("output_tokens") != nil, s.around("outputTokens") != nil, s.around("prompt_tokens") != nil, s.around("promptTokens") != nil:
		return s.Metadata
	case rawjson.IsObject(rawjson.Last(s.around("result"), "usage")): // VS Code
		return rawjson.Last(s.around("result"), "usage")
	case f.get("outputTokens") != nil: // Copilot CLI
		return new(object).raw("outputTokens", f.get("outputTokens")).bytes()
	}
	return nil
}
