package lineage

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/internal/sharing"
)

// Process is a process that uses a store.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

// Processes are the processes that use a store.
type Processes struct {
	// Owner has the store open. The others use it through the owner.
	Owner  Process
	Guests []Process
	// Owns is set if this store is the one that the owner has open.
	Owns bool
}

// Processes returns the processes that use the store now; none for a store that is not in a
// directory.
func (s *Store) Processes(ctx context.Context) (Processes, error) {
	engine, err := ability[*sharing.Engine](ctx, s)
	if errors.Is(err, errors.ErrUnsupported) {
		return Processes{}, nil
	}
	if err != nil {
		return Processes{}, err
	}
	role, err := engine.Role(ctx)
	if err != nil {
		return Processes{}, err
	}
	all := Processes{Owner: processOf(role.Owner), Owns: role.Owns}
	for _, guest := range role.Guests {
		all.Guests = append(all.Guests, processOf(guest))
	}
	return all, nil
}

func processOf(p remote.Process) Process { return Process{PID: p.PID, Command: p.Command} }
