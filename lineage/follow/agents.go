package follow

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

	folders func(e *Environment) []sessionFolder
	// keeps returns how long the agent keeps an unchanged file, 0 for ever.
	keeps func(e *Environment) time.Duration
}

// Folder returns the folder in which the agent keeps its sessions, the first one if there are several.
func (a Agent) Folder(e *Environment) string {
	if folders := a.folders(e); len(folders) > 0 {
		return folders[0].root
	}
	return ""
}

// Agents returns the known agents, the most common ones first.
func Agents() []Agent {
	return []Agent{
		{
			Name: "claude-code", Title: "Claude Code", Format: "claude-code",
			folders: func(e *Environment) []sessionFolder {
				// Sessions come before their subagents, whose contexts are below them.
				patterns := []string{"*/????????-????-????-????-????????????.jsonl", "*/*.jsonl", "*/*/subagents/**/*.jsonl"}
				folders := []sessionFolder{sessionsIn(filepath.Join(e.claude(), "projects"), patterns...)}
				if !filepath.IsAbs(e.Getenv("CLAUDE_CONFIG_DIR")) { // some versions of 2025 had their sessions with the configurations
					folders = append(folders, sessionsIn(filepath.Join(e.Dir("XDG_CONFIG_HOME", ".config"), "claude", "projects"), patterns...))
				}
				return folders
			},
			keeps: (*Environment).claudeKeeps,
		},
		{
			Name: "codex", Title: "Codex", Format: "codex",
			folders: func(e *Environment) []sessionFolder {
				home := e.Dir("CODEX_HOME", ".codex")
				patterns := []string{"**/rollout-*.jsonl", "**/rollout-*.jsonl.zst"}
				sessions := sessionsIn(filepath.Join(home, "sessions"), patterns...).also("codex-json", "**/rollout-*.json")
				return []sessionFolder{sessions, sessionsIn(filepath.Join(home, "archived_sessions"), patterns...)}
			},
		},
		{
			Name: "opencode", Title: "OpenCode", Format: "opencode",
			folders: func(e *Environment) []sessionFolder {
				dir := filepath.Join(e.data(), "opencode")
				folders := []sessionFolder{sessionsIn(dir, "opencode.db", "opencode-*.db"), sessionsIn(filepath.Join(dir, "storage"), "session/*/ses_*.json").in("opencode-files")}
				if db := e.Getenv("OPENCODE_DB"); filepath.IsAbs(db) {
					folders = append(folders, sessionsIn(filepath.Dir(db), literal(filepath.Base(db))))
				}
				return folders
			},
		},
		{
			Name: "pi", Title: "pi", Format: "pi",
			folders: func(e *Environment) []sessionFolder {
				return []sessionFolder{sessionsIn(filepath.Join(e.Dir("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions"), "**/*.jsonl")}
			},
		},
		{
			Name: "copilot", Title: "Copilot CLI", Format: "copilot",
			folders: func(e *Environment) []sessionFolder {
				homes := []string{e.Dir("COPILOT_HOME", ".copilot")}
				if state := e.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) { // of the first versions
					homes = append(homes, filepath.Join(state, ".copilot"))
				}
				var folders []sessionFolder
				for _, home := range homes {
					folders = append(folders, sessionsIn(filepath.Join(home, "session-state"), "*/events.jsonl", "*.jsonl"),
						sessionsIn(filepath.Join(home, "history-session-state")).also("copilot-json", "session_*.json"))
				}
				return folders
			},
		},
		{
			Name: "vscode", Title: "VS Code Copilot Chat", Format: "vscode",
			folders: func(e *Environment) (folders []sessionFolder) {
				for _, user := range e.vscode() {
					folders = append(folders,
						sessionsIn(filepath.Join(user, "workspaceStorage"), "*/chatSessions/*.jsonl", "*/chatSessions/*.json"),
						sessionsIn(filepath.Join(user, "globalStorage", "emptyWindowChatSessions"), "*.jsonl", "*.json"))
				}
				return folders
			},
		},
		{
			Name: "qwen", Title: "Qwen Code", Format: "qwen",
			folders: func(e *Environment) []sessionFolder {
				return []sessionFolder{sessionsIn(filepath.Join(e.Dir("QWEN_HOME", ".qwen"), "projects"), "*/chats/*.jsonl")}
			},
		},
		{
			Name: "gemini", Title: "Gemini CLI", Format: "gemini",
			folders: func(e *Environment) []sessionFolder {
				return []sessionFolder{sessionsIn(filepath.Join(e.Dir("GEMINI_CLI_HOME"), ".gemini", "tmp"), "*/chats/*.jsonl", "*/chats/*.json", "*/chats/*/*.jsonl")} // the last are subagents, by session
			},
		},
		{
			Name: "openclaw", Title: "OpenClaw", Format: "openclaw",
			folders: func(e *Environment) (folders []sessionFolder) {
				for _, dir := range e.openClaw() {
					dir = filepath.Join(dir, "agents")
					folders = append(folders, sessionsIn(dir, "*/agent/openclaw-agent.sqlite"),
						sessionsIn(dir, "*/sessions/*.jsonl", "*/sessions/cold/*.jsonl.zst").without("*/sessions/*.trajectory.jsonl").in("openclaw-jsonl"))
				}
				return folders
			},
		},
		{
			Name: "antigravity", Title: "Antigravity", Format: "antigravity",
			folders: func(e *Environment) (folders []sessionFolder) {
				for _, program := range []string{"antigravity-cli", "antigravity", "antigravity-ide"} {
					// The second file has long texts cut, in later versions; earlier ones write no other.
					folders = append(folders, sessionsIn(filepath.Join(e.Home, ".gemini", program, "brain"),
						"*/.system_generated/logs/transcript_full.jsonl", "*/.system_generated/logs/transcript.jsonl").unless("transcript.jsonl", "transcript_full.jsonl"))
				}
				return folders
			},
		},
		{
			Name: "goose", Title: "Goose", Format: "goose", Counts: true,
			folders: func(e *Environment) []sessionFolder {
				dir := e.goose()
				return []sessionFolder{sessionsIn(dir, "sessions.db"), sessionsIn(dir, "*.jsonl").in("goose-jsonl")}
			},
		},
		{
			Name: "cline", Title: "Cline", Format: "cline", Counts: true,
			folders: func(e *Environment) []sessionFolder {
				data := filepath.Join(e.Dir("CLINE_DIR", ".cline"), "data")
				if dir := e.Getenv("CLINE_DATA_DIR"); filepath.IsAbs(dir) {
					data = filepath.Clean(dir)
				}
				sessions := filepath.Join(data, "sessions")
				if dir := e.Getenv("CLINE_SESSION_DATA_DIR"); filepath.IsAbs(dir) {
					sessions = filepath.Clean(dir)
				}
				// Sessions come before their subagents, whose contexts are below them.
				return append([]sessionFolder{sessionsIn(sessions, "*/[0-9]*.messages.json", "*/*.messages.json"), sessionsIn(filepath.Join(data, "tasks"), tasks...)}, e.tasks("saoudrizwan.claude-dev")...)
			},
		},
		{
			Name: "roo", Title: "Roo Code", Format: "cline", Shares: true, Counts: true,
			folders: func(e *Environment) []sessionFolder { return e.tasks("rooveterinaryinc.roo-cline") },
		},
		{
			Name: "cursor", Title: "Cursor", Format: "cursor",
			folders: func(e *Environment) []sessionFolder {
				return []sessionFolder{sessionsIn(filepath.Join(e.config(), "Cursor", "User", "globalStorage"), "state.vscdb")}
			},
		},
		{Name: "crush", Title: "Crush", Format: "crush", folders: (*Environment).crush},
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

// tasks returns the folders of an editor extension's tasks.
func (e *Environment) tasks(extension string) (folders []sessionFolder) {
	editors := e.vscode()
	for _, name := range []string{"Cursor", "Windsurf"} {
		editors = append(editors, filepath.Join(e.config(), name, "User"))
	}
	for _, user := range editors {
		folders = append(folders, sessionsIn(filepath.Join(user, "globalStorage", extension, "tasks"), tasks...))
	}
	return folders
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

// Variables returns the names of the variables that are set and determine the folders of agents.
func (e *Environment) Variables() []string {
	asked := make(map[string]bool)
	asking := &Environment{Home: e.Home, OS: e.OS, Getenv: func(name string) string {
		value := e.Getenv(name)
		if value != "" && name != e.homeVariable() {
			asked[name] = true
		}
		return value
	}}
	for _, a := range Agents() {
		a.folders(asking)
	}
	return slices.Sorted(maps.Keys(asked))
}
