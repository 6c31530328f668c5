package resume

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// gemini creates sessions of Gemini CLI. A session is a file of messages, in a folder per project. Its lines can change
// earlier ones, so the history is always translated.
func gemini() *sessionFormat {
	return &sessionFormat{
		newID:  uuidV4,
		marked: true,
		path: func(s *Session, now time.Time) (string, error) {
			folder := s.geminiProject()
			if folder == "" {
				folder = "lineage-" + s.ID[:8]
				s.also = append(s.also, extraFile{path.Join(folder, geminiMarker), []byte(s.Dir)})
			}
			return path.Join(folder, "chats", "session-"+now.UTC().Format("2006-01-02T15-04")+"-"+s.ID[:8]+".jsonl"), nil
		},
		commands: func(s *Session) [][]string { return [][]string{{"gemini", "--resume", s.ID}} },
		make:     makeGemini,
	}
}

const (
	// geminiMarker is a file that contains the path of a project. The project's folder of the agent is the one with
	// this file, whatever its name.
	geminiMarker = ".project_root"
)

var geminiFolder = regexp.MustCompile(`^[a-z0-9-]+$`)

// geminiProject returns the name of the project's folder below the agent's, empty if it has none. The agent's registry names
// it; a registry that is missing or wrong does not matter where a folder has the marker.
func (s *Session) geminiProject() string {
	if name := s.geminiRegistered(); name != "" {
		owner, err := s.geminiOwner(name)
		if err == nil && owner == s.Dir || os.IsNotExist(err) {
			return name
		}
	}
	entries, _ := os.ReadDir(s.Root) // a folder that does not exist has no entries
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if owner, err := s.geminiOwner(e.Name()); err == nil && owner == s.Dir {
			return e.Name()
		}
	}
	return ""
}

// geminiRegistered returns the folder that the agent's registry has for the project, empty for none.
func (s *Session) geminiRegistered() string {
	raw, err := vfs.ReadFile(filepath.Join(filepath.Dir(s.Root), "projects.json"), maxConfig)
	if err != nil {
		return ""
	}
	var registry struct {
		Projects map[string]string `json:"projects"`
	}
	if json.Unmarshal(raw, &registry) != nil {
		return ""
	}
	name := registry.Projects[s.Dir]
	if !geminiFolder.MatchString(name) {
		return ""
	}
	return name
}

// geminiOwner returns the path of the project that a folder is marked with.
func (s *Session) geminiOwner(folder string) (string, error) {
	raw, err := vfs.ReadFile(filepath.Join(s.Root, folder, geminiMarker), maxConfig)
	return strings.TrimSpace(string(raw)), err
}

type geminiHeader struct {
	Session string `json:"sessionId"`
	Project string `json:"projectHash"`
	Start   string `json:"startTime"`
	Updated string `json:"lastUpdated"`
	Kind    string `json:"kind"`
}

type geminiMessage struct {
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Content   []any  `json:"content"`
	Model     string `json:"model,omitempty"`
}

// makeGemini adds a message for each turn.
func makeGemini(m *maker, p *excerpt) error {
	turns, err := m.turns(p)
	if err != nil {
		return err
	}
	project, at := sha256.Sum256([]byte(m.s.Dir)), stamp(m.s.now)
	header, err := marshal(geminiHeader{m.s.ID, hex.EncodeToString(project[:]), at, at, "main"})
	if err != nil {
		return err
	}
	m.add(header)
	tools := make(map[string]string)
	for _, t := range turns {
		entry := geminiMessage{ID: uuidV4()[:36-markSize] + m.s.mark(), Timestamp: at, Type: "user"}
		ignored := false
		if t.role == "assistant" {
			entry.Type, entry.Model = "gemini", "unknown"
		} else if ignored = len(t.blocks) > 0 && t.blocks[0].kind == "text" && ignoredByGemini(t.blocks[0].text("text")); ignored {
			m.s.lose(lineage.Loss{Reason: "a text that begins like a command: the agent does not send it"})
		}
		entry.Content = m.parts(t.blocks, tools)
		line, err := marshal(entry)
		if err != nil {
			return err
		}
		if m.add(line); !ignored { // the agent does not find a session without any other message
			m.said++
		}
	}
	return nil
}

// ignoredByGemini reports whether the agent would treat a text of the user as a command.
func ignoredByGemini(prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	for _, begin := range []string{"/", "?", "<" + message.SessionContext + ">", "<hook_context>"} {
		if strings.HasPrefix(prompt, begin) {
			return true
		}
	}
	return prompt == ""
}
