package follow

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// Agent is an agent whose session files are followed.
type Agent struct {
	// Name is the agent's name in Options, such as "claude-code". Title is its name for people.
	Name, Title string
	// Format is the name of the archive format of its files.
	Format string
	// Shares is set if the agent's files have the format of another agent, and only that agent's sessions were tried.
	Shares bool
	// Counts is set if the agent's session ids are numbers or times, which are not unique across machines.
	Counts bool

	places func(e *Environment) []place
	// keeps returns how long the agent keeps an unchanged file, 0 for ever.
	keeps func(e *Environment) time.Duration
}

// Folder returns the folder in which the agent keeps its sessions, the first one if there are several.
func (a Agent) Folder(e *Environment) string {
	if places := a.places(e); len(places) > 0 {
		return places[0].root
	}
	return ""
}

// Agents returns the known agents, the most common ones first.
func Agents() []Agent {
	return []Agent{
		{
			Name: "claude-code", Title: "Claude Code", Format: "claude-code",
			places: func(e *Environment) []place {
				// Sessions come before their subagents, whose contexts are below them.
				patterns := []string{"*/????????-????-????-????-????????????.jsonl", "*/*.jsonl", "*/*/subagents/**/*.jsonl"}
				places := []place{placeOf(filepath.Join(e.claude(), "projects"), patterns...)}
				if !filepath.IsAbs(e.Getenv("CLAUDE_CONFIG_DIR")) { // some versions of 2025 had their sessions with the configurations
					places = append(places, placeOf(filepath.Join(e.Dir("XDG_CONFIG_HOME", ".config"), "claude", "projects"), patterns...))
				}
				return places
			},
			keeps: (*Environment).claudeKeeps,
		},
		{
			Name: "codex", Title: "Codex", Format: "codex",
			places: func(e *Environment) []place {
				home := e.Dir("CODEX_HOME", ".codex")
				patterns := []string{"**/rollout-*.jsonl", "**/rollout-*.jsonl.zst"}
				sessions := placeOf(filepath.Join(home, "sessions"), patterns...).also("codex-json", "**/rollout-*.json")
				return []place{sessions, placeOf(filepath.Join(home, "archived_sessions"), patterns...)}
			},
		},
		{
			Name: "opencode", Title: "OpenCode", Format: "opencode",
			places: func(e *Environment) []place {
				dir := filepath.Join(e.data(), "opencode")
				places := []place{placeOf(dir, "opencode.db", "opencode-*.db"), placeOf(filepath.Join(dir, "storage"), "session/*/ses_*.json").in("opencode-files")}
				if db := e.Getenv("OPENCODE_DB"); filepath.IsAbs(db) {
					places = append(places, placeOf(filepath.Dir(db), literal(filepath.Base(db))))
				}
				return places
			},
		},
		{
			Name: "pi", Title: "pi", Format: "pi",
			places: func(e *Environment) []place {
				return []place{placeOf(filepath.Join(e.Dir("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions"), "**/*.jsonl")}
			},
		},
		{
			Name: "copilot", Title: "Copilot CLI", Format: "copilot",
			places: func(e *Environment) []place {
				homes := []string{e.Dir("COPILOT_HOME", ".copilot")}
				if state := e.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) { // of the first versions
					homes = append(homes, filepath.Join(state, ".copilot"))
				}
				var places []place
				for _, home := range homes {
					places = append(places, placeOf(filepath.Join(home, "session-state"), "*/events.jsonl", "*.jsonl"),
						placeOf(filepath.Join(home, "history-session-state")).also("copilot-json", "session_*.json"))
				}
				return places
			},
		},
		{
			Name: "vscode", Title: "VS Code Copilot Chat", Format: "vscode",
			places: func(e *Environment) (places []place) {
				for _, user := range e.vscode() {
					places = append(places,
						placeOf(filepath.Join(user, "workspaceStorage"), "*/chatSessions/*.jsonl", "*/chatSessions/*.json"),
						placeOf(filepath.Join(user, "globalStorage", "emptyWindowChatSessions"), "*.jsonl", "*.json"))
				}
				return places
			},
		},
		{
			Name: "qwen", Title: "Qwen Code", Format: "qwen",
			places: func(e *Environment) []place {
				return []place{placeOf(filepath.Join(e.Dir("QWEN_HOME", ".qwen"), "projects"), "*/chats/*.jsonl")}
			},
		},
		{
			Name: "gemini", Title: "Gemini CLI", Format: "gemini",
			places: func(e *Environment) []place {
				return []place{placeOf(filepath.Join(e.Dir("GEMINI_CLI_HOME"), ".gemini", "tmp"), "*/chats/*.jsonl", "*/chats/*.json", "*/chats/*/*.jsonl")} // the last are subagents, by session
			},
		},
		{
			Name: "openclaw", Title: "OpenClaw", Format: "openclaw",
			places: func(e *Environment) (places []place) {
				for _, dir := range e.openClaw() {
					dir = filepath.Join(dir, "agents")
					places = append(places, placeOf(dir, "*/agent/openclaw-agent.sqlite"),
						placeOf(dir, "*/sessions/*.jsonl", "*/sessions/cold/*.jsonl.zst").without("*/sessions/*.trajectory.jsonl").in("openclaw-jsonl"))
				}
				return places
			},
		},
		{
			Name: "antigravity", Title: "Antigravity", Format: "antigravity",
			places: func(e *Environment) (places []place) {
				for _, program := range []string{"antigravity-cli", "antigravity", "antigravity-ide"} {
					// The second file has long texts cut, in later versions; earlier ones write no other.
					places = append(places, placeOf(filepath.Join(e.Home, ".gemini", program, "brain"),
						"*/.system_generated/logs/transcript_full.jsonl", "*/.system_generated/logs/transcript.jsonl").unless("transcript.jsonl", "transcript_full.jsonl"))
				}
				return places
			},
		},
		{
			Name: "goose", Title: "Goose", Format: "goose", Counts: true,
			places: func(e *Environment) []place {
				dir := e.goose()
				return []place{placeOf(dir, "sessions.db"), placeOf(dir, "*.jsonl").in("goose-jsonl")}
			},
		},
		{
			Name: "cline", Title: "Cline", Format: "cline", Counts: true,
			places: func(e *Environment) []place {
				data := filepath.Join(e.Dir("CLINE_DIR", ".cline"), "data")
				if dir := e.Getenv("CLINE_DATA_DIR"); filepath.IsAbs(dir) {
					data = filepath.Clean(dir)
				}
				sessions := filepath.Join(data, "sessions")
				if dir := e.Getenv("CLINE_SESSION_DATA_DIR"); filepath.IsAbs(dir) {
					sessions = filepath.Clean(dir)
				}
				// Sessions come before their subagents, whose contexts are below them.
				return append([]place{placeOf(sessions, "*/[0-9]*.messages.json", "*/*.messages.json"), placeOf(filepath.Join(data, "tasks"), tasks...)}, e.tasks("saoudrizwan.claude-dev")...)
			},
		},
		{
			Name: "roo", Title: "Roo Code", Format: "cline", Shares: true, Counts: true,
			places: func(e *Environment) []place { return e.tasks("rooveterinaryinc.roo-cline") },
		},
		{
			Name: "cursor", Title: "Cursor", Format: "cursor",
			places: func(e *Environment) []place {
				return []place{placeOf(filepath.Join(e.config(), "Cursor", "User", "globalStorage"), "state.vscdb")}
			},
		},
		{Name: "crush", Title: "Crush", Format: "crush", places: (*Environment).crush},
	}
}

// openClaw returns the folders of OpenClaw: that of each of its profiles, unless the environment names one.
func (e *Environment) openClaw() []string {
	if dir := e.Getenv("OPENCLAW_STATE_DIR"); filepath.IsAbs(dir) {
		return []string{filepath.Clean(dir)}
	}
	dirs := []string{filepath.Join(e.Home, ".openclaw")}
	entries, _ := os.ReadDir(e.Home) // a home that cannot be listed has no profiles that can be read
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".openclaw-") || len(dirs) == maxProjects {
			continue
		}
		dir := filepath.Join(e.Home, entry.Name())
		if info, err := os.Stat(dir); err == nil && info.IsDir() { // the user may have moved it, and left a link
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (e *Environment) claude() string { return e.Dir("CLAUDE_CONFIG_DIR", ".claude") }

// claudeKeeps returns how long Claude Code keeps a session: 30 days, unless its settings differ.
func (e *Environment) claudeKeeps() time.Duration {
	var settings struct {
		Days *float64 `json:"cleanupPeriodDays"`
	}
	if b, err := vfs.ReadFile(filepath.Join(e.claude(), "settings.json"), 1<<20); err == nil {
		_ = json.Unmarshal(b, &settings) // the agent uses its default then, too
	}
	days := 30.0
	if d := settings.Days; d != nil && *d >= 0 && *d <= 36500 {
		days = *d
	}
	return time.Duration(days * 24 * float64(time.Hour))
}

// tasks are the files of a task of Cline or Roo Code. The messages come before what the screen adds to them.
var tasks = []string{"*/api_conversation_history.json", "*/ui_messages.json"}

// tasks returns the places of an editor extension's tasks.
func (e *Environment) tasks(extension string) (places []place) {
	editors := e.vscode()
	for _, name := range []string{"Cursor", "Windsurf"} {
		editors = append(editors, filepath.Join(e.config(), name, "User"))
	}
	for _, user := range editors {
		places = append(places, placeOf(filepath.Join(user, "globalStorage", extension, "tasks"), tasks...))
	}
	return places
}

// vscode returns the folders of VS Code and of the programs derived from it that store chats in the same way.
func (e *Environment) vscode() (users []string) {
	for _, name := range []string{"Code", "Code - Insiders", "VSCodium"} {
		users = append(users, filepath.Join(e.config(), name, "User"))
	}
	for _, server := range []string{".vscode-server", ".vscode-server-insiders"} {
		users = append(users, filepath.Join(e.Home, server, "data", "User"))
	}
	return users
}
