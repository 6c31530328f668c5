package messagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage/message"
)

type fields = map[string]any

// Check returns the first error for which the API of a dialect would refuse a history, according to
// the provider's documentation. The types of the provider's library check the rest.
func Check(d message.Dialect, items []json.RawMessage) error {
	var all []fields
	for i, item := range items {
		if !utf8.Valid(item) || strings.Contains(string(item), `\ud`) && !json.Valid(item) {
			return fmt.Errorf("item %d is not Unicode", i)
		}
		if d == message.Text {
			if item[0] != '"' {
				return fmt.Errorf("item %d is no text", i)
			}
			continue
		}
		var f fields
		if err := json.Unmarshal(item, &f); err != nil {
			return fmt.Errorf("item %d: %w: %s", i, err, item)
		}
		all = append(all, f)
	}
	switch d {
	case message.OpenAI:
		return checkChat(all)
	case message.Responses:
		return checkResponses(all)
	case message.Anthropic:
		return checkAnthropic(all)
	case message.UI:
		return checkUI(all)
	}
	return nil
}

func str(v any) string { s, _ := v.(string); return s }

func objects(v any) []fields {
	var out []fields
	list, _ := v.([]any)
	for _, e := range list {
		f, _ := e.(fields)
		out = append(out, f)
	}
	return out
}

var plainName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// content refuses content that is neither a text nor a list of parts of the given types.
func content(v any, types ...string) error {
	if _, ok := v.(string); ok {
		return nil
	}
	parts := objects(v)
	if len(parts) == 0 {
		return fmt.Errorf("no content: %v", v)
	}
	for _, p := range parts {
		if !slices.Contains(types, str(p["type"])) {
			return fmt.Errorf("part of type %v", p["type"])
		}
	}
	return nil
}

func only(f fields, keys ...string) error {
	for k := range f {
		if !slices.Contains(keys, k) {
			return fmt.Errorf("member %q", k)
		}
	}
	return nil
}

func checkChat(all []fields) error {
	var open []string
	ids := make(map[string]bool)
	last := false
	for i, m := range all {
		role := str(m["role"])
		bad := func(format string, args ...any) error {
			return fmt.Errorf("message %d, of %s: %s", i, role, fmt.Sprintf(format, args...))
		}
		if len(open) > 0 && role != "tool" {
			return bad("calls %v have no results", open)
		}
		last = false
		var err error
		switch role {
		case "system", "developer":
			err = first(only(m, "role", "content", "name"), content(m["content"], "text"))
		case "user":
			err = first(only(m, "role", "content", "name"), content(m["content"], "text", "image_url", "input_audio", "file"))
		case "assistant":
			calls := objects(m["tool_calls"])
			_, has := m["tool_calls"]
			switch {
			case has && len(calls) == 0:
				err = bad("an empty list of calls")
			case m["content"] == nil && !has && m["audio"] == nil && m["refusal"] == nil:
				err = bad("it says nothing")
			case m["content"] != nil:
				err = content(m["content"], "text", "refusal")
			}
			err = first(err, only(m, "role", "content", "name", "tool_calls", "refusal", "audio", "function_call"))
			for _, c := range calls {
				id := str(c["id"])
				f, _ := c[str(c["type"])].(fields)
				if id == "" || len(id) > 40 || ids[id] || !plainName.MatchString(str(f["name"])) {
					return bad("call %v", c)
				}
				ids[id] = true
				open = append(open, id)
			}
			last = len(calls) > 0
		case "tool":
			at := slices.Index(open, str(m["tool_call_id"]))
			if at < 0 {
				return bad("result of %v, which was not called", m["tool_call_id"])
			}
			open = slices.Delete(open, at, at+1)
			err = first(only(m, "role", "content", "tool_call_id"), content(m["content"], "text"))
		default:
			return bad("no such role")
		}
		if err != nil {
			return bad("%v", err)
		}
	}
	if len(open) > 0 && !last {
		return fmt.Errorf("some calls have results, and %v have none", open)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkResponses(all []fields) error {
	open, ids, calls := make(map[string]string), make(map[string]bool), make(map[string]bool)
	reasoning, answered := false, false
	for i, m := range all {
		kind := str(m["type"])
		bad := func(format string, args ...any) error {
			return fmt.Errorf("item %d, of type %q: %s", i, kind, fmt.Sprintf(format, args...))
		}
		if id := str(m["id"]); id != "" {
			if ids[id] {
				return bad("the id %s again", id)
			}
			ids[id] = true
		}
		ofModel := kind == "reasoning" || kind == "function_call" || kind == "custom_tool_call" || str(m["role"]) == "assistant" || strings.HasSuffix(kind, "_call") || kind == "compaction"
		if reasoning && !ofModel {
			return bad("reasoning that nothing follows")
		}
		reasoning = kind == "reasoning"
		isCall := kind == "function_call" || kind == "custom_tool_call"
		if len(open) > 0 && !isCall && !strings.HasSuffix(kind, "_output") && !ofModel {
			return bad("calls have no results: %v", open)
		}
		switch {
		case kind == "" || kind == "message":
			types := []string{"input_text"}
			switch str(m["role"]) {
			case "user":
				types = []string{"input_text", "input_image", "input_file"}
			case "assistant":
				types = []string{"output_text", "refusal"}
			case "system", "developer":
			default:
				return bad("role %v", m["role"])
			}
			if err := content(m["content"], types...); err != nil {
				return bad("%v", err)
			}
		case isCall:
			id := str(m["call_id"])
			if id == "" || len(id) > 64 || calls[id] || !plainName.MatchString(str(m["name"])) {
				return bad("call %v", m)
			}
			open[id], calls[id] = kind, true
			answered = false
		case kind == "function_call_output" || kind == "custom_tool_call_output":
			id := str(m["call_id"])
			if open[id]+"_output" != kind {
				return bad("result of %v, which was not called so", m["call_id"])
			}
			delete(open, id)
			answered = true
			if err := content(m["output"], "input_text", "input_image", "input_file"); err != nil {
				return bad("%v", err)
			}
		case kind == "reasoning" || kind == "web_search_call" || kind == "compaction":
		default:
			return bad("no such item")
		}
	}
	if reasoning {
		return fmt.Errorf("reasoning that nothing follows, at the end")
	}
	if len(open) > 0 && answered {
		return fmt.Errorf("some calls have results, and %v have none", open)
	}
	return nil
}

func blank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

var (
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicTool = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// anthropicCheck is the state of a check: calls without results so far, and all ids.
type anthropicCheck struct {
	open []string
	ids  map[string]bool
}

func checkAnthropic(all []fields) error {
	c := anthropicCheck{ids: make(map[string]bool)}
	for i, m := range all {
		if err := c.message(m, i, i == len(all)-1); err != nil {
			return fmt.Errorf("message %d, of %s: %w", i, m["role"], err)
		}
	}
	return nil
}

func (c *anthropicCheck) message(m fields, i int, last bool) error {
	role := str(m["role"])
	if want := []string{"user", "assistant"}[i%2]; role != want {
		return fmt.Errorf("it must be %s", want)
	}
	if err := only(m, "role", "content"); err != nil {
		return err
	}
	blocks := objects(m["content"])
	if s, ok := m["content"].(string); ok {
		blocks = []fields{{"type": "text", "text": s}}
	}
	if len(blocks) == 0 {
		return errors.New("no content")
	}
	begun := false
	var calls []string
	for _, b := range blocks {
		if str(b["type"]) == "tool_result" && begun {
			return errors.New("a result behind something else")
		}
		begun = begun || str(b["type"]) != "tool_result"
		if err := c.block(b, role); err != nil {
			return err
		}
		if str(b["type"]) == "tool_use" {
			calls = append(calls, str(b["id"]))
		}
	}
	if len(c.open) > 0 {
		return fmt.Errorf("calls %v have no results", c.open)
	}
	c.open = calls
	end := blocks[len(blocks)-1]
	switch s := str(end["text"]); str(end["type"]) {
	case "thinking", "redacted_thinking":
		return errors.New("it ends with thinking")
	case "text":
		if role == "assistant" && last && s != strings.TrimRightFunc(s, unicode.IsSpace) {
			return errors.New("the last text ends with space")
		}
	}
	return nil
}

func (c *anthropicCheck) block(b fields, role string) error {
	ofUser := false
	switch kind := str(b["type"]); kind {
	case "text":
		if blank(str(b["text"])) {
			return errors.New("an empty text")
		}
		return nil
	case "image", "document":
		ofUser = true
	case "tool_use", "server_tool_use":
		id := str(b["id"])
		if _, ok := b["input"].(fields); !ok || c.ids[id] || !anthropicID.MatchString(id) || !anthropicTool.MatchString(str(b["name"])) {
			return fmt.Errorf("call %v", b)
		}
		c.ids[id] = true
	case "tool_result":
		ofUser = true
		at := slices.Index(c.open, str(b["tool_use_id"]))
		if at < 0 {
			return fmt.Errorf("result %v", b)
		}
		c.open = slices.Delete(c.open, at, at+1)
		for _, said := range objects(b["content"]) {
			if str(said["type"]) == "text" && blank(str(said["text"])) {
				return errors.New("an empty text in a result")
			}
		}
	case "thinking":
		if str(b["signature"]) == "" {
			return errors.New("thinking without a signature")
		}
	case "redacted_thinking":
	case "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result":
		if !c.ids[str(b["tool_use_id"])] {
			return errors.New("a hosted tool's result without its call")
		}
	default:
		return fmt.Errorf("a block of type %q", kind)
	}
	if ofUser != (role == "user") {
		return fmt.Errorf("a block of type %v", b["type"])
	}
	return nil
}

func checkUI(all []fields) error {
	ids := make(map[string]bool)
	for i, m := range all {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("message %d: %s", i, fmt.Sprintf(format, args...))
		}
		if role := str(m["role"]); role != "user" && role != "assistant" && role != "system" {
			return bad("role %v", m["role"])
		}
		parts := objects(m["parts"])
		if _, ok := m["id"].(string); !ok || len(parts) == 0 {
			return bad("no id or no parts")
		}
		for _, p := range parts {
			kind := str(p["type"])
			if strings.HasPrefix(str(p["url"]), "lineage:") {
				return bad("a placeholder")
			}
			if kind != "dynamic-tool" && !strings.HasPrefix(kind, "tool-") {
				continue
			}
			id := str(p["toolCallId"])
			if id == "" || ids[id] {
				return bad("call %v", p)
			}
			ids[id] = true
		}
	}
	return nil
}
