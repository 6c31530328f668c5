package bench

import (
	"os"
	"runtime"
	"sync"
)

// groupCommit is the minimum for sharing a sync between writers: each hands a buffer to the leader
// and sleeps until it is written and synced with those of others. It does not keep, hash or index
// anything, so no store in this language has a higher throughput on this disk.
type groupCommit struct {
	file *os.File
	mu   sync.Mutex
	// Buffers waiting for the next sync.
	buf     []byte
	waiting []chan<- error
	leads   bool // a leader is writing and syncing
}

// write returns when b is durable. done is the writer's own channel, with a buffer of one.
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

// gather waits for the next buffers of writers that the last sync woke.
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
