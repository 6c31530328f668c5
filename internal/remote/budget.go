package remote

import (
	"sync"
	"time"
)

// Limits of the bytes of requests that a server keeps at once: for one client, and for all. One
// message at a time may exceed them. Another request that would is refused before its bytes are
// kept, and its client sends it again.
const (
	peerBytes  = 64 << 20
	totalBytes = 512 << 20
	// messageBytes is added to the size of each message.
	messageBytes = 512
)

// budget counts the bytes of requests that a server keeps.
type budget struct {
	mu    sync.Mutex
	used  int
	large *reservation // the message that may exceed the limits
}

// reservation is the bytes of one message. budget.mu guards it, and peer.bytes.
type reservation struct {
	peer  *peer
	bytes int
}

// reserve adds n bytes to a reservation, and reports whether the limits allow it.
func (b *budget) reserve(h *reservation, n int) bool {
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

// release ends a reservation.
func (b *budget) release(h *reservation) {
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

// admission admits the requests of a client within the budget.
func (p *peer) admission() admission {
	return admission{
		admit: func(m *message, n int) bool {
			if m.kind != request {
				return true
			}
			h := p.reservations[m.id]
			if h == nil {
				h = &reservation{peer: p}
				p.reservations[m.id] = h
				n += messageBytes
			}
			if p.server.budget.reserve(h, n) {
				return true
			}
			p.release(m)
			return false
		},
		// A client that stops in the middle of a message is disconnected.
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

// release ends the reservation of a message that is being received.
func (p *peer) release(m *message) {
	if h := p.reservations[m.id]; h != nil {
		delete(p.reservations, m.id)
		p.server.budget.release(h)
	}
}

// received returns the reservation of a message that was received, for its request to release.
func (p *peer) received(m message) *reservation {
	h := p.reservations[m.id]
	delete(p.reservations, m.id)
	return h
}
