package resume

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// openCode creates sessions of OpenCode, which keeps them in a database. A session is a file for its import, in the
// format of its export. The file is in a folder of this program.
func openCode() *sessionFormat {
	return &sessionFormat{
		newID: func() string { return "ses_" + openCodeID(^openCodeClock(time.Now()), openCodeSuffix()) },
		root:  func(s *Session) string { return filepath.Join(s.environment.State(), "resume") },
		path:  func(s *Session, _ time.Time) (string, error) { return "opencode-" + s.ID + ".json", nil },
		commands: func(s *Session) [][]string {
			return [][]string{{"opencode", "import", s.File()}, {"opencode", "--session", s.ID}}
		},
		line: func(raw []byte, l *ownLine) error {
			l.id, l.isMessage = text(rawjson.Last(raw, "info"), "id"), true
			return nil
		},
		stored: openCodeStored,
		marked: true,
		editor: openCodeEditor,
		make:   makeOpenCode,
		frame:  openCodeFrame,
	}
}

// openCodeFrame returns the text before and after the messages.
func openCodeFrame(s *Session) (head, tail []byte, err error) {
	now := s.now.UnixMilli()
	title := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s.about.title, "\uFFFD"))
	if title == "" {
		title = "New session - " + stamp(s.now) // which the program replaces
	}
	// The import sets the project and the folder to those in which it runs.
	info, err := marshal(map[string]any{
		"id": s.ID, "slug": "resumed-" + strings.ToLower(s.ID[len(s.ID)-openCodeSuffixSize:]), "projectID": "global", "directory": s.Dir,
		"title": title, "version": "lineage", "time": map[string]int64{"created": now, "updated": now},
	})
	return fmt.Appendf(nil, `{"info":%s,"messages":[`, info), []byte("]}"), err
}

type openCodeMessage struct {
	Info  any   `json:"info"`
	Parts []any `json:"parts"`
}

type openCodeUser struct {
	ID      string           `json:"id"`
	Session string           `json:"sessionID"`
	Role    string           `json:"role"`
	Time    map[string]int64 `json:"time"`
	Agent   string           `json:"agent"`
	Model   openCodeModel    `json:"model"`
}

type openCodeAssistant struct {
	ID       string            `json:"id"`
	Session  string            `json:"sessionID"`
	Role     string            `json:"role"`
	Time     map[string]int64  `json:"time"`
	Parent   string            `json:"parentID"`
	Model    string            `json:"modelID"`
	Provider string            `json:"providerID"`
	Mode     string            `json:"mode"`
	Agent    string            `json:"agent"`
	Path     map[string]string `json:"path"`
	Cost     int64             `json:"cost"`
	Tokens   openCodeTokens    `json:"tokens"`
	Finish   string            `json:"finish"`
}

// openCodeTokens are zero, because the tokens of an answer were counted where it was made.
type openCodeTokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	Cache     struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

// openCodePart is a part of a message.
type openCodePart struct {
	ID      string         `json:"id"`
	Session string         `json:"sessionID"`
	Message string         `json:"messageID"`
	Type    string         `json:"type"`
	Text    *string        `json:"text,omitempty"`
	MIME    string         `json:"mime,omitempty"`
	URL     string         `json:"url,omitempty"`
	CallID  string         `json:"callID,omitempty"`
	Tool    string         `json:"tool,omitempty"`
	State   *openCodeState `json:"state,omitempty"`
}

// openCodeState is the state of a call. A call is pending until it has a result.
type openCodeState struct {
	Status   string            `json:"status"`
	Input    json.RawMessage   `json:"input"`
	Raw      *string           `json:"raw,omitempty"`
	Output   *string           `json:"output,omitempty"`
	Error    *string           `json:"error,omitempty"`
	Title    *string           `json:"title,omitempty"`
	Metadata map[string]string `json:"metadata,omitzero"`
	Time     map[string]int64  `json:"time,omitempty"`
}

// makeOpenCode adds a message for each turn. A call contains its result.
func makeOpenCode(m *maker, p *excerpt) error {
	turns, err := m.turns(p)
	if err != nil {
		return err
	}
	o := openCodeMessages{m: m, n: m.after.lines, at: m.s.now.UnixMilli(), results: resultsOf(turns)}
	o.mode, o.model = m.s.openCodeChoice()
	o.question = m.s.openCodeMessageID(o.n)
	if last := rawjson.Last(m.after.line, "info"); last != nil {
		o.question = text(last, "parentID")
		if text(last, "role") == "user" {
			o.question = text(last, "id")
		}
	}
	for _, t := range turns {
		if err := o.add(t); err != nil {
			return err
		}
	}
	return nil
}

// resultsOf returns the results of calls by the ids of the calls.
func resultsOf(turns []turn) map[string]contentBlock {
	results := make(map[string]contentBlock)
	for _, t := range turns {
		for _, b := range t.blocks {
			if b.kind == "tool_result" {
				results[b.text("tool_use_id")] = b
			}
		}
	}
	return results
}

// openCodeMessages adds messages.
type openCodeMessages struct {
	m     *maker
	n, at int64
	// question is the id of the last message of the user.
	question string
	mode     string
	model    openCodeModel
	results  map[string]contentBlock
}

func (o *openCodeMessages) add(t turn) error {
	s, id := o.m.s, o.m.s.openCodeMessageID(o.n)
	var parts []any
	finish := "stop"
	for _, b := range t.blocks {
		part, ok := o.part(b)
		if !ok {
			continue
		}
		if part.Type == "tool" {
			finish = "tool-calls"
		}
		part.ID, part.Session, part.Message = openCodePartID(id, len(parts)), s.ID, id
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil
	}
	created := map[string]int64{"created": o.at}
	message := openCodeMessage{Parts: parts}
	if t.role == "assistant" {
		created["completed"] = o.at
		message.Info = openCodeAssistant{
			ID: id, Session: s.ID, Role: t.role, Time: created, Parent: o.question, Model: "unknown", Provider: "unknown", Mode: o.mode, Agent: o.mode,
			Path: map[string]string{"cwd": s.Dir, "root": s.Dir}, Finish: finish,
		}
	} else {
		o.question = id
		message.Info = openCodeUser{ID: id, Session: s.ID, Role: "user", Time: created, Agent: o.mode, Model: o.model}
	}
	line, err := marshal(message)
	o.n++
	o.m.said++
	o.m.add(line)
	return err
}

// part returns a block as a part of OpenCode. ok is false for a block that OpenCode cannot express, and for results,
// which are in their calls.
func (o *openCodeMessages) part(b contentBlock) (p openCodePart, ok bool) {
	partOf := func(text string) (openCodePart, bool) { return openCodePart{Type: "text", Text: &text}, true }
	switch b.kind {
	case "text":
		return partOf(b.text("text"))
	case "thinking", "redacted_thinking":
		o.m.loseBlock(b, "left out, OpenCode sends the reasoning of other models as their text")
		return p, false
	case "tool_result":
		return p, false
	case "tool_use":
		return openCodePart{Type: "tool", CallID: b.text("id"), Tool: b.text("name"), State: o.state(b)}, true
	case "image", "document":
		source := rawjson.Last(b.raw, "source")
		if data := text(source, "data"); data != "" && text(source, "type") == "base64" {
			kind := text(source, "media_type")
			return openCodePart{Type: "file", MIME: kind, URL: "data:" + kind + ";base64," + data}, true
		}
	}
	o.m.loseBlock(b, "as a note")
	return partOf(b.note())
}

// state returns the state of a call.
func (o *openCodeMessages) state(call contentBlock) *openCodeState {
	none := ""
	state := &openCodeState{Status: "pending", Input: rawjson.Last(call.raw, "input"), Raw: &none}
	if !rawjson.IsObject(state.Input) {
		state.Input = []byte("{}")
	}
	result, ok := o.results[call.text("id")]
	if !ok {
		return state
	}
	output := o.m.output(result)
	state.Raw, state.Time = nil, map[string]int64{"start": o.at, "end": o.at}
	if rawjson.IsTrue(rawjson.Last(result.raw, "is_error")) {
		state.Status, state.Error = "error", &output
		return state
	}
	state.Status, state.Output, state.Title, state.Metadata = "completed", &output, &none, map[string]string{}
	return state
}
