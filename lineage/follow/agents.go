package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// Agent is an agent whose session files are followed.
type Agent struct {
	// Name is the name for Options, such as "claude-code", and Title the one for people.
	Name, Title string
	// Format is the name of the archive format of its files.
	Format string
	// Shares is set if its files have the form of another agent's, and only sessions of that one were tried.
	Shares bool
	// Counts is set if the ids of its sessions are numbers or times, so that sessions of several machines have equal ones.
	Counts bool

	places func(e *Environment) []place
	// keeps returns how long the agent keeps a file that does not change, 0 for ever.
	keeps func(e *Environment) time.Duration
}

// Folder returns the folder in which the agent keeps its sessions, the first if it has several.
func (a Agent) Folder(e *Environment) string {
	if places := a.places(e); len(places) > 0 {
		return places[0].root
	}
	return ""
}

// place is a folder in which an agent keeps its sessions.
type place struct {
	root     string
	patterns []pattern
	// format is the archive format of its files, if it is not the agent's.
	format string
	// project is the folder that its sessions work in, for an agent whose sessions do not say it.
	project string
	// index is set if its files have no sessions, but say where the agent's other places are.
	index bool
}

// in returns the place with files of another format than the agent's.
func (p place) in(format string) place {
	p.format = format
	return p
}

// Environment is where folders of agents and of this program are looked for.
type Environment struct {
	// Home is the user's home directory, and OS is as runtime.GOOS.
	Home, OS string
	Getenv   func(string) string
}

// ErrNoHome is returned for an environment without a home directory.
var ErrNoHome = errors.New("the home directory is not known")

// NewEnvironment returns the environment with these variables on this system. Default os.Getenv.
func NewEnvironment(getenv func(string) string) (*Environment, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	e := &Environment{OS: runtime.GOOS, Getenv: getenv}
	variable := "HOME"
	if e.OS == "windows" {
		variable = "USERPROFILE"
	}
	if e.Home = getenv(variable); !filepath.IsAbs(e.Home) {
		return nil, fmt.Errorf("%w: %s is not set to a full path", ErrNoHome, variable)
	}
	return e, nil
}

// config returns the folder in which programs keep their configuration.
func (e *Environment) config() string {
	switch e.OS {
	case "windows":
		return e.Dir("APPDATA", "AppData", "Roaming")
	case "darwin":
		return filepath.Join(e.Home, "Library", "Application Support")
	}
	return e.Dir("XDG_CONFIG_HOME", ".config")
}

// State returns the folder in which this program keeps what belongs to no store.
func (e *Environment) State() string {
	if e.OS == "windows" || e.OS == "darwin" {
		return filepath.Join(e.config(), "lineage")
	}
	return filepath.Join(e.Dir("XDG_STATE_HOME", ".local", "state"), "lineage")
}

// Dir returns the folder in an environment variable, or else one below the home directory.
func (e *Environment) Dir(variable string, below ...string) string {
	if dir := e.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(append([]string{e.Home}, below...)...)
}

// Agents returns the agents that are known, those that most people have first.
func Agents() []Agent {
	return []Agent{
		{
			Name: "claude-code", Title: "Claude Code", Format: "claude-code",
			places: func(e *Environment) []place {
				// A session before its subagents: their contexts are below it.
				return []place{placeOf(filepath.Join(e.claude(), "projects"),
					"*/????????-????-????-????-????????????.jsonl", "*/*.jsonl", "*/*/subagents/**/*.jsonl")}
			},
			keeps: (*Environment).claudeKeeps,
		},
		{
			Name: "codex", Title: "Codex", Format: "codex",
			places: func(e *Environment) []place {
				home := e.Dir("CODEX_HOME", ".codex")
				patterns := []string{"**/rollout-*.jsonl", "**/rollout-*.jsonl.zst"}
				return []place{placeOf(filepath.Join(home, "sessions"), patterns...), placeOf(filepath.Join(home, "archived_sessions"), patterns...)}
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
				return []place{placeOf(filepath.Join(e.Dir("COPILOT_HOME", ".copilot"), "session-state"), "*/events.jsonl")}
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
				return []place{placeOf(filepath.Join(e.Dir("GEMINI_CLI_HOME"), ".gemini", "tmp"), "*/chats/*.jsonl", "*/chats/*.json")}
			},
		},
		{
			Name: "openclaw", Title: "OpenClaw", Format: "pi", Shares: true,
			places: func(e *Environment) []place {
				return []place{placeOf(filepath.Join(e.Dir("OPENCLAW_STATE_DIR", ".openclaw"), "agents"), "*/sessions/*.jsonl")}
			},
		},
		{
			Name: "antigravity", Title: "Antigravity", Format: "antigravity",
			places: func(e *Environment) (places []place) {
				for _, program := range []string{"antigravity-cli", "antigravity", "antigravity-ide"} {
					places = append(places, placeOf(filepath.Join(e.Home, ".gemini", program, "brain"), "*/.system_generated/logs/transcript_full.jsonl"))
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
				// A session before its subagents, as their contexts are below it.
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

// data returns the folder in which programs keep their data: also on macOS, where most programs for a terminal do the same.
func (e *Environment) data() string { return e.Dir("XDG_DATA_HOME", ".local", "share") }

func (e *Environment) claude() string { return e.Dir("CLAUDE_CONFIG_DIR", ".claude") }

// claudeKeeps returns how long Claude Code keeps a session: 30 days, or what its settings say.
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

// tasks are the files of a task of Cline or Roo Code: the messages before what only their screen says.
var tasks = []string{"*/api_conversation_history.json", "*/ui_messages.json"}

// tasks returns the places in which an extension for editors keeps its tasks.
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

// vscode returns the folders of VS Code and the programs made from it that keep their chats alike.
func (e *Environment) vscode() (users []string) {
	for _, name := range []string{"Code", "Code - Insiders", "VSCodium"} {
		users = append(users, filepath.Join(e.config(), name, "User"))
	}
	for _, server := range []string{".vscode-server", ".vscode-server-insiders"} {
		users = append(users, filepath.Join(e.Home, server, "data", "User"))
	}
	return users
}
