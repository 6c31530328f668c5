package resume

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// Session is a session of an agent before it is written.
type Session struct {
	Agent follow.Agent
	ID    string
	// Dir is the folder in which the agent starts.
	Dir string
	// Root is the agent's folder of sessions, and Path is the file below it. For an agent that imports sessions, Root
	// is a folder of this program.
	Root, Path string
	// Commands start the agent, without a shell, each after the previous one has succeeded. The last one is the
	// agent.
	Commands [][]string
	// Messages is the number of spans of the history. Own is the number of those that are written as the agent's own
	// lines.
	Messages, Own int
	// Losses are in the order of their positions.
	Losses []lineage.Loss
	// Machine is the name of the machine of the session, as stated in the thread, empty if unknown. See IsFrom.
	Machine string

	environment *follow.Environment
	format      *sessionFormat
	now         time.Time
	about       about
	history     *history
	own         *ownLines
	made        [][]byte
	// also are additional files by which the agent finds the session, if it does not know the folder.
	also []extraFile
}

// ownEdited calls visit for each of the agent's own lines, as changed for the session.
func (s *Session) ownEdited(ctx context.Context, visit func(line []byte) error) error {
	if s.format.first != nil {
		line, err := s.format.first(s)
		if err == nil {
			err = visit(line)
		}
		if err != nil {
			return err
		}
	}
	edit := s.format.editor(s)
	return s.own.each(ctx, func(raw []byte) error {
		if line := edit(raw); line != nil {
			return visit(line)
		}
		return nil
	})
}

// sessionFormat describes how sessions are created for an agent. Package follow describes its folders.
type sessionFormat struct {
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
	make func(m *maker, p *excerpt) error
	// frame, when not nil, returns the text before and after the lines. The lines are then the elements of an array.
	frame func(s *Session) (head, tail []byte, err error)
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
func (a *lineState) see(t *sessionFormat, line []byte) error {
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
func (m *maker) lose(p *excerpt, i int, reason string) {
	m.s.lose(lineage.Loss{Position: uint64(p.from[i]) + 1, Reason: reason})
}

func (s *Session) lose(l lineage.Loss) { s.Losses = append(s.Losses, l) }
