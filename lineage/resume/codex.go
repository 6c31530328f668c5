package resume

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/message"
)

// codex creates rollouts of Codex. A rollout is a file of records. The last compaction and the records after it are
// sent to the model.
func codex() *sessionFormat {
	return &sessionFormat{
		newID: uuidV7,
		path: func(s *Session, now time.Time) (string, error) {
			now = now.Local() // Codex uses local time in file names
			return path.Join(now.Format("2006/01/02"), "rollout-"+now.Format("2006-01-02T15-04-05")+"-"+s.ID+".jsonl"), nil
		},
		commands: func(s *Session) [][]string { return [][]string{{"codex", "resume", s.ID}} },
		line: func(raw []byte, l *ownLine) error {
			payload := rawjson.Last(raw, "payload")
			if payload == nil && rawjson.Last(raw, "record_type") == nil {
				return errOldForm
			}
			switch text(raw, "type") {
			case "session_meta":
				if base := rawjson.Last(payload, "history_base"); rawjson.IsObject(base) {
					return errElsewhere
				}
			case "event_msg":
				switch text(payload, "type") {
				case "task_started", "turn_started", "thread_rolled_back", "thread_settings_applied", "user_message":
				default:
					l.follows = true
				}
			case "response_item":
				l.isMessage = true
			case "compacted":
				l.isMessage, l.beside = true, 1 // the record is kept too
			case "token_usage_record":
				l.follows = true
			}
			return nil
		},
		editor: codexEditor,
		make:   makeCodex,
	}
}

// codexEditor returns a function that changes the records of a rollout for another session.
func codexEditor(s *Session) func(raw []byte) []byte {
	was, begun, ordinal := s.own.source.Recorded.Session, false, 0
	return func(raw []byte) []byte {
		payload := rawjson.Last(raw, "payload")
		if payload == nil {
			return nil // a state, which older versions wrote between records
		}
		kind := text(raw, "type")
		switch kind {
		case "response_item", "compacted":
			// Messages stay byte for byte.
		case "session_meta":
			if begun {
				return nil // those of sessions that this one was copied from
			}
			begun = true
			raw = set(raw, "payload", s.codexHeader(payload, was))
			raw = setText(raw, "timestamp", stamp(s.now))
		case "turn_context":
			payload = setText(setText(ungranted(payload), "cwd", s.Dir), "approval_policy", "on-request")
			raw = set(raw, "payload", set(payload, "sandbox_policy", []byte(`{"type":"read-only"}`)))
		case "event_msg":
			if text(payload, "type") == "thread_settings_applied" {
				return nil
			}
			fallthrough
		default:
			payload = rename(rename(ungranted(payload), "thread_id", was, s.ID), "session_id", was, s.ID)
			raw = set(raw, "payload", payload)
		}
		if rawjson.Last(raw, "ordinal") != nil {
			raw = set(raw, "ordinal", strconv.AppendInt(nil, int64(ordinal), 10))
		}
		ordinal++
		return raw
	}
}

// codexHeader returns the header of a new session, made from that of another one.
func (s *Session) codexHeader(header []byte, was string) []byte {
	header = rawjson.RemoveFunc(ungranted(header), func(key string) bool {
		switch key {
		case "parent_thread_id", "agent_nickname", "agent_role", "agent_path", "dynamic_tools", "subagent_history_start_ordinal":
			return true // of a subagent, or of the program that started it
		}
		return false
	})
	header = rename(header, "session_id", was, s.ID)
	header = setText(setText(header, "id", s.ID), "timestamp", stamp(s.now))
	header = setText(setText(header, "cwd", s.Dir), "source", "cli")
	header = setText(header, "model_provider", s.codexProvider(text(header, "model_provider")))
	return setText(header, "forked_from_id", was)
}

// builtIn are the model providers that Codex knows without configuration.
var builtIn = []string{"openai", "ollama", "lmstudio", "amazon-bedrock"}

var (
	tomlTable    = regexp.MustCompile(`^\s*\[`)
	tomlProvider = regexp.MustCompile(`^\s*model_provider\s*=\s*["']([^"']+)["']`)
)

// codexProvider returns the model provider of a session: the previous one if it is configured on this machine, else
// the default. At a terminal, Codex does not continue a session with an unknown provider.
func (s *Session) codexProvider(was string) string {
	config, _ := vfs.ReadFile(filepath.Join(filepath.Dir(s.Root), "config.toml"), maxConfig) // without it there are the built-in ones
	usual, top, has := builtIn[0], true, slices.Contains(builtIn, was)
	for line := range strings.Lines(string(config)) {
		top = top && !tomlTable.MatchString(line)
		if m := tomlProvider.FindStringSubmatch(line); top && m != nil {
			usual = m[1]
		}
		name := strings.TrimPrefix(strings.TrimSpace(line), "[model_providers.")
		has = has || was != "" && (strings.HasPrefix(name, was+"]") || strings.HasPrefix(name, strconv.Quote(was)+"]"))
	}
	if has {
		return was
	}
	return usual
}

// codexVersion is the version of Codex whose records are written.
const codexVersion = "0.171.0"

// makeCodex adds a record for each item of the Responses API.
func makeCodex(m *maker, p *excerpt) error {
	encoded, err := message.Encode(message.Responses, p.messages)
	if err != nil {
		return err
	}
	for _, l := range encoded.Losses {
		m.lose(p, l.Message, l.Reason)
	}
	r := codexRecords{m: m, numbered: rawjson.Last(m.after.first, "ordinal") != nil}
	if m.s.own == nil {
		r.add("session_meta", map[string]any{
			"id": m.s.ID, "timestamp": stamp(m.s.now), "cwd": m.s.Dir, "originator": "lineage", "cli_version": codexVersion, "source": "cli",
			"model_provider": m.s.codexProvider(""),
		})
	}
	for _, item := range encoded.Items {
		m.said++
		if rawjson.Get(item, "type") == nil {
			item = rawjson.Set(item, []byte(`"type"`), []byte(`"message"`))
		}
		item = codexItem(item)
		r.add("response_item", json.RawMessage(item))
		// These records are what Codex displays of the history.
		if shown := itemText(item); shown != "" {
			switch text(item, "role") {
			case "user":
				r.add("event_msg", map[string]any{"type": "user_message", "message": shown, "images": []string{}})
			case "assistant":
				r.add("event_msg", map[string]any{"type": "agent_message", "message": shown})
			}
		}
	}
	return r.err
}

// codexItem returns an item in the form that Codex reads: the content of a message is a list, and the role system is
// not sent.
func codexItem(item []byte) []byte {
	if text(item, "role") == "system" {
		item = setText(item, "role", "developer")
	}
	content := rawjson.Get(item, "content")
	if text(item, "type") != "message" || !rawjson.IsString(content) {
		return item
	}
	kind := "input_text"
	if text(item, "role") == "assistant" {
		kind = "output_text"
	}
	list := fmt.Appendf(nil, `[{"type":%q,"text":%s}]`, kind, content)
	return rawjson.Set(item, []byte(`"content"`), list)
}

// itemText returns the text of a message.
func itemText(item []byte) (shown string) {
	for part := range rawjson.Elements(rawjson.Get(item, "content")) {
		switch text(part, "type") {
		case "input_text", "output_text", "text":
			if shown != "" {
				shown += "\n"
			}
			shown += text(part, "text")
		}
	}
	return shown
}

type codexRecords struct {
	m        *maker
	numbered bool
	err      error
}

func (r *codexRecords) add(kind string, payload any) {
	record := struct {
		Timestamp string `json:"timestamp"`
		Ordinal   *int64 `json:"ordinal,omitempty"`
		Type      string `json:"type"`
		Payload   any    `json:"payload"`
	}{Timestamp: stamp(r.m.s.now), Type: kind, Payload: payload}
	if r.numbered {
		n := r.m.after.lines + int64(len(r.m.lines))
		record.Ordinal = &n
	}
	line, err := marshal(record)
	if r.err == nil {
		r.err = err
	}
	r.m.add(line)
}
