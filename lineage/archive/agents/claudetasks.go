package agents

import "github.com/lineage-store/lineage/internal/rawjson"

// claudeTasks tracks the calls of a session of Claude Code that start subagents and have no result yet. Older
// versions write the messages of subagents into the file of the session and do not state which call started one. The
// prompt identifies the call.
type claudeTasks struct {
	open map[string]claudeTask // by the id of the call
}

type claudeTask struct{ prompt, message string }

// maxTasks limits the calls without a result that are remembered.
const maxTasks = 1000

// see records the calls and results in a message.
func (t *claudeTasks) see(id string, message []byte) {
	for block := range rawjson.Elements(rawjson.Get(message, "content")) {
		switch rawjson.Str(rawjson.Get(block, "type")) {
		case "tool_use":
			prompt := rawjson.Str(rawjson.Get(rawjson.Get(block, "input"), "prompt"))
			if prompt == "" || id == "" || len(t.open) >= maxTasks {
				continue
			}
			if t.open == nil {
				t.open = make(map[string]claudeTask)
			}
			t.open[rawjson.Str(rawjson.Get(block, "id"))] = claudeTask{prompt, id}
		case "tool_result":
			delete(t.open, rawjson.Str(rawjson.Get(block, "tool_use_id")))
		}
	}
}

// started returns the message whose call started the subagent with this first message. It is empty if no call
// matches, or several do. A call starts one subagent.
func (t *claudeTasks) started(message []byte) string {
	if len(t.open) == 0 {
		return ""
	}
	text := rawjson.Get(message, "content")
	if rawjson.IsArray(text) {
		for block := range rawjson.Elements(text) {
			text = rawjson.Get(block, "text")
			break
		}
	}
	prompt, call := rawjson.Str(text), ""
	for id, task := range t.open {
		if task.prompt == prompt {
			if call != "" {
				return ""
			}
			call = id
		}
	}
	from := t.open[call].message
	delete(t.open, call)
	return from
}
