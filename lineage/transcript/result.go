package transcript

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// result returns the description of a result.
func (r *reader) result(p *message.Part) *ToolResult {
	result := &ToolResult{From: r.m, ID: p.CallID, Tool: p.Tool, Failed: p.Failed}
	var texts []string
	for i := range p.Output {
		switch out := &p.Output[i]; {
		case out.Kind == message.FileKind:
			result.Files = append(result.Files, fileOf(out))
		default:
			if text := out.String(); text != "" {
				texts = append(texts, text)
			}
		}
	}
	text := r.meta.rounds[p.CallID].answer(strings.Join(texts, "\n\n"))
	text = result.status(Uncoloured(text))
	if r.meta.result != nil {
		result.recorded(r.meta.result)
		r.meta.result = nil // it describes the first result of the message
	}
	result.Failed = result.Failed || result.Exit != nil && *result.Exit != 0
	result.Text, result.Left = r.o.cut(text)
	return result
}

// statusLines are the first lines of results with an exit status.
var statusLines = []string{"Exit code ", "Exit code: ", "Process exited with code "}

// status sets Exit and Failed from the text of a result, and returns the text without a wrapper.
func (r *ToolResult) status(text string) string {
	if inside, ok := strings.CutPrefix(text, "<tool_use_error>"); ok {
		r.Failed = true
		return strings.TrimSuffix(strings.TrimRight(inside, "\n"), "</tool_use_error>")
	}
	if raw := bytes.TrimSpace([]byte(text)); rawjson.IsObject(raw) && rawjson.Check(raw) == nil {
		exit, output := rawjson.Get(rawjson.Get(raw, "metadata"), "exit_code"), rawjson.Get(raw, "output")
		members, _ := membersOf(raw)
		if exit != nil && rawjson.IsString(output) && len(members) == 2 {
			r.exited(string(exit))
			return rawjson.Str(output)
		}
		return text
	}
	first, _, _ := strings.Cut(text, "\n")
	for _, start := range statusLines {
		if code, ok := strings.CutPrefix(first, start); ok {
			r.exited(code)
		}
	}
	return text
}

func (r *ToolResult) exited(code string) {
	if n, err := strconv.Atoi(strings.TrimSpace(code)); err == nil {
		r.Exit = &n
	}
}

// recorded sets what the metadata of a message states about its result.
func (r *ToolResult) recorded(record []byte) {
	if !rawjson.IsObject(record) {
		return
	}
	r.diff = hunks(record)
	if code := rawjson.Get(record, "exitCode"); code != nil {
		r.exited(string(code))
	}
}
