package resume

import (
	"encoding/json"
	"path"
	"time"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// qwen creates sessions of Qwen Code. A session is a file of records that state their parents. Qwen Code continues
// the last record.
func qwen() *sessionFormat {
	return &sessionFormat{
		newID: uuidV4,
		path: func(s *Session, _ time.Time) (string, error) {
			folder, err := folderName(dashed(s.Dir), s.Dir)
			return path.Join(folder, "chats", s.ID+".jsonl"), err
		},
		commands: func(s *Session) [][]string { return [][]string{{"qwen", "--resume", s.ID}} },
		line: func(raw []byte, l *ownLine) error {
			l.id, l.parent = text(raw, "uuid"), text(raw, "parentUuid")
			l.isMessage = rawjson.IsObject(rawjson.Last(raw, "message")) && text(raw, "type") != "system"
			return nil
		},
		tree:   true,
		first:  qwenFirst,
		editor: qwenEditor,
		make:   makeQwen,
	}
}

// qwenEditor returns a function that changes the records of a session for another session.
func qwenEditor(s *Session) func(raw []byte) []byte {
	was := s.own.source.Recorded.Session
	return func(raw []byte) []byte {
		switch text(raw, "type") {
		case "user", "assistant", "tool_result":
			raw = rawjson.RemoveFunc(raw, grants) // messages stay byte for byte
		default:
			raw = ungranted(raw)
		}
		raw = rename(raw, "sessionId", was, s.ID)
		from := append(append([]byte(`{"sessionId":`), rawjson.Quote(was)...), `,"messageUuid":`...)
		from = append(append(from, rawjson.Quote(text(raw, "uuid"))...), '}')
		return set(raw, "forkedFrom", from)
	}
}

// qwenFirst returns a record without a message. A session can only be loaded in the folder of its first record, and
// the other records keep the folder in which they were written.
func qwenFirst(s *Session) ([]byte, error) {
	return marshal(map[string]any{
		"uuid": uuid.NewSHA1(uuid.MustParse(s.ID), []byte("first")).String(), "parentUuid": nil, "sessionId": s.ID, "timestamp": stamp(s.now), "type": "system", "subtype": "lineage_resumed", "cwd": s.Dir,
	})
}

type qwenRecord struct {
	UUID      string  `json:"uuid"`
	Parent    *string `json:"parentUuid"`
	Session   string  `json:"sessionId"`
	Timestamp string  `json:"timestamp"`
	Type      string  `json:"type"`
	Dir       string  `json:"cwd"`
	Version   string  `json:"version"`
	Model     string  `json:"model,omitempty"`
	Message   content `json:"message"`
}

// content is the content of a message in the form of Google's API.
type content struct {
	Role  string `json:"role"`
	Parts []any  `json:"parts"`
}

type textPart struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought,omitempty"`
}

type dataPart struct {
	Data struct {
		MIME string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
}

type callPart struct {
	Call struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

type resultPart struct {
	Result struct {
		ID       string            `json:"id"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	} `json:"functionResponse"`
}

// makeQwen adds a record for each turn. The results of tools and the other content of the user are two records.
func makeQwen(m *maker, p *excerpt) error {
	turns, err := m.turns(p)
	if err != nil {
		return err
	}
	version, tools := text(m.after.line, "version"), make(map[string]string)
	above := m.after.id
	add := func(kind, role, model string, parts []any) error {
		if len(parts) == 0 {
			return nil
		}
		r := qwenRecord{
			UUID: uuidV4(), Session: m.s.ID, Timestamp: stamp(m.s.now), Type: kind, Dir: m.s.Dir, Version: version, Model: model,
			Message: content{role, parts},
		}
		r.Parent, above = parentOf(above), r.UUID
		line, err := marshal(r)
		m.said++
		m.add(line)
		return err
	}
	for _, t := range turns {
		if t.role == "assistant" {
			if err := add("assistant", "model", "unknown", m.parts(t.blocks, tools)); err != nil {
				return err
			}
			continue
		}
		var results, rest []contentBlock
		for _, b := range t.blocks {
			if b.kind == "tool_result" {
				results = append(results, b)
			} else {
				rest = append(rest, b)
			}
		}
		if err := add("tool_result", "user", "", m.parts(results, tools)); err != nil {
			return err
		}
		if err := add("user", "user", "", m.parts(rest, tools)); err != nil {
			return err
		}
	}
	return nil
}

// parts returns blocks in the form of Google's API. tools maps ids of calls to their tools.
func (m *maker) parts(blocks []contentBlock, tools map[string]string) (parts []any) {
	for _, b := range blocks {
		switch b.kind {
		case "text":
			parts = append(parts, textPart{Text: b.text("text")})
			continue
		case "thinking":
			parts = append(parts, textPart{Text: b.text("thinking"), Thought: true})
			continue
		case "tool_use":
			var call callPart
			call.Call.ID, call.Call.Name, call.Call.Args = b.text("id"), b.text("name"), rawjson.Last(b.raw, "input")
			tools[call.Call.ID] = call.Call.Name
			parts = append(parts, call)
			continue
		case "tool_result":
			var result resultPart
			result.Result.ID = b.text("tool_use_id")
			result.Result.Name = tools[result.Result.ID]
			key := "output"
			if rawjson.IsTrue(rawjson.Last(b.raw, "is_error")) {
				key = "error"
			}
			result.Result.Response = map[string]string{key: m.output(b)}
			parts = append(parts, result)
			continue
		case "image", "document":
			source := rawjson.Last(b.raw, "source")
			if data := text(source, "data"); data != "" && text(source, "type") == "base64" {
				var file dataPart
				file.Data.MIME, file.Data.Data = text(source, "media_type"), data
				parts = append(parts, file)
				continue
			}
		}
		m.loseBlock(b, "as a note")
		parts = append(parts, textPart{Text: b.note()})
	}
	return parts
}

// output returns a result as text.
func (m *maker) output(b contentBlock) string {
	output := rawjson.Last(b.raw, "content")
	if rawjson.IsString(output) {
		return rawjson.Str(output)
	}
	joined := ""
	for raw := range rawjson.Elements(output) {
		if joined != "" {
			joined += "\n"
		}
		if part := (contentBlock{text(raw, "type"), raw}); part.kind == "text" {
			joined += part.text("text")
		} else {
			m.loseBlock(part, "as a note in a result")
			joined += part.note()
		}
	}
	return joined
}
