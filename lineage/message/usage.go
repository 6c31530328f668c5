package message

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
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

// TokenKind is a kind of tokens. The kinds are disjoint, except that Reasoning is a part of Output.
type TokenKind int

const (
	// Input is input that was neither read from a cache nor written to one.
	Input TokenKind = iota
	// CachedInput is input that was read from a cache.
	CachedInput
	// CacheWrite is input written to a cache for the usual time, which is five minutes for Anthropic.
	CacheWrite
	// CacheWrite1h is input written to a cache for an hour.
	CacheWrite1h
	// Output is everything that the model wrote, including reasoning.
	Output
	// Reasoning is the part of the output that is reasoning.
	Reasoning
	// TokenKinds is the number of kinds.
	TokenKinds
)

// Tokens are numbers of tokens by kind. In the zero value no number is known.
type Tokens struct {
	of    [TokenKinds]int64
	known uint8
}

// maxTokens is the largest number of tokens that is accepted.
const maxTokens = 1_000_000_000_000

// Get returns the number of tokens of a kind. ok is false if it is not known.
func (t *Tokens) Get(k TokenKind) (n int64, ok bool) { return t.of[k], t.known&(1<<k) != 0 }

// Set sets the number of tokens of a kind.
func (t *Tokens) Set(k TokenKind, n int64) {
	t.of[k] = n
	t.known |= 1 << k
}

// Known returns the set of known kinds: bit k is set for kind k.
func (t *Tokens) Known() uint8 { return t.known }

// MakeTokens returns tokens in which a set of kinds is known.
func MakeTokens(of [TokenKinds]int64, known uint8) Tokens {
	return Tokens{of, known & (1<<TokenKinds - 1)}
}

// Array returns the numbers by kind, 0 for those that are not known.
func (t *Tokens) Array() [TokenKinds]int64 { return t.of }

// Sums returns the input of all kinds and the output.
func (t *Tokens) Sums() (input, output int64) {
	return t.of[Input] + t.of[CachedInput] + t.of[CacheWrite] + t.of[CacheWrite1h], t.of[Output]
}

// Since returns the tokens between an earlier counter and this one. ok is false if the counter has decreased.
func (t *Tokens) Since(before *Tokens) (d Tokens, ok bool) {
	for k := range TokenKinds {
		n, is := t.Get(k)
		was, had := before.Get(k)
		switch {
		case !is:
			continue
		case !had:
			was = 0
		case n < was:
			return Tokens{}, false
		}
		d.Set(k, n-was)
	}
	return d, true
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

// counts are the numbers in an object, nil if it does not have them.
type counts struct {
	input, output, total, cached, written, reasoning, tool *int64
	apart                                                  bool // input does not include cached tokens
}

// outputApart adds the reasoning to the output if the output does not include it. Some programs include it and others
// do not, so the total decides if there is one.
func (c *counts) outputApart() {
	if c.output == nil || c.reasoning == nil {
		return
	}
	if c.total != nil {
		rest := *c.total - *c.output
		for _, n := range []*int64{c.input, c.tool} {
			if n != nil {
				rest -= *n
			}
		}
		if c.apart {
			for _, n := range []*int64{c.cached, c.written} {
				if n != nil {
					rest -= *n
				}
			}
		}
		if rest < *c.reasoning {
			return
		}
	}
	sum := *c.output + *c.reasoning
	c.output = &sum
}

// into sets the tokens.
func (c *counts) into(t *Tokens) {
	if c.input != nil {
		input := *c.input
		if c.tool != nil {
			input += *c.tool
		}
		if rest := input - value(c.cached) - value(c.written); !c.apart && rest >= 0 {
			input = rest
		}
		t.Set(Input, input)
	}
	for _, of := range []struct {
		kind TokenKind
		n    *int64
	}{{CachedInput, c.cached}, {CacheWrite, c.written}, {Output, c.output}, {Reasoning, c.reasoning}} {
		if of.n != nil {
			t.Set(of.kind, *of.n)
		}
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// first returns the number in the first member that is one, nil if there is none.
func first(f fields, keys ...string) *int64 {
	for _, key := range keys {
		if n, ok := number(f[key]); ok {
			return &n
		}
	}
	return nil
}

// number reads a number of tokens. It returns false for fractions, negative numbers and numbers above maxTokens.
func number(raw []byte) (int64, bool) {
	if len(raw) == 0 {
		return 0, false
	}
	if len(raw) <= 12 { // almost always
		n, digits := int64(0), true
		for _, c := range raw {
			n, digits = 10*n+int64(c-'0'), digits && '0' <= c && c <= '9'
		}
		if digits {
			return n, true
		}
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxTokens {
			return 0, false
		}
		n = int64(f)
	}
	return n, n >= 0 && n <= maxTokens
}

// cost returns a number as it is written, empty if it cannot be a cost.
func cost(raw []byte) string {
	if len(raw) == 0 || len(raw) > 64 {
		return ""
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err != nil || f < 0 || f > 1e9 || math.IsNaN(f) || f != 0 && f < 1e-18 {
		return ""
	}
	return string(raw)
}

// codexCount reads an event of Codex that counts tokens.
func codexCount(payload fields, model string) []Answer {
	if payload.text("type") != "token_count" {
		return nil
	}
	if rawjson.IsObject(payload["info"]) {
		return codexUsage(fieldsOf(payload["info"]), "last_token_usage", "total_token_usage", model)
	}
	if payload["input_tokens"] != nil { // early versions
		var total Answer
		if total.read(new(object).raw("input_tokens", payload["input_tokens"]).raw("cached_input_tokens", orNull(payload["cached_input_tokens"])).
			raw("output_tokens", orNull(payload["output_tokens"])).raw("reasoning_output_tokens", orNull(payload["reasoning_output_tokens"])).bytes()) {
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
func codexUsage(f fields, last, total string, model string) []Answer {
	a := Answer{Model: model, Requests: 1}
	a.LastStated = rawjson.IsObject(f[last]) && a.read(f[last])
	if id := f.text("response_id"); id != "" {
		a.ID = "codex:" + id
	}
	var sum Answer
	if rawjson.IsObject(f[total]) && sum.read(f[total]) {
		a.Total = &sum.Tokens
	}
	if !a.LastStated && a.Total == nil {
		return nil
	}
	return []Answer{a}
}

// copilotTotals reads the tokens per model that Copilot CLI states at the end of a session. Its messages state the
// output only.
func copilotTotals(metrics []byte) (all []Answer) {
	for m := range rawjson.Members(metrics) {
		a := Answer{Model: m.Key}
		if !a.read(rawjson.Last(m.Value, "usage")) {
			continue
		}
		a.Tokens.known &^= 1<<Output | 1<<Reasoning
		a.Tokens.of[Output], a.Tokens.of[Reasoning] = 0, 0
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
