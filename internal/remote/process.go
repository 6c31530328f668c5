package remote

import (
	"os"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Process describes the process at one end of a connection, for messages to people.
type Process struct {
	PID     int
	Command string
}

// maxCommand is the length at which a command line is cut, in bytes.
const maxCommand = 200

// ThisProcess returns this process.
func ThisProcess() Process {
	command := strings.Join(os.Args, " ")
	if len(command) > maxCommand {
		command = strings.ToValidUTF8(command[:maxCommand], "") + "…"
	}
	return Process{PID: os.Getpid(), Command: command}
}

func process(w *wire, p *Process) {
	integer(w, "process", &p.PID)
	w.Text("command", &p.Command)
}

// Store describes the store that a server serves.
type Store struct {
	Owner Process
	// ID is zero if the engine has none.
	ID [16]byte
	// Damage is the result of backend.Impaired, if the engine implements it.
	Damage error
}

func store(w *wire, s *Store) {
	process(w, &s.Owner)
	w.fixed("id", s.ID[:])
	if present(w, "damage", s.Damage != nil) {
		failure(w, &s.Damage)
	}
}

func describe(e backend.Engine) Store {
	s := Store{Owner: ThisProcess()}
	if e, ok := e.(backend.Identified); ok {
		s.ID = e.StoreID()
	}
	if e, ok := e.(backend.Impaired); ok {
		s.Damage = e.Damage()
	}
	return s
}

// counts is the progress of an operation, such as the number of journal bytes read.
type counts struct{ done, total int64 }

func walkCounts(w *wire, c *counts) {
	integer(w, "done", &c.done)
	integer(w, "total", &c.total)
}
