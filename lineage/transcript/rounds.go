package transcript

import (
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// round is a call as the metadata of an answer of VS Code states it: the input that the model wrote, and the output that it got.
// The answer itself has only what the editor displayed of them.
type round struct {
	input  []byte // nil if it is not JSON
	output string
}

// roundsOf returns the calls in the metadata of a message, by the ids that the answer has for them.
func roundsOf(metadata []byte) map[string]round {
	stated := rawjson.Get(rawjson.Get(metadata, "result"), "metadata")
	if !rawjson.IsObject(stated) {
		return nil
	}
	results := make(map[string][]byte)
	for m := range rawjson.Members(rawjson.Get(stated, "toolCallResults")) {
		if results[m.Key] == nil { // the first one counts
			results[m.Key] = m.Value
		}
	}
	rounds := make(map[string]round)
	for r := range rawjson.Elements(rawjson.Get(stated, "toolCallRounds")) {
		for call := range rawjson.Elements(rawjson.Get(r, "toolCalls")) {
			id := rawjson.Str(rawjson.Get(call, "id"))
			var found round
			if input := []byte(rawjson.Str(rawjson.Get(call, "arguments"))); rawjson.IsObject(input) && rawjson.Check(input) == nil {
				found.input = input
			}
			var texts []string
			for e := range rawjson.Elements(rawjson.Get(results[id], "content")) {
				if text := roundText(rawjson.Get(e, "value"), 0); text != "" {
					texts = append(texts, text)
				}
			}
			found.output = strings.Join(texts, "\n\n")
			shown, _, _ := strings.Cut(id, "__vscode") // the program adds this to the id of the model's API
			rounds[shown] = found
		}
	}
	return rounds
}

// maxRoundDepth limits the depth in which a result is read.
const maxRoundDepth = 32

// roundText returns the text of a part of a result: a string, or the tree of a prompt, whose leaves have the texts.
func roundText(value []byte, depth int) string {
	if rawjson.IsString(value) {
		return rawjson.Str(value)
	}
	if !rawjson.IsObject(value) || depth == maxRoundDepth {
		return ""
	}
	if node := rawjson.Get(value, "node"); node != nil {
		return roundText(node, depth+1)
	}
	var text strings.Builder
	if rawjson.IsTrue(rawjson.Get(value, "lineBreakBefore")) {
		text.WriteString("\n")
	}
	text.WriteString(rawjson.Str(rawjson.Get(value, "text")))
	for child := range rawjson.Elements(rawjson.Get(value, "children")) {
		text.WriteString(roundText(child, depth+1))
	}
	if depth <= 1 {
		return strings.Trim(text.String(), "\n")
	}
	return text.String()
}

// call describes a call. If the answer does not have its input, it is that of the round, and what the editor displayed says what
// the call is about, unless the input does.
func (r round) call(p *message.Part, o Options) *ToolCall {
	if p.Input != nil || r.input == nil {
		return newCall(p, o)
	}
	prompt := *p
	prompt.Input = r.input
	c := newCall(&prompt, o)
	if c.About == "" {
		c.About = p.Text
	}
	return c
}

// answer returns the text of a result with what its round states beyond what the editor displayed.
func (r round) answer(displayed string) string {
	switch {
	case r.output == "" || strings.Contains(displayed, r.output):
		return displayed
	case strings.Contains(r.output, strings.TrimSpace(displayed)):
		return r.output
	}
	return displayed + "\n\n" + r.output
}
