package transcript

import (
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

func TestMain(m *testing.M) {
	campaign.Checks(100)
	os.Exit(m.Run())
}

func plain(role, text string) *Message { return &Message{Role: role, Body: []byte(text)} }

func object(role, body string) *Message {
	return &Message{Role: role, Type: "application/json", Body: []byte(body)}
}

func with(m *Message, metadata string) *Message {
	m.Metadata = []byte(metadata)
	return m
}

func history(messages ...*Message) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for i, m := range messages {
			m.Position = uint64(i + 1)
			if !yield(m, nil) {
				return
			}
		}
	}
}

// shown writes items for a comparison: a line for each, and lines below it for what a call has.
func shown(items []*Item) string {
	var b strings.Builder
	result := func(r *ToolResult) {
		fmt.Fprintf(&b, "%s @%d", r.Line(), r.From.Position)
		if r.Exit != nil {
			fmt.Fprintf(&b, " exit=%d", *r.Exit)
		}
		b.WriteString("\n")
	}
	for _, i := range items {
		switch i.Kind {
		case Call:
			fmt.Fprintf(&b, "%s\n", i.Line())
			if i.Call.Text != "" && i.Call.Text != i.Call.Title {
				fmt.Fprintf(&b, "  text %q\n", i.Call.Text)
			}
			if i.Call.About != "" {
				fmt.Fprintf(&b, "  about %s\n", i.Call.About)
			}
			if i.Call.Diff != "" {
				fmt.Fprintf(&b, "  diff %q\n", i.Call.Diff)
			}
			if i.Call.Rest != nil {
				fmt.Fprintf(&b, "  rest %s\n", i.Call.Rest)
			}
			for _, r := range i.Call.Results {
				b.WriteString("  ")
				result(r)
			}
		case Result:
			if of := i.Result.Call; of != nil {
				fmt.Fprintf(&b, "(%s %s) ", of.Tool, of.Title)
			}
			result(i.Result)
		default:
			fmt.Fprintf(&b, "%v: %s\n", i.Kind, i.Line())
		}
	}
	return b.String()
}

func collect(t require.TestingT, o Options, messages ...*Message) []*Item {
	var items []*Item
	for i, err := range All(history(messages...), o) {
		require.NoError(t, err)
		items = append(items, i)
	}
	return items
}

func TestCallsAndResults(t *testing.T) {
	for name, test := range map[string]struct {
		messages []*Message
		want     string
	}{
		"anthropic": {[]*Message{
			plain("user", "fix it"),
			object("assistant", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Looking."},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"git log\ngit diff","description":"Look"}}]}`),
			object("assistant", `{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"Read","input":{"file_path":"/a.go"}}]}`),
			object("user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"package a"}]}`),
			object("user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"Exit code 2\nno","is_error":true},{"type":"text","text":"and now?"}]}`),
		}, "prompt: fix it\nthinking: (thinking) hm\nanswer: Looking.\n→ Bash git log git diff\n  text \"git log\\ngit diff\"\n  about Look\n  ✗ Exit code 2 no @5 exit=2\n→ Read /a.go\n  ← package a @4\nprompt: and now?\n"},
		"chat completions": {[]*Message{
			object("assistant", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"get_user_details","arguments":"{\"user_id\":\"mia\"}"}},{"id":"2","type":"function","function":{"name":"sum","arguments":"{\"a\":1,\"b\":2}"}}]}`),
			object("tool", `{"role":"tool","tool_call_id":"2","content":"3"}`),
			object("tool", `{"role":"tool","tool_call_id":"1","content":"{\"name\":\"Mia\"}"}`),
			object("assistant", `{"role":"assistant","content":"Done."}`),
		}, "→ get_user_details mia\n  ← {\"name\":\"Mia\"} @3\n→ sum {\"a\":1,\"b\":2}\n  rest {\"a\":1,\"b\":2}\n  ← 3 @2\nanswer: Done.\n"},
		"responses, as in Codex": {[]*Message{
			object("user", `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/p</cwd>\n</environment_context>"}]}`),
			object("user", `{"type":"message","role":"user","content":[{"type":"input_text","text":"Why?"}]}`),
			object("assistant", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"rg -n x\"],\"workdir\":\"/p\"}","call_id":"c"}`),
			object("tool", `{"type":"function_call_output","call_id":"c","output":"{\"output\":\"a.go:1\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"}`),
			object("assistant", `{"type":"custom_tool_call","call_id":"d","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.go\n-x\n+y\n*** End Patch"}`),
			object("tool", `{"type":"custom_tool_call_output","call_id":"d","output":"ok"}`),
		}, "reminder: (environment_context) cwd: /p\nprompt: Why?\n→ shell rg -n x\n  rest {\"workdir\":\"/p\"}\n  ✗ a.go:1 @4 exit=1\n→ apply_patch a.go\n  diff \"*** Begin Patch\\n*** Update File: a.go\\n-x\\n+y\\n*** End Patch\"\n  ← ok @6\n"},
		"UI": {[]*Message{
			object("assistant", `{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-add","toolCallId":"t","state":"output-available","input":{"a":1},"output":{"sum":2}},{"type":"tool-add","toolCallId":"u","state":"output-error","input":{},"errorText":"no"},{"type":"text","text":"Two."}]}`),
		}, "→ add 1\n  ← {\"sum\":2} @1\n→ add\n  ✗ no @1\nanswer: Two.\n"},
		"Gemini, without ids": {[]*Message{
			object("model", `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}}},{"functionCall":{"name":"g","args":{"x":2}}}]}`),
			object("user", `{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"r":2}}},{"functionResponse":{"name":"f","response":{"r":1}}}]}`),
		}, "→ f 1\n  ← {\"r\":1} @2\n→ g 2\n  ← {\"r\":2} @2\n"},
		"a result before its call": {[]*Message{
			object("tool", `{"role":"tool","tool_call_id":"1","content":"early"}`),
			object("assistant", `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
		}, "← early @1\n→ f\n"},
		"a missing result, and one after the next prompt": {[]*Message{
			object("assistant", `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"not JSON"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]}`),
			plain("user", "wait"),
			object("tool", `{"role":"tool","tool_call_id":"1","content":"late"}`),
		}, "→ f not JSON\n→ g\nprompt: wait\n(f not JSON) ← late @3\n"},
		"two results of one call": {[]*Message{
			object("assistant", `{"role":"assistant","tool_calls":[{"id":"0","type":"function","function":{"name":"e","arguments":"{}"}},{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			object("tool", `{"role":"tool","tool_call_id":"1","content":"a"}`),
			object("tool", `{"role":"tool","tool_call_id":"1","content":"b"}`),
			object("tool", `{"role":"tool","tool_call_id":"0","content":"c"}`),
			object("tool", `{"role":"tool","tool_call_id":"0","content":"d"}`),
		}, "→ e\n  ← c @4\n→ f\n  ← a @2\n  ← b @3\n(e ) ← d @5\n"},
		"an id that is used twice": {[]*Message{
			object("assistant", `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			object("tool", `{"role":"tool","tool_call_id":"1","content":"a"}`),
			object("assistant", `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"g","arguments":"{}"}}]}`),
			object("tool", `{"role":"tool","tool_call_id":"1","content":"b"}`),
		}, "→ f\n  ← a @2\n→ g\n  ← b @4\n"},
		"files": {[]*Message{
			object("user", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"what is it?"}]}`),
			object("assistant", `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"a.png"}}]}`),
			object("user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAAAA=="}}]}]}`),
			{Role: "user", Filename: "a.pdf", Type: "application/pdf", Size: 9},
			{Role: "user", Document: "notes.md", Revision: 2, Body: []byte("# Notes")},
			{Role: "user", Erased: true},
			{Role: "user", Type: "text/plain", Size: 70000},
		}, "file: [image, image/png, 3 bytes]\nprompt: what is it?\n→ Read a.png\n  ← [image, image/png, 4 bytes] @3\nfile: [file a.pdf, application/pdf, 9 bytes]\ntext: # Notes\nnote: (erased)\nnote: (text/plain, 70000 bytes)\n"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, shown(collect(t, Options{}, test.messages...))) })
	}
}

func TestInputsOfCalls(t *testing.T) {
	for input, want := range map[string]string{
		`{}`:                                "→ T\n",
		`null`:                              "→ T\n",
		`[1]`:                               "→ T [1]\n  rest [1]\n",
		`"x"`:                               "→ T x\n",
		`{"command":["git","status"]}`:      "→ T git status\n",
		`{"command":{"a":1}}`:               "→ T {\"command\":{\"a\":1}}\n  rest {\"command\":{\"a\":1}}\n",
		`{"command":"","query":"q"}`:        "→ T q\n  rest {\"command\":\"\"}\n",
		`{"path":"/p","pattern":"**/*.md"}`: "→ T **/*.md\n  rest {\"path\":\"/p\"}\n",
		`{"file_path":"a","old_string":"x\ny\n","new_string":"x\nz\n"}`: "→ T a\n  diff \" x\\n-y\\n+z\\n\"\n",
		`{"file_path":"a","content":"x\ny"}`:                            "→ T a\n  diff \"+x\\n+y\\n\"\n",
		`{"content":"x"}`:                                               "→ T x\n",
		`{"file_path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"","new_string":"z"}]}`: "→ T a\n  diff \"@@\\n-x\\n+y\\n@@\\n+z\\n\"\n",
		`{"file_path":"a","edits":[{"old_string":"x","new_string":"y","all":true}]}`:                         "→ T a\n  rest {\"edits\":[{\"old_string\":\"x\",\"new_string\":\"y\",\"all\":true}]}\n",
		`{"a":1,"a":2}`: "→ T {\"a\":1,\"a\":2}\n  rest {\"a\":1,\"a\":2}\n",
		`{"todos":[{"content":"x","status":"completed","id":"1"},{"content":"y\nz","status":"in_progress","activeForm":"Y"},{"content":"v","status":"pending"}]}`: "→ T 1 of 3 done: y z\n  text \"[x] x\\n[>] y\\n    z\\n[ ] v\\n\"\n",
		`{"plan":[{"step":"x","status":"completed"}],"explanation":"e"}`:                                                                                          "→ T 1 of 1 done\n  text \"[x] x\\n\"\n  rest {\"explanation\":\"e\"}\n",
		`{"plan":[{"step":"x","status":"blocked"}]}`:                                                                                                              "→ T {\"plan\":[{\"step\":\"x\",\"status\":\"blocked\"}]}\n  rest {\"plan\":[{\"step\":\"x\",\"status\":\"blocked\"}]}\n",
		`{"plan":[{"step":"","description":"y","status":"pending"}]}`:                                                                                             "→ T {\"plan\":[{\"step\":\"\",\"description\":\"y\",\"status\":\"pending\"}]}\n  rest {\"plan\":[{\"step\":\"\",\"description\":\"y\",\"status\":\"pending\"}]}\n",
		`{"plan":[{"step":"x","description":"y","status":"pending"}]}`:                                                                                            "→ T {\"plan\":[{\"step\":\"x\",\"description\":\"y\",\"status\":\"pending\"}]}\n  rest {\"plan\":[{\"step\":\"x\",\"description\":\"y\",\"status\":\"pending\"}]}\n",
		`{"CommandLine":"ls","Cwd":"/p"}`:                                                                                                                         "→ T ls\n  rest {\"Cwd\":\"/p\"}\n",
		`{"TargetFile":"a","TargetContent":"x\n","ReplacementContent":"y\n"}`:                                                                                     "→ T a\n  diff \"-x\\n+y\\n\"\n",
		`{"TargetFile":"a","CodeContent":"x","Overwrite":true}`:                                                                                                   "→ T a\n  diff \"+x\\n\"\n  rest {\"Overwrite\":true}\n",
		`{"todos":[{"content":"x"}]}`:                                                                                                                             "→ T {\"todos\":[{\"content\":\"x\"}]}\n  rest {\"todos\":[{\"content\":\"x\"}]}\n",
	} {
		got := shown(collect(t, Options{}, object("assistant", `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"T","input":`+input+`}]}`)))
		require.Equal(t, want, got, input)
	}
}

// Messages of archives and other formats say the same as those of providers.
func TestOtherFormats(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"user","message":{"role":"user","content":"hi"}}`:                                                                                                                             "prompt: hi\n",
		`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`:                                                                    "prompt: hi\n",
		`{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]},"id":"m"}`:                                                                                                 "prompt: hi\n",
		`{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"sediment://1"},"what is it?"]}}`:                "file: [file sediment://1]\nprompt: what is it?\n",
		`{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"summary":"s","content":"hm"}]}}`:                                                                    "thinking: (thinking) hm\n",
		`{"author":{"role":"assistant"},"content":{"content_type":"code","language":"python","text":"print(1)"}}`:                                                                              "answer: print(1)\n",
		`{"uuid":"1","sender":"human","text":"hi","content":[]}`:                                                                                                                               "prompt: hi\n",
		`{"uuid":"1","sender":"assistant","content":[{"type":"tool_use","name":"web_search","input":{"query":"x"}},{"type":"tool_result","name":"web_search","content":"found"}]}`:             "→ web_search x\n  ← found @1\n",
		`{"messageId":"1","isCreatedByUser":true,"text":"hi"}`:                                                                                                                                 "prompt: hi\n",
		`{"messageId":"1","isCreatedByUser":false,"content":[{"type":"tool_call","tool_call":{"id":"t","name":"f","args":"{\"x\":1}","output":"1"}},{"type":"text","text":{"value":"done"}}]}`: "→ f 1\n  ← 1 @1\nanswer: done\n",
		`{"from":"human","value":"hi"}`:                                                                                                            "prompt: hi\n",
		`{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"x\":1}}"}`:                                                              "→ f 1\n",
		`{"message_id":"m","text":"hi","role":"prompter"}`:                                                                                         "prompt: hi\n",
		`{"id":["langchain","schema","HumanMessage"],"kwargs":{"content":"hi","type":"human"}}`:                                                    "prompt: hi\n",
		`{"id":["langchain","schema","AIMessage"],"kwargs":{"content":"","tool_calls":[{"name":"f","args":{"x":1},"id":"c","type":"tool_call"}]}}`: "→ f 1\n",
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}}`:                                                 "→ f 1\n",
		`{"role":"function","name":"f","content":"1"}`:                                                                                             "← 1 @1\n",
		`{"role":"tool","tool_call_ids":["c"],"content":"seen"}`:                                                                                   "← seen @1\n",
		`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a","toolName":"f","input":{"x":1}}]}`:                                    "→ f 1\n",
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"f","output":{"type":"json","value":{"x":1}}}]}`:              "← {\"x\":1} @1\n",
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"T","url":"u"}]}]}`: "→ web_search x\n  ← [{\"type\":\"web_search_result\",\"title\":\"T\",\"url\":\"u\"}] @1\n",
		`{"type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls","-l"]}}`:        "→ local_shell ls -l\n  rest {\"type\":\"exec\"}\n",
		`{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"x"}}`: "data: {\"type\":\"web_search_call\",\"id\":\"w\",\"status\":\"completed\",\"action\":{\"type\":\"search\",\"query\":\"x\"}}\n",
		`{"role":"assistant","content":"","refusal":"no"}`:                                                "answer: no\n",
		`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`:                              "prompt: a\nanswer: b\n",
		`"hi"`:    "text: hi\n",
		`7`:       "text: 7\n",
		`null`:    "",
		`{broken`: "text: {broken\n",
	} {
		require.Equal(t, want, shown(collect(t, Options{}, object("", body))), body)
	}
}

// What Claude Code records about an edit is its change, with the lines around it.
func TestRecordedChange(t *testing.T) {
	items := collect(t, Options{},
		object("assistant", `{"content":[{"type":"tool_use","id":"a","name":"Edit","input":{"file_path":"a","old_string":"x","new_string":"y"}}]}`),
		with(object("user", `{"content":[{"type":"tool_result","tool_use_id":"a","content":"done"}]}`), `{"toolUseResult":{"structuredPatch":[{"oldStart":3,"oldLines":2,"newStart":3,"newLines":2,"lines":[" a","-x","+y"]}]}}`))
	require.Equal(t, "@@ -3,2 +3,2 @@\n a\n-x\n+y\n", items[0].Call.Diff)
}

func TestTextsOfPrograms(t *testing.T) {
	for text, want := range map[string]string{
		"<b>bold</b> is HTML":                      "prompt: <b>bold</b> is HTML\n",
		"<system-reminder>\nx\n</system-reminder>": "reminder: (system-reminder) x\n",
		"<system-reminder>no end":                  "prompt: <system-reminder>no end\n",
		"<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\nfix it\n<system-reminder>c</system-reminder>\n<system-reminder>d</system-reminder>": "reminder: (system-reminder) a\nreminder: (system-reminder) b\nprompt: fix it\nreminder: (system-reminder) c\nreminder: (system-reminder) d\n",
		"what does <system-reminder>x</system-reminder> do?":                                                                          "prompt: what does <system-reminder>x</system-reminder> do?\n",
		"<command-message>init is analyzing…</command-message>\n<command-name>/init</command-name>\n<command-args>now</command-args>": "command: /init now\n",
		"<command-name>clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>":                 "command: /clear\n",
		"<bash-input>ls</bash-input>":                                       "command: ! ls\n",
		"<local-command-stdout>out</local-command-stdout>":                  "reminder: (local-command-stdout) out\n",
		"[Request interrupted by user for tool use]":                        "reminder: (interrupted) [Request interrupted by user for tool use]\n",
		"# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>x</INSTRUCTIONS>": "reminder: (instructions) # AGENTS.md instructions for /p <INSTRUCTIONS>x</INSTRUCTIONS>\n",
		"<task-notification>\nx\n</task-notification>\nRead the file":       "reminder: (task-notification) x\nreminder: (task-notification) Read the file\n",
		"<USER_REQUEST>\nfix it\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nx\n</ADDITIONAL_METADATA>\n<USER_SETTINGS_CHANGE>\ny\n</USER_SETTINGS_CHANGE>": "prompt: fix it\nreminder: (ADDITIONAL_METADATA) x\nreminder: (USER_SETTINGS_CHANGE) y\n",
		"<USER_REQUEST>\na\n</USER_REQUEST>\n<USER_REQUEST>\nb\n</USER_REQUEST>":                                                                        "prompt: <USER_REQUEST> a </USER_REQUEST> <USER_REQUEST> b </USER_REQUEST>\n",
		" \n": "",
	} {
		require.Equal(t, want, shown(collect(t, Options{}, plain("user", text))), text)
	}
	require.Equal(t, "reminder: (reminder) x\n", shown(collect(t, Options{}, with(plain("user", "x"), `{"isMeta":true}`))))
	require.Equal(t, "reminder: (summary) x\n", shown(collect(t, Options{}, with(plain("user", "x"), `{"isCompactSummary":true}`))))
	require.Equal(t, "prompt: x\n", shown(collect(t, Options{}, with(plain("user", "x"), `{"isMeta":`))))
	require.Equal(t, "instruction: be brief\n", shown(collect(t, Options{}, plain("developer", "be brief"))))
	require.Equal(t, "reminder: (reminder) Conversation compacted\n", shown(collect(t, Options{}, with(plain("system", "Conversation compacted"), `{"subtype":"compact_boundary"}`))))
	require.Equal(t, "answer: <system-reminder>x</system-reminder>\n", shown(collect(t, Options{}, plain("assistant", "<system-reminder>x</system-reminder>"))))
}

func TestLine(t *testing.T) {
	for _, test := range []struct {
		m             *Message
		speaker, says string
	}{
		{plain("user", "a\n b"), "user", "a b"},
		{&Message{Role: "user", Name: "ada", Body: []byte("a")}, "user ada", "a"},
		{object("user", `{"content":[{"type":"tool_result","tool_use_id":"a","content":"x\ny"},{"type":"tool_result","tool_use_id":"b","content":"z","is_error":true}]}`), "tool", "← x y ✗ z"},
		{object("user", `{"content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"and now?"}]}`), "user", "← x and now?"},
		{object("assistant", `{"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]}`), "assistant", "(thinking) hm → Bash ls"},
		{object("assistant", `{"content":[{"type":"text","text":"x"},{"type":"unknown"}]}`), "assistant", "x"},
		{object("progress", `{"type":"progress","data":1}`), "progress", `{"type":"progress","data":1}`},
		{&Message{Role: "user", Document: "a.md", Body: []byte("# A")}, "document a.md", "# A"},
		{&Message{Role: "user", Filename: "a.png", Type: "image/png", Size: 7}, "file a.png", "[image a.png, image/png, 7 bytes]"},
		{&Message{Role: "user", Erased: true}, "user", "(erased)"},
		{plain("user", strings.Repeat("é", 5000)), "user", strings.Repeat("é", 2048)},
	} {
		speaker, says := Line(test.m)
		require.Equal(t, test.speaker, speaker)
		require.Equal(t, test.says, says)
	}
}

// What a result is of is known from its call, or else from what the result states.
func TestOf(t *testing.T) {
	for want, r := range map[string]*ToolResult{
		"Bash ls": {Tool: "other", Call: &ToolCall{Tool: "Bash", Title: "ls"}},
		"Bash":    {Call: &ToolCall{Tool: "Bash"}},
		"ls":      {Call: &ToolCall{Title: "ls"}},
		"Read":    {Tool: "Read"},
		"":        {},
	} {
		require.Equal(t, want, r.Of())
	}
}

// A result in each of two branches finds the call of the history that they share.
func TestFork(t *testing.T) {
	call := object("assistant", `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`)
	trunk := NewPairer(Options{})
	trunk.Add(call)
	trunk.Mark("fork")
	branch := trunk.Fork()
	require.Empty(t, trunk.Ready())
	branch.Add(object("tool", `{"role":"tool","tool_call_id":"1","content":"in the branch"}`))
	require.Equal(t, "(f 1) ← in the branch @0\n", shown(branch.Flush()))
	trunk.Add(object("tool", `{"role":"tool","tool_call_id":"1","content":"in the trunk"}`))
	items := trunk.Ready()
	require.Equal(t, "→ f 1\n  ← in the trunk @0\nmark: \n", shown(items))
	require.Equal(t, "fork", items[1].Value)
	branch.Add(object("assistant", `{"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]}`))
	trunk.Add(object("tool", `{"role":"tool","tool_call_id":"2","content":"of another branch"}`))
	require.Equal(t, "← of another branch @0\n", shown(trunk.Ready()))
}

// The memory of a pairer does not grow with calls that are never answered.
func TestManyCalls(t *testing.T) {
	p := NewPairer(Options{})
	n, returned := 20_000, 0
	for i := range n {
		p.Add(object("assistant", fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, i)))
		returned += len(p.Ready())
		require.LessOrEqual(t, len(p.queue), maxHeld)
		require.LessOrEqual(t, len(p.open), maxHeld)
		require.LessOrEqual(t, len(p.known), 2*maxKnown)
	}
	require.Equal(t, n, returned+len(p.Flush()))
	p.Add(object("tool", fmt.Sprintf(`{"role":"tool","tool_call_id":"%d","content":"x"}`, n-maxKnown)))
	p.Add(object("tool", `{"role":"tool","tool_call_id":"0","content":"x"}`))
	items := p.Ready()
	require.NotNil(t, items[0].Result.Call)
	require.Nil(t, items[1].Result.Call)
}

func TestMaxText(t *testing.T) {
	items := collect(t, Options{MaxText: 5},
		plain("user", "äöüß"), plain("assistant", strings.Repeat("x", 10<<20)),
		object("assistant", `{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"echo 123456789"}}]}`),
		object("user", `{"content":[{"type":"tool_result","tool_use_id":"a","content":"123456789"}]}`))
	require.Equal(t, "äö", items[0].Text)
	require.Equal(t, 4, items[0].Left)
	require.Equal(t, 10<<20-5, items[1].Left)
	require.Equal(t, "echo ", items[2].Call.Text)
	require.Equal(t, 9, items[2].Call.Left)
	require.Equal(t, "12345", items[2].Call.Results[0].Text)
	require.Equal(t, 4, items[2].Call.Results[0].Left)
}

func TestTitle(t *testing.T) {
	for _, test := range []struct {
		title, source string
		says          []*Message
		want          string
	}{
		{"A\n trip", "id", []*Message{plain("user", "hi")}, "A trip"},
		{" \t", "id", []*Message{plain("user", "hi")}, "hi"},
		{"", "id", nil, "id"},
		{"", "", nil, ""},
		{"", "id", []*Message{plain("assistant", "hello"), plain("user", "fix\nthe  build")}, "fix the build"},
		{"", "id", []*Message{plain("assistant", "hello"), plain("user", " ")}, "hello"},
		{"", "id", []*Message{plain("assistant", ""), plain("user", ""), plain("assistant", "x")}, "x"},
		{"", "", []*Message{plain("user", strings.Repeat("é", 80))}, strings.Repeat("é", 80)},
		{"", "", []*Message{plain("user", strings.Repeat("é", 81))}, strings.Repeat("é", 79) + "…"},
		{"", "", []*Message{plain("user", strings.Repeat("é", 5000))}, strings.Repeat("é", 79) + "…"},
		{"", "id", []*Message{plain("system", "You are an agent."), plain("user", "<environment_context>x</environment_context>"), plain("user", "Why?")}, "Why?"},
		{"", "id", []*Message{plain("user", "<command-name>/clear</command-name>"), with(plain("user", "Caveat"), `{"isMeta":true}`), plain("user", "Why?")}, "Why?"},
		{"", "id", []*Message{plain("user", "<command-name>/init</command-name>"), plain("assistant", "I look.")}, "/init"},
		{"", "id", []*Message{with(plain("user", "x"), `{"isMeta":true}`)}, "id"},
	} {
		got, err := Title(test.title, test.source, history(test.says...))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	failed := fmt.Errorf("failed")
	_, err := Title("", "id", func(yield func(*Message, error) bool) { yield(nil, failed) })
	require.ErrorIs(t, err, failed)
	many := make([]*Message, TitleMessages+1)
	for i := range many {
		many[i] = plain("assistant", fmt.Sprint(i))
	}
	many[TitleMessages] = plain("user", "late")
	got, err := Title("", "id", history(many...))
	require.NoError(t, err)
	require.Equal(t, "0", got)
}

// requireWhole checks that items are what messages say: each part once.
func requireWhole(t require.TestingT, messages []*Message, items []*Item) {
	var want, got [message.DataKind + 1]int
	files, texts, gotTexts := 0, "", ""
	outputs := func(parts []message.Part) {
		for i := range parts {
			if parts[i].Kind == message.FileKind {
				files++
			}
		}
	}
	for _, m := range messages {
		for _, said := range message.Decode(m.Body, m.Type, m.Role) {
			for i := range said.Parts {
				p := &said.Parts[i]
				blank := (p.Kind == message.TextKind || p.Kind == message.ReasoningKind) && strings.TrimSpace(p.Text) == "" ||
					p.Kind == message.DataKind && (p.Name == "step-start" || strings.TrimSpace(string(p.Data)) == "")
				if !blank {
					want[p.Kind]++
				}
				if p.Kind == message.TextKind && !blank {
					texts += p.Text
				}
				outputs(p.Output)
			}
		}
	}
	result := func(r *ToolResult) {
		got[message.ResultKind]++
		files -= len(r.Files)
		require.NotNil(t, r.From)
	}
	for _, i := range items {
		require.NotNil(t, i.From)
		require.NotContains(t, i.Line(), "\n")
		switch i.Kind {
		case Call:
			got[message.CallKind]++
			for _, r := range i.Call.Results {
				require.Same(t, i.Call, r.Call)
				result(r)
			}
		case Result:
			result(i.Result)
		case Thinking:
			got[message.ReasoningKind]++
		case File:
			got[message.FileKind]++
		case Data:
			got[message.DataKind]++
		default:
			got[message.TextKind]++
			require.Contains(t, texts, i.Text)
			gotTexts += i.Text
		}
	}
	if !strings.ContainsAny(texts, "<[#C") {
		require.Equal(t, texts, gotTexts) // no text of a program
	}
	require.GreaterOrEqual(t, got[message.TextKind], want[message.TextKind])
	got[message.TextKind] = want[message.TextKind]
	require.Equal(t, want, got)
	require.Zero(t, files)
}

// Each part of a message is in the transcript once, in any format.
func TestEveryPartOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var messages []*Message
		if rapid.Bool().Draw(rt, "wild") {
			for _, b := range messagetest.Wild(rt) {
				messages = append(messages, &Message{Role: b.Role, Type: b.Type, Body: []byte(b.Bytes)})
			}
		} else {
			dialects := message.Dialects()
			for _, body := range messagetest.History(rt, rapid.SampledFrom(dialects).Draw(rt, "dialect")) {
				messages = append(messages, object("user", body))
			}
		}
		requireWhole(rt, messages, collect(rt, Options{}, messages...))
		for _, m := range messages {
			_, line := Line(m)
			require.NotContains(rt, line, "\n")
		}
	})
}

func FuzzItems(f *testing.F) {
	for _, odd := range messagetest.Oddities() {
		f.Add("user", odd, `{"isMeta":true}`)
	}
	f.Add("assistant", `{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":["x"]}}]}`, `{"toolUseResult":{"structuredPatch":[{"lines":[1]}]}}`)
	f.Fuzz(func(t *testing.T, role, body, metadata string) {
		m := &Message{Role: role, Type: "application/json", Body: []byte(body), Metadata: []byte(metadata)}
		items := collect(t, Options{}, m, m)
		if !flagsOf(m.Metadata).program {
			requireWhole(t, []*Message{m, m}, items)
		}
		for _, i := range collect(t, Options{MaxText: 3}, m) {
			require.LessOrEqual(t, len(i.Text), 3)
		}
	})
}

// Whatever the order of calls, results and prompts, each is there once and in the order of the history,
// and a result is only in a call with its id that came before it.
func TestAnyOrderOfResults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var messages []*Message
		for range rapid.IntRange(0, 40).Draw(rt, "messages") {
			id := rapid.SampledFrom([]string{"1", "2", "3", ""}).Draw(rt, "id")
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0:
				messages = append(messages, plain("user", "prompt"))
			case 1, 2:
				messages = append(messages, object("assistant", `{"role":"assistant","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}}]}`))
			default:
				messages = append(messages, object("tool", `{"role":"tool","tool_call_id":"`+id+`","content":"x"}`))
			}
		}
		items := collect(rt, Options{}, messages...)
		requireWhole(rt, messages, items)
		last := uint64(0)
		for _, i := range items {
			require.GreaterOrEqual(rt, i.From.Position, last)
			last = i.From.Position
			if i.Kind != Call {
				continue
			}
			for _, r := range i.Call.Results {
				require.True(rt, r.ID == "" || r.ID == i.Call.ID)
				require.Greater(rt, r.From.Position, i.From.Position)
			}
		}
	})
}
