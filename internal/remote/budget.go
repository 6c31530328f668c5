package remote

import (
	"sync"
	"time"
)

// Bytes of requests that a server keeps at once: of one client, and of all. One message may be
// larger than what is left, if no other one is. A request beyond these is refused before it is
// kept, and its client sends it again.
const (
	peerBytes  = 64 << 20
	totalBytes = 512 << 20
	// messageBytes is what a message counts for beside its bytes.
	messageBytes = 512
)

// budget counts the bytes of requests that a server keeps.
type budget struct {
	mu    sync.Mutex
	used  int
	large *held // the message that may be larger than what is left
}

// held are the bytes of a message. The budget's lock guards it, and what its peer holds.
type held struct {
	peer  *peer
	bytes int
}

// take counts bytes of a message, and reports whether there is room for them.
func (b *budget) take(h *held, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.large != h && (b.used+n > totalBytes || h.peer.bytes+n > peerBytes) {
		if b.large != nil {
			return false
		}
		b.large = h
		b.used -= h.bytes
		h.peer.bytes -= h.bytes
	}
	h.bytes += n
	if b.large != h {
		b.used += n
		h.peer.bytes += n
	}
	return true
}

// give gives back the bytes of a message.
func (b *budget) give(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.large == h {
		b.large = nil
	} else {
		b.used -= h.bytes
		h.peer.bytes -= h.bytes
	}
	h.bytes = 0
}

// admission is what the inbox of a client's messages asks.
func (p *peer) admission() admission {
	return admission{
		admit: func(m *message, n int) bool {
			if m.kind != request {
				return true
			}
			h := p.held[m.id]
			if h == nil {
				h = &held{peer: p}
				p.held[m.id] = h
				n += messageBytes
			}
			if p.server.budget.take(h, n) {
				return true
			}
			p.release(m)
			return false
		},
		// A client that stops in the middle of a message does not keep its place.
		partial: func(is bool) error {
			var until time.Time
			if is {
				until = time.Now().Add(p.server.o.WriteTimeout)
			}
			return p.link.conn.SetReadDeadline(until)
		},
		dropped: p.release,
	}
}

// release gives back the bytes of a message that is being received.
func (p *peer) release(m *message) {
	if h := p.held[m.id]; h != nil {
		delete(p.held, m.id)
		p.server.budget.give(h)
	}
}

// received returns the bytes of a message that was received. They are the request's now.
func (p *peer) received(m message) *held {
	h := p.held[m.id]
	delete(p.held, m.id)
	return h
}
