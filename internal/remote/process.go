package remote

import (
	"os"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Process says who is at an end of a connection. It is for messages only.
type Process struct {
	PID     int
	Command string
}

// maxCommand bounds a command line in a message, in bytes.
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
	whole(w, "process", &p.PID)
	w.Text("command", &p.Command)
}

// Store is what a server says of the store that it serves.
type Store struct {
	Owner Process
	// ID is zero where the engine has none.
	ID [16]byte
	// Damage is that of backend.Impaired, if the engine has any.
	Damage error
}

func store(w *wire, s *Store) {
	process(w, &s.Owner)
	w.fixed("id", s.ID[:])
	if some(w, "damage", s.Damage != nil) {
		failure(w, &s.Damage)
	}
}

// describe returns what is said of an engine.
func describe(e backend.Engine) Store {
	s := Store{Owner: ThisProcess()}
	if is, ok := e.(backend.Identified); ok {
		s.ID = is.StoreID()
	}
	if is, ok := e.(backend.Impaired); ok {
		s.Damage = is.Damage()
	}
	return s
}

// howFar is how much of the journal was read while the store is opened.
type howFar struct{ done, total int64 }

func far(w *wire, f *howFar) {
	whole(w, "done", &f.done)
	whole(w, "total", &f.total)
}
