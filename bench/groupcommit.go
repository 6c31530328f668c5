package bench

import (
	"os"
	"runtime"
	"sync"
)

// groupCommit is the least that writers can share a sync with: each hands a buffer
// to whoever leads and sleeps until it was written and synced with those of the
// others. It keeps nothing, hashes nothing and indexes nothing, so no store on this
// disk, in this language, has more from its writers.
type groupCommit struct {
	file *os.File
	mu   sync.Mutex
	// What waits for the next sync.
	buf     []byte
	waiting []chan<- error
	leads   bool // somebody writes and syncs
}

// write returns when b survives power loss. done is the writer's own channel, with
// room for an answer.
func (g *groupCommit) write(b []byte, done chan error) error {
	g.mu.Lock()
	g.buf = append(g.buf, b...)
	g.waiting = append(g.waiting, done)
	if g.leads {
		g.mu.Unlock()
		return <-done
	}
	g.leads = true
	var buf []byte
	var served []chan<- error
	for len(g.waiting) > 0 {
		g.gather()
		buf, g.buf = g.buf, buf[:0]
		served, g.waiting = g.waiting, served[:0]
		g.mu.Unlock()
		_, err := g.file.Write(buf)
		if err == nil {
			err = dataSync(g.file)
		}
		for _, w := range served {
			w <- err
		}
		g.mu.Lock()
	}
	g.leads = false
	g.mu.Unlock()
	return <-done
}

// gather lets those that the last sync woke hand over what they have next.
func (g *groupCommit) gather() {
	for range 16 {
		before := len(g.waiting)
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		if len(g.waiting) == before {
			return
		}
	}
}
