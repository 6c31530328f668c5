//test:race

package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/message"
)

func TestConversation(t *testing.T) {
	h := open(t)
	thread := h.do("POST", "/v1/threads", `{"id":"my/key","title":"Trip","metadata":{"topic":"x"},"model":"m-1"}`).is(201)
	require.Equal(t, "thread", thread["type"])
	again := h.do("POST", "/v1/threads", `{"id":"my/key","reuse":true}`).is(200)
	require.Equal(t, thread["id"], again["id"])
	h.do("POST", "/v1/threads", `{"id":"my/key"}`).is(409)
	require.Equal(t, thread["id"], h.do("GET", "/v1/threads/=my%2Fkey", nil).is(200)["id"])

	const c = "/v1/threads/=my%2Fkey/contexts/main"
	added := h.do("POST", c+"/messages", `{"messages":[{"role":"user","text":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"ls","input":{"b" : 1}}]}]}`, `If-Match: "empty"`).is(201)
	require.EqualValues(t, 2, added["length"])
	moved := h.do("POST", c+"/messages", `{"messages":[{"text":"late"}]}`, `If-Match: "empty"`).is(412)
	require.Contains(t, moved["detail"], "expected empty")
	require.Equal(t, "urn:lineage:problem:tip-moved", moved["type"])
	require.Equal(t, added["tip"], moved["tip"])
	got := h.do("GET", c, nil)
	require.Equal(t, added["tip"], got.Header.Get("Lineage-Tip"))
	h.do("POST", c+"/messages", `{"messages":[{"text":"on time","id":"m-3"}]}`, "If-Match: "+got.Header.Get("ETag")).is(201)
	h.do("GET", c, nil, "If-None-Match: "+h.do("GET", c, nil).Header.Get("ETag")).is(304)

	all := h.do("GET", c+"/messages", nil).items()
	require.Len(t, all, 3)
	require.Equal(t, "on time", all[2]["text"])
	stored, err := h.store.FindThread(t.Context(), "my/key")
	require.NoError(t, err)
	main, err := stored.Active(t.Context())
	require.NoError(t, err)
	entries, err := main.All(t.Context())
	require.NoError(t, err)
	body, err := h.store.Original(t.Context(), entries[1])
	require.NoError(t, err)
	require.Equal(t, `[{"type":"tool_use","id":"1","name":"ls","input":{"b" : 1}}]`, string(body), "bytes stay as they are")
	first := h.do("GET", c+"/messages?limit=2", nil).is(200)
	rest := h.do("GET", c+"/messages?limit=2&after="+first["next"].(string), nil).items()
	require.Len(t, rest, 1)
	require.Len(t, h.do("GET", c+"/messages?last=1", nil).items(), 1)
	require.Equal(t, "a", h.do("GET", c+"/messages?at=:1", nil).items()[0]["text"])
	request := h.do("GET", c+"/messages?dialect=anthropic", nil).is(200)
	require.NotEmpty(t, request["messages"])

	h.do("POST", "/v1/threads/=my%2Fkey/branches", `{"name":"try","from":"main~2","switch":true}`).is(201)
	require.Len(t, h.do("GET", "/v1/threads/=my%2Fkey/contexts/@/messages", nil).items(), 1)
	h.do("PATCH", "/v1/threads/=my%2Fkey/branches/try", `{"name":"tried"}`).is(200)
	h.do("POST", "/v1/threads/=my%2Fkey/checkpoints", `{"name":"start","at":"main:1"}`).is(201)
	require.Len(t, h.do("GET", "/v1/threads/=my%2Fkey/checkpoints", nil).items(), 1)
	h.do("POST", c+"/move", `{"to":"start"}`).is(200)
	require.EqualValues(t, 3, h.do("POST", c+"/undo", nil).is(200)["length"])
	require.Len(t, h.do("GET", c+"/moves", nil).items(), 2)
	require.Nil(t, h.do("POST", c+"/move", `{"to":"empty"}`).is(200)["to"])
	h.do("POST", c+"/undo", nil).is(200)

	h.do("PUT", c+"/values/a%2Fb", `{"x":1}`).is(200)
	require.Equal(t, map[string]any{"x": 1.0}, h.do("GET", c+"/values/a%2Fb", nil).is(200)["value"])
	copied := h.do("POST", "/v1/threads/=my%2Fkey/copy", `{"id":"copy"}`).is(201)
	require.Equal(t, "Trip", copied["title"])
	require.Equal(t, map[string]any{"x": 1.0}, h.do("GET", "/v1/threads/=copy/contexts/main/values/a%2Fb", nil).is(200)["value"])
	require.Len(t, h.do("GET", "/v1/threads/=copy/contexts/main/messages", nil).items(), 3)
	require.Len(t, h.do("GET", "/v1/threads/=copy/branches", nil).items(), 2)
	require.Len(t, h.do("GET", "/v1/threads?metadata=topic=x", nil).items(), 2)

	merged := h.do("PATCH", "/v1/threads/=copy", `{"merge":{"topic":null,"n":{"a":[1]},"list":["x","y"]}}`).is(200)
	require.Equal(t, map[string]any{"n": map[string]any{"a": []any{1.0}}, "list": []any{"x", "y"}}, merged["metadata"])
	require.Len(t, h.do("GET", "/v1/threads?metadata=list=y", nil).items(), 1)
	h.do("PATCH", "/v1/threads/=copy", `{"merge":[1]}`).is(400)
	h.do("PATCH", "/v1/threads/=copy", `{"merge":{},"metadata":{}}`).is(400)
	n := `{"list":["x","y"],"n":{"a":[1.0]}}`
	require.Equal(t, "urn:lineage:problem:conflict", h.do("PATCH", "/v1/threads/=copy", `{"if_metadata":{"n":1},"merge":{"m":1}}`).is(409)["type"])
	require.Equal(t, "urn:lineage:problem:conflict", h.do("PATCH", "/v1/threads/=copy", `{"if_metadata":null,"title":"t"}`).is(409)["type"])
	require.Equal(t, map[string]any{"m": 9007199254740992.0}, h.do("PATCH", "/v1/threads/=copy", `{"if_metadata":`+n+`,"metadata":{"m":9007199254740993}}`).is(200)["metadata"])
	h.do("PATCH", "/v1/threads/=copy", `{"if_metadata":{"m":9007199254740992},"metadata":null}`).is(200)
	h.do("PATCH", "/v1/threads/=copy", `{"if_metadata":null,"metadata":"text"}`).is(200)
	h.do("PATCH", "/v1/threads/=copy", `{"merge":{"a":1}}`).is(400)
	h.do("DELETE", c+"/values/a%2Fb", nil).is(204)
	h.do("GET", c+"/values/a%2Fb", nil).is(404)
	h.do("DELETE", "/v1/threads/=my%2Fkey", nil).is(204)
	h.do("GET", c, nil).is(404)
	require.Equal(t, map[string]any{"x": 1.0}, h.do("GET", "/v1/threads/=copy/contexts/main/values/a%2Fb", nil).is(200)["value"], "a copy stays")
}

func TestBatch(t *testing.T) {
	h := open(t)
	got := h.do("POST", "/v1/batch", `{"operations":[
		{"op":"create_thread","id":"t"},
		{"op":"append","thread":"#0","context":"main","messages":[{"text":"a"}]},
		{"op":"fork","thread":"#0"},
		{"op":"append","context":"#2","messages":[{"text":"b"}]},
		{"op":"set_value","context":"#2","key":"k","value":[ 1]},
		{"op":"delete_value","thread":"#0","context":"#2","key":"k"}]}`).is(200)
	require.Len(t, got["items"], 6)
	require.Nil(t, got["items"].([]any)[5])
	head, err := h.store.View().Head(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, head.Number, "one commit")
	h.do("POST", "/v1/batch", `{"operations":[{"op":"append","thread":"=t","context":"main","messages":[{"text":"c"}]},{"op":"delete_branch","thread":"=t","branch":"no"}]}`).is(404)
	require.Len(t, h.do("GET", "/v1/threads/=t/contexts/main/messages", nil).items(), 1, "all or none")
	h.do("POST", "/v1/batch", `{"operations":[{"op":"append","thread":"=t","context":"main","mesages":[]}]}`).is(400)
}

func TestIdempotency(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const path, body = "/v1/threads/=t/contexts/main/messages", `{"messages":[{"text":"a"}]}`
	first := h.do("POST", path, body, "Idempotency-Key: k")
	first.is(201)
	again := h.do("POST", path, body, "Idempotency-Key: k")
	require.Equal(t, first.is(201), again.is(201))
	require.Equal(t, "true", again.Header.Get("Idempotency-Replayed"))
	h.do("POST", path, `{"messages":[{"text":"b"}]}`, "Idempotency-Key: k").is(422)
	h.do("POST", path, body, "Idempotency-Key: k", "Caller: other").is(201)
	require.Len(t, h.do("GET", path, nil).items(), 2)
}

// TestNamesInChanges uses names that a transaction cannot list: parts of ids, and names of nothing.
func TestNamesInChanges(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	h.do("POST", "/v1/threads/=t/contexts/main/messages", `{"messages":[{"text":"a"},{"text":"b"}]}`).is(201)
	fork := h.do("POST", "/v1/threads/=t/contexts", `{"from":"main~1"}`).is(201)["id"].(string)
	short := fork[len(fork)-8:]
	require.EqualValues(t, 2, h.do("POST", "/v1/threads/=t/contexts/"+short+"/messages", `{"messages":[{"text":"c"}]}`).is(201)["length"])
	h.do("POST", "/v1/threads/=t/branches", `{"name":"b","from":"`+short+`~1"}`).is(201)
	require.Len(t, h.do("GET", "/v1/threads/=t/contexts/b/messages", nil).items(), 1)
	for _, from := range []string{"no", "b:9", "b~9", "ffffffff", "ffffffff/1", "=t/main", "main@{-1}"} {
		h.do("POST", "/v1/threads/=t/branches", map[string]string{"name": "x", "from": from}).is(404)
	}
	h.do("POST", "/v1/batch", `{"operations":[{"op":"create_thread"},{"op":"append","thread":"#0","context":"ffffffff","messages":[{"text":"c"}]}]}`).is(404)
}

// What an operation stands for is the message or context that it made, and an error where it made none.
func TestOperationsStandForWhatTheyMade(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"k"}`).is(201)
	const c = "/v1/threads/=k/contexts/main"
	h.do("POST", c+"/messages", `{"messages":[{"text":"a"}]}`).is(201)
	h.do("POST", "/v1/threads/=k/branches", `{"name":"b","from":"main"}`).is(201)
	h.do("POST", "/v1/batch", `{"operations":[
		{"op":"append","thread":"=k","context":"b","messages":[{"text":"of b"}]},
		{"op":"set_checkpoint","thread":"=k","name":"x","at":"#0"},
		{"op":"create_branch","thread":"=k","name":"c","from":"#0"}]}`).is(200)
	require.Equal(t, "of b", h.do("GET", "/v1/threads/=k/contexts/c/messages?last=1", nil).items()[0]["text"])
	tip := h.do("GET", "/v1/threads/=k/contexts/b", nil).is(200)["tip"]
	require.Equal(t, tip, h.do("GET", "/v1/threads/=k/checkpoints", nil).items()[0]["message"])
	h.do("POST", "/v1/batch", `{"operations":[
		{"op":"set_value","of":"thread","thread":"=k","key":"v","value":1},
		{"op":"set_checkpoint","thread":"=k","name":"y","at":"#0"}]}`).is(400)

	h.do("POST", "/v1/threads/=k/branches", `{"name":"none","empty":true}`).is(201)
	empty := `{"operations":[{"op":"append","thread":"=k","context":"none","messages":[{"text":"1"}],"if_tip":""}]}`
	h.do("POST", "/v1/batch", empty).is(200)
	h.do("POST", "/v1/batch", empty).is(412)
}

// What a provider invents later can be appended with its dialect, and is kept as it is. It is no message of another shape.
func TestDialectsOfTomorrow(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	messages := "/v1/threads/=t/contexts/main/messages"
	thread, err := h.store.FindThread(t.Context(), "t")
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	for _, one := range []struct{ dialect, message, role string }{
		{"responses", `{"type" : "invented_call","id":"z","status":"?"}`, "assistant"},
		{"responses", `{"type":"function_call_output","call_id":"c","output":"o","n":1}`, "tool"},
		{"openai", `{"role":"developer","invented":[1.0]}`, "developer"},
		{"anthropic", `{"role":"assistant","content":[{"type":"invented","a":1}]}`, "assistant"},
		{"ui", `{"id":"1","role":"user","invented":null}`, "user"},
	} {
		h.do("POST", messages+"?dialect="+one.dialect, `{"messages":[`+one.message+`]}`).is(201)
		last := h.do("GET", messages+"?last=1", nil).items()[0]
		require.Equal(t, one.role, last["role"], one.message)
		all, err := main.All(t.Context())
		require.NoError(t, err)
		body, err := h.store.Original(t.Context(), all[len(all)-1])
		require.NoError(t, err)
		require.Equal(t, one.message, string(body))
	}
	for dialect, message := range map[string]string{"responses": `{"invented":1}`, "openai": `{"type":"invented"}`, "anthropic": `[1]`, "ui": `null`} {
		h.do("POST", messages+"?dialect="+dialect, `{"messages":[`+message+`]}`).is(400)
	}
	h.do("POST", messages, `{"messages":[{"type":"invented_call","id":"z"}]}`).is(400)
}

// The API takes the names that the library has for dialects, except plain text.
func TestDialectNames(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	messages := "/v1/threads/=t/contexts/main/messages?dialect="
	for _, d := range message.Dialects() {
		if d == message.Text {
			h.do("GET", messages+string(d), nil).is(400)
			continue
		}
		h.do("POST", messages+string(d), `{"messages":[{"role":"user","content":"a"}]}`).is(201)
		h.do("GET", messages+string(d), nil).is(200)
	}
	for _, format := range []export.Format{export.OpenAI, export.Responses, export.Anthropic} {
		require.Contains(t, message.Dialects(), message.Dialect(format))
	}
}
