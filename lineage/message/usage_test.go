package message_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/message"
)

// stated returns answers as text: id, model, tier, requests, the tokens by kind (- for unknown), the stated cost and the counter.
func stated(all []message.Answer) string {
	tokens := func(t *message.Tokens) string {
		var s []string
		for k := range message.TokenKinds {
			if n, ok := t.Get(k); ok {
				s = append(s, fmt.Sprint(n))
			} else {
				s = append(s, "-")
			}
		}
		return strings.Join(s, " ")
	}
	var lines []string
	for _, a := range all {
		line := fmt.Sprintf("%s|%s|%s|%s|%d|%s|%s", a.ID, a.Provider, a.Model, a.Tier, a.Requests, tokens(&a.Tokens), a.Cost)
		if a.Total != nil {
			line += fmt.Sprintf("|%s %v", tokens(a.Total), a.LastStated)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// What each format states: input, cached input, cache writes for five minutes and an hour, output, reasoning.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ name, role, body, metadata, want string }{
		{"Cline", "", `{"id":"msg_1","role":"assistant","content":[],"modelInfo":{"id":"m","provider":"p"},"metrics":{"inputTokens":110,"outputTokens":7,"cacheReadTokens":40,"cacheWriteTokens":10,"cost":0.5}}`, ``, "cline:msg_1|p|given||1|60 40 10 - 7 -|0.5"},
		{"a task of Cline that states its model", "api_req_started", `{"ts":5,"modelInfo":{"providerId":"anthropic","modelId":"claude-opus-4-6","mode":"act"},"tokensIn":100,"tokensOut":7,"cost":0.01}`, ``, "cline:5:100:7|anthropic|claude-opus-4-6||1|100 - - - 7 -|0.01"},
		{"a task of Roo Code, input with what is cached", "api_req_started", `{"ts":5,"model":"anthropic/claude-sonnet-4-5","apiProtocol":"anthropic","tokensIn":4200,"tokensOut":620,"cacheWrites":180,"cacheReads":3000,"cost":0.0412}`, ``, "cline:5:4200:620||anthropic/claude-sonnet-4-5||1|1020 3000 180 - 620 -|0.0412"},
		{"a task of Roo Code of 2025, input without it", "api_req_started", `{"ts":5,"apiProtocol":"anthropic","tokensIn":10,"tokensOut":412,"cacheWrites":1729,"cacheReads":35617}`, ``, "cline:5:10:412||||1|10 35617 1729 - 412 -|"},
		{"a task of Roo Code without a cache", "api_req_started", `{"ts":5,"apiProtocol":"openai","tokensIn":10,"tokensOut":4}`, ``, "cline:5:10:4||||1|10 - - - 4 -|"},
		{"a task of Cline", "api_req_started", `{"ts":5,"tokensIn":100,"tokensOut":7,"cacheWrites":20,"cacheReads":0,"cost":0.01}`, ``, "cline:5:100:7||||1|100 0 20 - 7 -|0.01"},
		{"ATIF", "assistant", `{"step_id":5,"source":"agent","message":"x","metrics":{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":40,"cost_usd":0.01}}`, ``, "||given||1|60 40 - - 7 -|0.01"},
		{"copied context of ATIF", "assistant", `{"step_id":5,"source":"agent","message":"x","is_copied_context":true,"metrics":{"prompt_tokens":100}}`, ``, ""},
		{"Cursor", "assistant", `{"bubbleId":"b","type":2,"text":"x","tokenCount":{"inputTokens":100,"outputTokens":7}}`, ``, "cursor:b||given||1|100 - - - 7 -|"},
		{"Goose", "usage_ledger", `{"usage_id":"goose:s:1:2","model":"m","input_tokens":100,"output_tokens":7,"cache_read_tokens":40,"cache_write_tokens":10,"cost":0.25}`, ``, "goose:s:1:2||m||1|50 40 10 - 7 -|0.25"},
		{"OpenCode 2", "assistant", `{"type":"assistant","agent":"build","model":{"id":"m","providerID":"p"},"content":[],"cost":0.5,"tokens":{"input":10,"output":3,"reasoning":1,"cache":{"read":2,"write":0}},"time":{"created":1}}`, ``, "|p|m||1|10 2 0 - 4 1|0.5"},
		{"Anthropic", "", `{"id":"msg_1","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":40},"output_tokens":7,"service_tier":"batch"}}`,
			`{"requestId":"req_1"}`, "anthropic:msg_1:req_1||c|batch|1|3 50 60 40 7 -|"},
		{"parts that are not the whole", "", `{"id":"msg_1","role":"assistant","usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":7,"service_tier":"standard"}}`,
			``, "anthropic:msg_1:||given||1|3 - 100 0 7 -|"},
		{"a line of Claude Code", "x", `{"type":"assistant","requestId":"r","costUSD":0.25,"message":{"id":"msg_2","role":"assistant","model":"c","usage":{"input_tokens":1,"output_tokens":2}}}`,
			``, "anthropic:msg_2:r||c||1|1 - - - 2 -|0.25"},
		{"a subagent of Claude Code", "progress", `{"type":"progress","data":{"type":"agent_progress","message":{"type":"assistant","requestId":"r","message":{"id":"msg_2","role":"assistant","model":"c","usage":{"input_tokens":1,"output_tokens":2}}}}}`,
			``, "anthropic:msg_2:r||c||1|1 - - - 2 -|"},
		{"Claude Code itself", "", `{"role":"assistant","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0}}`, ``, ""},
		{"chat completions", "", `{"role":"assistant","content":"x","usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8},"cost":0.001}}`,
			``, "||given||1|36 64 - - 20 8|0.001"},
		{"a whole completion", "x", `{"object":"chat.completion","id":"chatcmpl-1","model":"gpt","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`, ``, "response:chatcmpl-1||gpt||1|1 - - - 2 -|"},
		{"responses", "", `{"object":"response","id":"resp_1","model":"gpt","service_tier":"flex","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":1}}}`,
			``, "response:resp_1||gpt||1|6 4 - - 5 1|"},
		{"Gemini", "model", `{"role":"model","parts":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3,"cachedContentTokenCount":4,"toolUsePromptTokenCount":2,"totalTokenCount":20}}`,
			``, "||given||1|8 4 - - 8 3|"},
		{"Gemini without a total", "model", `{"role":"model","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3}}`, ``, "||given||1|10 - - - 8 3|"},
		{"Gemini CLI", "", `{"id":"u","type":"gemini","model":"g","content":"x","tokens":{"input":10,"output":5,"cached":4,"thoughts":3,"tool":0,"total":18}}`, ``, "gemini:u||g||1|6 4 - - 8 3|"},
		{"Qwen Code", "", `{"role":"model","parts":[]}`, `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":15,"cachedContentTokenCount":0}}`, "||given||1|10 0 - - 5 3|"},
		{"only a total", "", `{"role":"model","parts":[]}`, `{"usageMetadata":{"totalTokenCount":15}}`, "||given||1|- - - - - -|"},
		{"pi", "", `{"role":"assistant","provider":"anthropic","model":"c","responseId":"r","usage":{"input":9,"output":3,"cacheRead":40,"cacheWrite":5,"totalTokens":57,"cost":{"input":1,"total":0.3}}}`, ``, "pi:r|anthropic|c||1|9 40 5 - 3 -|0.3"},
		{"OpenCode", "", `{"info":{"role":"assistant","modelID":"m","providerID":"p","cost":0.5,"tokens":{"total":30,"input":10,"output":5,"reasoning":3,"cache":{"read":11,"write":1}}},"parts":[]}`, ``, "|p|m||1|10 11 1 - 8 3|0.5"},
		{"OpenCode, output with reasoning", "", `{"info":{"role":"assistant","modelID":"m","tokens":{"total":27,"input":10,"output":5,"reasoning":3,"cache":{"read":11,"write":1}}},"parts":[]}`, ``, "||m||1|10 11 1 - 5 3|"},
		{"Copilot CLI", "", `{"content":"x","model":"m","outputTokens":5,"toolRequests":[]}`, ``, "||m||1|- - - - 5 -|"},
		{"Copilot CLI of today", "session.usage_record", `{"type":"session.usage_record","data":{"usage":{"model":"m","inputTokens":100,"outputTokens":10,"cacheReadTokens":60,"cacheWriteTokens":0,"cost":1.0,"apiCallId":"chatcmpl-1","accounting":{"sourceSessionId":"s","sequence":2,"usageId":"chatcmpl-1"}}}}`,
			``, "copilot:s:2||m||1|40 60 0 - 10 -|"},
		{"the end of a session of Copilot CLI", "session.shutdown", `{"type":"session.shutdown","data":{"modelMetrics":{"m":{"requests":{"count":2},"usage":{"inputTokens":200,"outputTokens":20}}},"usageAccountingWatermarks":{}}}`, ``, ""},
		{"LangChain", "", `{"role":"assistant","usage_metadata":{"input_tokens":10,"output_tokens":5,"input_token_details":{"cache_read":4,"cache_creation":1},"output_token_details":{"reasoning":2}}}`, ``, "||given||1|5 4 1 - 5 2|"},
		{"the AI SDK", "", `{"role":"assistant","parts":[],"metadata":{"totalUsage":{"inputTokens":10,"outputTokens":5,"cachedInputTokens":4,"reasoningTokens":2}}}`, ``, "||given||1|6 4 - - 5 2|"},
		{"metadata", "", `"a text"`, `{"usage":{"prompt_tokens":10,"completion_tokens":20}}`, "||given||1|10 - - - 20 -|"},
		{"Codex", "event_msg", `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":300,"cached_input_tokens":120,"output_tokens":21,"reasoning_output_tokens":1},"last_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7,"reasoning_output_tokens":0}}}}`,
			``, "||given||1|60 40 - - 7 0||180 120 - - 21 1 true"},
		{"early Codex", "event_msg", `{"type":"event_msg","payload":{"type":"token_count","input_tokens":300,"cached_input_tokens":120,"output_tokens":21}}`, ``, "||given||1|- - - - - -||180 120 - - 21 - false"},
		{"Codex without numbers", "event_msg", `{"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{}}}`, ``, ""},
		{"a prompt", "user", `{"role":"user","usage":{"input_tokens":1}}`, ``, ""},
		{"absurd numbers", "", `{"role":"assistant","usage":{"input_tokens":-1,"output_tokens":1e300,"cache_read_input_tokens":1.5,"cost":-1,"total_tokens":"7"}}`, ``, ""},
		{"no JSON", "", `{"role":"assistant","usage":{"input_tokens":1}`, ``, ""},
		{"bad metadata", "", `{"role":"assistant","usage":{"input_tokens":1}}`, `{"requestId":`, "||given||1|1 - - - - -|"},
	} {
		role := c.role
		if role == "" {
			role = "assistant"
		}
		if c.want != "" {
			require.True(t, message.MentionsUsage([]byte(c.body)) || message.MentionsUsage([]byte(c.metadata)), c.name)
		}
		require.Equal(t, c.want, stated(message.Usage(message.Record{Body: []byte(c.body), Role: role, Model: "given", Metadata: []byte(c.metadata)})), c.name)
	}
}

// At the end of a session Copilot CLI states the input by model. It adds to answers that are stated elsewhere.
func TestUsageOfSession(t *testing.T) {
	all := message.Usage(message.Record{Role: "session.shutdown", Body: []byte(`{"type":"session.shutdown","data":{"modelMetrics":{
		"a":{"requests":{"count":2},"usage":{"inputTokens":100,"outputTokens":9,"cacheReadTokens":30,"cacheWriteTokens":0}},"b":{"requests":{"count":1},"usage":{"inputTokens":5}},"c":{}}}}`)})
	require.Equal(t, "||a||0|70 30 0 - - -|\n||b||0|5 - - - - -|", stated(all))
	require.EqualValues(t, 2, all[0].Covers)
	require.EqualValues(t, 1, all[1].Covers)
}

func TestTokensSince(t *testing.T) {
	of := func(n ...int64) (t message.Tokens) {
		for k, n := range n {
			t.Set(message.TokenKind(k), n)
		}
		return t
	}
	now, before, reset := of(5, 7), of(2, 7), of(6, 0)
	d, ok := now.Since(&before)
	require.True(t, ok)
	require.Equal(t, of(3, 0), d)
	_, ok = now.Since(&reset)
	require.False(t, ok)
	none := message.Tokens{}
	d, ok = now.Since(&none)
	require.True(t, ok)
	require.Equal(t, now, d)
}

func FuzzUsage(f *testing.F) {
	f.Add(`{"role":"assistant","usage":{"input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":40}}}`, `{"requestId":"r"}`, "assistant")
	f.Add(`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":300}}}}`, ``, "event_msg")
	f.Add(`{"info":{"role":"assistant","cost":1e-9,"tokens":{"input":1}},"parts":[]}`, ``, "assistant")
	f.Fuzz(func(t *testing.T, body, metadata, role string) {
		for _, a := range message.Usage(message.Record{Body: []byte(body), Role: role, Metadata: []byte(metadata)}) {
			for k, n := range a.Tokens.Array() {
				_, known := a.Tokens.Get(message.TokenKind(k))
				require.GreaterOrEqual(t, n, int64(0))
				require.True(t, known || n == 0)
			}
		}
	})
}
