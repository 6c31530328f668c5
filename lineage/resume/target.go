package resume

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// target is what is known of an agent that sessions are made for. What is known of its folders is in package follow.
type target struct {
	newID func() string
	// root, when not nil, returns the folder of the file: this program's, for an agent that imports it.
	root func(s *Session) string
	// path is the path of the file below that folder.
	path     func(s *Session, now time.Time) (string, error)
	commands func(s *Session) [][]string
	// line reads what an own line is, nil if sessions are never made of own lines. An error says that the lines
	// of the source cannot be used.
	line func(raw []byte, l *ownLine) error
	// stored, for an agent that keeps no files of lines, reports whether the body of a message is a record of its own: its lines
	// are these bodies.
	stored func(raw []byte) bool
	// marked is set if the agent writes the messages again, so that not their place but their ids tell which were made: these end as that
	// of the session does.
	marked bool
	// tree is set if lines state their parents, so that a file may have several histories.
	tree bool
	// first, when not nil, returns a line before the own ones.
	first func(s *Session) ([]byte, error)
	// editor returns a function that changes an own line for the new session, and returns nil for one that is left out.
	editor func(s *Session) func(raw []byte) []byte
	// make adds lines for messages.
	make func(m *maker, p *part) error
	// frame, when not nil, returns what is before and after the lines, which are the elements of an array.
	frame func(s *Session) (head, tail []byte, err error)
}

// targets are the targets by the names of agents.
var targets = map[string]func() *target{
	"codex": codex, "pi": pi, "claude-code": claudeCode, "qwen": qwen, "gemini": gemini, "opencode": openCode,
}

// noWayIn says why no session is made for an agent.
var noWayIn = map[string]string{
	"openclaw": "sessions that it did not write were not tried",
	"copilot":  "its program has no free licence, and sessions that it did not write were not tried",
	"vscode":   "it keeps its chats in a log that it rewrites while it runs",
}

func targetOf(name string) (*target, follow.Agent, error) {
	for _, agent := range follow.Agents() {
		if agent.Name != name && agent.Format != name {
			continue
		}
		if t := targets[agent.Name]; t != nil {
			return t(), agent, nil
		}
		return nil, agent, fmt.Errorf("%w: %s: %s", ErrNoWayIn, agent.Title, noWayIn[agent.Name])
	}
	return nil, follow.Agent{}, &follow.UnknownAgentError{Name: name}
}

// Agents returns the names of the agents that sessions are made for.
func Agents() (names []string) {
	for _, agent := range follow.Agents() {
		if targets[agent.Name] != nil {
			names = append(names, agent.Name)
		}
	}
	return names
}

// maker makes lines that follow the agent's own.
type maker struct {
	s *Session
	// after is what the lines follow.
	after lineState
	lines [][]byte
	// said is how many messages were made.
	said int
}

// lineState is what is known of the lines before those that are made.
type lineState struct {
	lines int64
	// id is the last id, and line the line that has it.
	id   string
	line []byte
	// first is the first line.
	first []byte
}

// see adds a line that is written.
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

// lose reports a loss of a message of a part.
func (m *maker) lose(p *part, i int, reason string) {
	m.s.lose(lineage.Loss{Position: uint64(p.from[i]) + 1, Reason: reason})
}

// stamp returns the session's time as agents write it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func uuidV7() string { return uuid.Must(uuid.NewV7()).String() }
func uuidV4() string { return uuid.NewString() }

// dashed returns the name of a folder with other characters than letters and digits replaced, as JavaScript counts
// characters.
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

// maxConfig limits what is read of an agent's configuration.
const maxConfig = 4 << 20

// maxName is the longest name of a folder that agents make without shortening it.
const maxName = 200

// folderName returns the name that an agent gives to its folder for a directory, an error if it is too long.
func folderName(name, dir string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: %s: its name is too long for the agent's folder of sessions", ErrNoWayIn, dir)
	}
	return name, nil
}

// parentOf returns the parent of a line after another one, nil for the first line.
func parentOf(above string) *string {
	if above == "" {
		return nil
	}
	return &above
}
