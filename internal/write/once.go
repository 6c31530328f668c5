package write

import (
	"context"
	"crypto/rand"

	"github.com/lineage-store/lineage/lineage/backend"
)

// session returns a session for a request.
func (w *Writer) session(ctx context.Context) (*session, error) {
	s := &w.sessions
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		defer s.mu.Unlock()
		one := s.free[n-1]
		s.free = s.free[:n-1]
		return one, nil
	}
	s.mu.Unlock()
	head, err := w.engine.Head(ctx)
	if err != nil {
		return nil, err
	}
	one := &session{next: backend.Once{Since: head}}
	_, err = rand.Read(one.next.Session[:])
	return one, err
}

// release makes a session available for other requests.
func (w *Writer) release(one *session) {
	w.sessions.mu.Lock()
	defer w.sessions.mu.Unlock()
	w.sessions.free = append(w.sessions.free, one)
}

// DoOnce is Do for a change that must be applied once even if an answer is lost.
func (w *Writer) DoOnce(ctx context.Context, b *Batch, c Change) (backend.Receipt, error) {
	one, err := w.session(ctx)
	if err != nil {
		return backend.Receipt{}, err
	}
	defer w.release(one)
	return w.Do(ctx, b, requestNumbers{c, one})
}

// requestNumbers gives each attempt at a change a request number.
type requestNumbers struct {
	Change
	session *session
}

func (n requestNumbers) Fill(ctx context.Context, b *Batch, t Try) error {
	n.session.next.Sequence++
	once := n.session.next
	b.Once = &once
	return n.Change.Fill(ctx, b, t)
}
