package sharing

import (
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Options configure an engine. A zero field means its default.
type Options struct {
	// Options are the options of the owner's engine. Locked is called before the socket is created, Unlocking after
	// it is removed. Wait is also the minimum time that an operation waits while another process becomes the owner.
	embedded.Options
	// NeverServe refuses guests while this process has the store open.
	NeverServe bool
	// NeverConnect refuses a store that another process has open, with a LockedError.
	NeverConnect bool

	isLocal func(dir string) bool // for tests; nil queries the file system
}

const (
	// ownerTimeout is the minimum time that an operation waits for an owner that has a socket but does not answer,
	// for example because it is closing the store.
	ownerTimeout = 10 * time.Second
	// socketTimeout is the minimum time to wait for the socket of a locked store. An owner creates the socket just
	// after it has locked the store, and removes it just before it unlocks the store.
	socketTimeout = 2 * time.Second
	// silenceTimeout limits how long an owner may send nothing to a new guest. The kernel accepts connections even
	// for a stopped process.
	silenceTimeout = 5 * time.Second
)

// storeHandle is an open store: the engine of an owner, or the client of a guest.
type storeHandle struct {
	backend.Engine
	own       *embedded.Engine // nil for a guest
	readOnly  bool             // own holds a lock shared with other readers
	lockAsked time.Time        // of a reader: lockAskedAt before the store was opened
	server    *remote.Server   // of an owner that serves, else nil
	listen    *listener
	client    *remote.Client // nil for an owner

	once sync.Once
	done chan struct{} // closed when the store is closed
	err  error
}

// close closes the store. Every call returns only when the store is closed.
func (h *storeHandle) close() error {
	h.once.Do(func() {
		defer close(h.done)
		if h.listen != nil {
			h.listen.close()
			h.server.Close()
		}
		h.err = h.Engine.Close()
		if h.listen != nil {
			h.listen.serving.Wait()
		}
	})
	return h.err
}
