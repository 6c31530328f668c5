package remote

import (
	"context"
	"slices"
	"time"
)

// Limits of the bytes of answers that a server is preparing or has not sent yet: for one client, and for all. An
// answer may start below a limit and exceed it. After that, requests wait. Answers that are always small are not
// counted.
const (
	peerAnswers  = 16 << 20
	totalAnswers = 256 << 20
	// answerBytes is counted for an answer until its size is known.
	answerBytes = 2 << 20
)

// take takes n bytes, and waits until they are free.
func (s *space) take(ctx context.Context, n int) error {
	s.mu.Lock()
	if len(s.waiting) == 0 && n <= s.free {
		s.free -= n
		s.mu.Unlock()
		return nil
	}
	w := &waiter{n, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.taken:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		s.free += n
	}
	s.serve()
	return context.Cause(ctx)
}

// give returns n bytes. If n is negative, it takes bytes without waiting.
func (s *space) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	s.serve()
}

// serve gives free bytes to waiters. s.mu must be held.
func (s *space) serve() {
	for len(s.waiting) > 0 && s.waiting[0].n <= s.free {
		s.free -= s.waiting[0].n
		close(s.waiting[0].taken)
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
}

// isSmall reports whether no space is reserved for answers of a method: they are always small, or the method may take long.
func isSmall(code uint8) bool {
	switch code {
	case codeWait, codeApply, codeOutcome, codeForget, codeUpload, codeSync, codeSnapshot, codePack, codeCollect, codeGuests:
		return true
	}
	return false
}

// answerSpace is the space reserved for an answer, from before it is prepared until it was sent.
type answerSpace struct {
	peer  *peer
	bytes int
}

// begin waits until there is space for the answer.
func (a *answerSpace) begin(ctx context.Context) error {
	if err := a.peer.answers.take(ctx, answerBytes); err != nil {
		return err
	}
	if err := a.peer.server.answers.take(ctx, answerBytes); err != nil {
		a.peer.answers.give(answerBytes)
		return err
	}
	a.bytes = answerBytes
	return nil
}

// resize sets the size of the answer. 0 means that it was sent.
func (a *answerSpace) resize(n int) {
	a.peer.answers.give(a.bytes - n)
	a.peer.server.answers.give(a.bytes - n)
	a.bytes = n
}

// Limits of the bytes of requests that a server keeps at once: for one client, and for all. One message at a time may
// exceed them. Another one is refused before its bytes are kept, and its client sends it again later.
const (
	peerBytes  = 64 << 20
	totalBytes = 512 << 20
	// messageBytes is added to the size of each message.
	messageBytes = 512
)

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

// admission returns the admission of a client's requests within the budget.
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
		partial: func(started bool) error {
			var until time.Time
			if started {
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
