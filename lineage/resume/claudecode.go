package resume

import (
	"encoding/json"
	"path"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// claudeCode makes sessions of Claude Code: a file of lines that state their parents.
func claudeCode() *sessionFormat {
	return &sessionFormat{
		newID: uuidV4,
		path: func(s *Session, _ time.Time) (string, error) {
			folder, err := folderName(dashed(s.Dir), s.Dir) // it shortens a long name and adds a hash that depends on its version
			return path.Join(folder, s.ID+".jsonl"), err
		},
		commands: func(s *Session) [][]string { return [][]string{{"claude", "--resume", s.ID}} },
		line: func(raw []byte, l *ownLine) error {
			l.id, l.parent = text(raw, "uuid"), text(raw, "parentUuid")
			if l.parent == "" {
				l.parent = text(raw, "logicalParentUuid")
			}
			switch text(raw, "type") {
			case "user", "assistant":
				l.isMessage = rawjson.IsObject(rawjson.Last(raw, "message"))
			case "system":
				l.isMessage = rawjson.IsString(rawjson.Last(raw, "content"))
			}
			return nil
		},
		tree:   true,
		editor: claudeEditor,
		make:   makeClaude,
	}
}

// claudeEditor returns a function that changes the lines of a session for another session.
func claudeEditor(s *Session) func(raw []byte) []byte {
	was := s.own.source.Recorded.Session
	return func(raw []byte) []byte {
		switch kind := text(raw, "type"); {
		case kind == "user" || kind == "assistant" || kind == "system":
			// The message stays byte for byte. The lines of a subagent become those of the new session.
			raw = rawjson.RemoveFunc(raw, func(key string) bool { return key == "agentId" || grants(key) })
			if rawjson.IsTrue(rawjson.Last(raw, "isSidechain")) {
				raw = set(raw, "isSidechain", []byte("false"))
			}
		case text(raw, "uuid") != "" || kind == "custom-title" || kind == "ai-title" || kind == "tag":
			raw = ungranted(raw)
		default:
			// Modes, agent settings, worktrees, file backups and pointers to leaves belong to the old session.
			return nil
		}
		return rename(raw, "sessionId", was, s.ID)
	}
}

type claudeLine struct {
	Parent    *string `json:"parentUuid"`
	Sidechain bool    `json:"isSidechain"`
	UserType  string  `json:"userType"`
	Dir       string  `json:"cwd"`
	Session   string  `json:"sessionId"`
	Version   string  `json:"version,omitempty"`
	Branch    string  `json:"gitBranch,omitempty"`
	Type      string  `json:"type"`
	Message   any     `json:"message"`
	UUID      string  `json:"uuid"`
	Timestamp string  `json:"timestamp"`
}

type claudeUser struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type claudeAssistant struct {
	ID      string            `json:"id"`
	Type    string            `json:"type"`
	Role    string            `json:"role"`
	Model   string            `json:"model"`
	Content []json.RawMessage `json:"content"`
	Stop    string            `json:"stop_reason"`
	Usage   struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

// madeModel is the model that Claude Code states for messages that no model wrote.
const madeModel = "<synthetic>"

// makeClaude adds a line for each turn.
func makeClaude(m *maker, p *excerpt) error {
	turns, err := m.turns(p)
	if err != nil {
		return err
	}
	above := m.after.id
	for _, t := range turns {
		line := claudeLine{
			UserType: "external", Dir: m.s.Dir, Session: m.s.ID, Type: t.role, UUID: uuidV4(), Timestamp: stamp(m.s.now),
			Version: text(m.after.line, "version"), Branch: text(m.after.line, "gitBranch"),
		}
		line.Parent, above = parentOf(above), line.UUID
		if t.role != "assistant" {
			line.Message = claudeUser{t.role, rawjson.Get(t.item, "content")}
		} else {
			answer := claudeAssistant{ID: "msg_" + line.UUID, Type: "message", Role: t.role, Model: madeModel, Stop: "end_turn"}
			for _, b := range t.blocks {
				answer.Content = append(answer.Content, b.raw)
				if b.kind == "tool_use" {
					answer.Stop = "tool_use"
				}
			}
			line.Message = answer
		}
		raw, err := marshal(line)
		if err != nil {
			return err
		}
		m.said++
		m.add(raw)
	}
	return nil
}
