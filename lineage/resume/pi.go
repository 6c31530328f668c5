package resume

import (
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// pi creates sessions of pi. A session is a file of entries that form a tree. pi continues the last entry.
func pi() *sessionFormat {
	return &sessionFormat{
		newID: uuidV7,
		path: func(s *Session, now time.Time) (string, error) {
			folder, err := folderName("--"+strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimLeft(s.Dir, `/\`))+"--", s.Dir)
			name := strings.NewReplacer(":", "-", ".", "-").Replace(stamp(now)) + "_" + s.ID + ".jsonl"
			return path.Join(folder, name), err
		},
		commands: func(s *Session) [][]string { return [][]string{{"pi", "--session", s.ID}} },
		line: func(raw []byte, l *ownLine) error {
			kind := text(raw, "type")
			if kind != "session" {
				l.id, l.parent = text(raw, "id"), text(raw, "parentId")
			}
			l.isMessage = piSaid(kind)
			return nil
		},
		tree:   true,
		editor: piEditor,
		make:   makePi,
	}
}

// piSaid reports whether entries of a type are messages.
func piSaid(kind string) bool {
	return kind == "message" || kind == "compaction" || kind == "branch_summary" || kind == "custom_message"
}

// piEditor returns a function that changes the entries of a session for another session.
func piEditor(s *Session) func(raw []byte) []byte {
	begun := false
	return func(raw []byte) []byte {
		switch kind := text(raw, "type"); {
		case kind == "session":
			if begun {
				return nil
			}
			begun = true
			raw = setText(setText(ungranted(raw), "id", s.ID), "timestamp", stamp(s.now))
			raw = setText(raw, "cwd", s.Dir)
			return setText(raw, "parentSession", s.own.source.About.Path)
		case piSaid(kind):
			return raw // messages stay byte for byte
		case kind == "custom":
			return set(raw, "data", []byte("null")) // of an extension: it may hold permissions in any form
		}
		return ungranted(raw)
	}
}

type piEntry struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Parent    *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`
	Message   any     `json:"message"`
}

// piUser, piResult and piAssistant are the messages of a session. Times are in milliseconds.
type piUser struct {
	Role      string `json:"role"`
	Content   []any  `json:"content"`
	Timestamp int64  `json:"timestamp"`
}

type piResult struct {
	Role      string `json:"role"`
	CallID    string `json:"toolCallId"`
	Tool      string `json:"toolName"`
	Content   []any  `json:"content"`
	Failed    bool   `json:"isError"`
	Timestamp int64  `json:"timestamp"`
}

type piAssistant struct {
	Role      string  `json:"role"`
	Content   []any   `json:"content"`
	API       string  `json:"api"`
	Provider  string  `json:"provider"`
	Model     string  `json:"model"`
	Usage     piUsage `json:"usage"`
	Stop      string  `json:"stopReason"`
	Timestamp int64   `json:"timestamp"`
}

// piUsage is zero, because the usage of an answer was counted where it was made.
type piUsage struct {
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cacheRead"`
	CacheWrite int64  `json:"cacheWrite"`
	Total      int64  `json:"totalTokens"`
	Cost       piCost `json:"cost"`
}

type piCost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

type piText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type piThinking struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"thinkingSignature,omitempty"`
}

type piImage struct {
	Type string `json:"type"`
	Data string `json:"data"`
	MIME string `json:"mimeType"`
}

type piCall struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// makePi adds an entry for each message.
func makePi(m *maker, p *excerpt) error {
	turns, err := m.turns(p)
	if err != nil {
		return err
	}
	e := piEntries{m: m, at: m.s.now.UnixMilli(), above: m.after.id, tools: make(map[string]string), taken: make(map[string]bool)}
	if m.s.own == nil {
		header, err := marshal(map[string]any{"type": "session", "version": 3, "id": m.s.ID, "timestamp": stamp(m.s.now), "cwd": m.s.Dir})
		if err != nil {
			return err
		}
		m.add(header)
	}
	for _, t := range turns {
		if t.role == "assistant" {
			e.addAnswer(t)
		} else {
			e.addUser(t)
		}
	}
	return e.err
}

// addAnswer adds a turn of the assistant.
func (e *piEntries) addAnswer(t turn) {
	answer := piAssistant{Role: "assistant", Content: []any{}, API: "unknown", Provider: "unknown", Model: "unknown", Stop: "stop", Timestamp: e.at}
	for _, b := range t.blocks {
		content := e.content(b)
		if call, ok := content.(piCall); ok {
			answer.Stop = "toolUse"
			e.tools[call.ID] = call.Name
		}
		answer.Content = append(answer.Content, content)
	}
	e.add(answer)
}

// addUser adds a turn of the user: each result of a tool, and then everything else.
func (e *piEntries) addUser(t turn) {
	var others []any
	for _, b := range t.blocks {
		if b.kind == "tool_result" {
			e.add(e.result(b))
		} else {
			others = append(others, e.content(b))
		}
	}
	if len(others) > 0 {
		e.add(piUser{"user", others, e.at})
	}
}

// result returns a result of a tool in the form of pi.
func (e *piEntries) result(b contentBlock) piResult {
	call := b.text("tool_use_id")
	r := piResult{Role: "toolResult", CallID: call, Tool: e.tools[call], Content: []any{}, Failed: rawjson.IsTrue(rawjson.Last(b.raw, "is_error")), Timestamp: e.at}
	output := rawjson.Last(b.raw, "content")
	if rawjson.IsString(output) {
		r.Content = append(r.Content, piText{"text", rawjson.Str(output)})
		return r
	}
	for raw := range rawjson.Elements(output) {
		r.Content = append(r.Content, e.content(contentBlock{text(raw, "type"), raw}))
	}
	return r
}

// piEntries adds entries, each as a child of the previous one.
type piEntries struct {
	m     *maker
	at    int64 // time of the entries, in milliseconds
	above string
	tools map[string]string // tools of calls
	taken map[string]bool   // ids of entries
	err   error
}

func (e *piEntries) add(message any) {
	entry := piEntry{Type: "message", Timestamp: stamp(e.m.s.now), Message: message, Parent: parentOf(e.above)}
	for entry.ID == "" || e.taken[entry.ID] || entry.ID == e.above {
		entry.ID = uuid.NewString()
	}
	e.taken[entry.ID], e.above = true, entry.ID
	line, err := marshal(entry)
	if e.err == nil {
		e.err = err
	}
	e.m.said++
	e.m.add(line)
}

// content returns a block in the form of pi.
func (e *piEntries) content(b contentBlock) any {
	switch b.kind {
	case "text":
		return piText{"text", b.text("text")}
	case "thinking":
		return piThinking{"thinking", b.text("thinking"), b.text("signature")}
	case "tool_use":
		return piCall{"toolCall", b.text("id"), b.text("name"), rawjson.Last(b.raw, "input")}
	case "image":
		source := rawjson.Last(b.raw, "source")
		if data := text(source, "data"); data != "" {
			return piImage{"image", data, text(source, "media_type")}
		}
	}
	e.m.loseBlock(b, "as a note")
	return piText{"text", b.note()}
}
