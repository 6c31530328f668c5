package postgres

import (
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// durable is the last commit that is known to be durable: a synced write of this handle began after
// it saw the commit. It belongs to one history.
type durable struct {
	mu sync.Mutex
	to backend.Cursor
}

func (d *durable) at() backend.Cursor {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.to
}

func (d *durable) advance(at backend.Cursor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.Number > d.to.Number {
		d.to = at
	}
}
