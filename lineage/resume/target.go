package resume

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// target describes how sessions are created for an agent. Package follow describes its folders.
type target struct {
	newID func() string
	// root, when not nil, returns the folder of the file. It is a folder of this program, for an agent that imports
	// the file.
	root func(s *Session) string
	// path is the path of the file below that folder.
	path     func(s *Session, now time.Time) (string, error)
	commands func(s *Session) [][]string
	// line reads an own line into l. It is nil if sessions are never made of own lines. An error means that the lines
	// of the source cannot be used.
	line func(raw []byte, l *ownLine) error
	// stored is for an agent without files of lines. It reports whether the body of a message is one of its records.
	// These bodies are its own lines.
	stored func(raw []byte) bool
	// marked is set if the agent writes the messages again, so that not their place but their ids tell which were made: these end as that
	// of the session does.
	marked bool
	// tree is set if lines state their parents, so that a file can have several histories.
	tree bool
	// first, when not nil, returns a line to write before the own ones.
	first func(s *Session) ([]byte, error)
	// editor returns a function that changes an own line for the new session. The function returns nil for a line
	// that is left out.
	editor func(s *Session) func(raw []byte) []byte
	// make adds lines for messages.
	make func(m *maker, p *part) error
	// frame, when not nil, returns the text before and after the lines. The lines are then the elements of an array.
	frame func(s *Session) (head, tail []byte, err error)
}

// targets are the targets by name of the agent.
var targets = map[string]func() *target{
	"codex": codex, "pi": pi, "claude-code": claudeCode, "qwen": qwen, "gemini": gemini, "opencode": openCode,
}

// noWayIn states why no session can be created for an agent, where there is more to say than that it was not tried.
var noWayIn = map[string]string{
	"copilot":  "its program has no free licence, and sessions that it did not write were not tried",
	"vscode":   "it keeps its chats in a log that it rewrites while it runs",
	"cursor":   "it keeps its chats in a database that also holds its credentials",
	"goose":    "only the program may write its database",
	"crush":    "only the program may write its database",
	"openclaw": "only the program may write its database, which also holds its credentials",
}

func targetOf(name string) (*target, follow.Agent, error) {
	for _, agent := range follow.Agents() {
		if agent.Name != name && agent.Format != name {
			continue
		}
		if t := targets[agent.Name]; t != nil {
			return t(), agent, nil
		}
		reason := noWayIn[agent.Name]
		if reason == "" {
			reason = "sessions that it did not write were not tried"
		}
		return nil, agent, fmt.Errorf("%w: %s: %s", ErrNoWayIn, agent.Title, reason)
	}
	return nil, follow.Agent{}, &follow.UnknownAgentError{Name: name}
}

// Agents returns the names of the agents for which sessions can be created.
func Agents() (names []string) {
	for _, agent := range follow.Agents() {
		if targets[agent.Name] != nil {
			names = append(names, agent.Name)
		}
	}
	return names
}

// maker creates the lines that follow the agent's own.
type maker struct {
	s *Session
	// after is the state of the lines before these.
	after lineState
	lines [][]byte
	// said is the number of messages written.
	said int
}

// lineState is what must be known about earlier lines.
type lineState struct {
	lines int64
	// id is the last id. line is the line with that id.
	id   string
	line []byte
	// first is the first line.
	first []byte
}

// see records a written line.
func (a *lineState) see(t *target, line []byte) error {
	var l ownLine
	if err := t.line(line, &l); err != nil {
		return err
	}
	if a.lines == 0 {
		a.first = append([]byte(nil), line...)
	}
	if l.id != "" {
		a.id, a.line = l.id, append(a.line[:0], line...)
	}
	a.lines++
	return nil
}

// add adds a line.
func (m *maker) add(line []byte) { m.lines = append(m.lines, line) }

// lose reports a loss in a message of a part.
func (m *maker) lose(p *part, i int, reason string) {
	m.s.lose(lineage.Loss{Position: uint64(p.from[i]) + 1, Reason: reason})
}

// stamp returns a time in the format of agents.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func uuidV7() string { return uuid.Must(uuid.NewV7()).String() }
func uuidV4() string { return uuid.NewString() }

// dashed returns the path of a folder in which all characters except letters and digits are replaced. Characters are
// counted as in JavaScript.
func dashed(dir string) string {
	var b strings.Builder
	for _, r := range dir {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("--")
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

// maxConfig limits the size of an agent's configuration that is read.
const maxConfig = 4 << 20

// maxName is the length up to which agents do not shorten names of folders.
const maxName = 200

// folderName returns an agent's folder name for a directory. It is an error if the name is too long.
func folderName(name, dir string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: %s: its name is too long for the agent's folder of sessions", ErrNoWayIn, dir)
	}
	return name, nil
}

// parentOf returns the parent of a line that follows another one. It is nil for the first line.
func parentOf(above string) *string {
	if above == "" {
		return nil
	}
	return &above
}
