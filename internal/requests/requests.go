// Package requests numbers requests that an engine applies at most once.
package requests

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Sessions has the sessions of a sender of requests. A session has one request at a time, so that numbers arrive in order. It is
// safe for concurrent use.
type Sessions struct {
	mu   sync.Mutex
	free []*backend.Once
}

// Take returns the last request of a free session. If there is none, it begins a session, which has no request yet, at the
// position that head returns. The caller increments the number for each request.
func (s *Sessions) Take(ctx context.Context, head func(context.Context) (backend.Cursor, error)) (*backend.Once, error) {
	if session := s.takeFree(); session != nil {
		return session, nil
	}
	since, err := head(ctx)
	if err != nil {
		return nil, err
	}
	session := &backend.Once{Since: since}
	_, err = rand.Read(session.Session[:])
	return session, err
}

func (s *Sessions) takeFree() *backend.Once {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return nil
	}
	session := s.free[n-1]
	s.free = s.free[:n-1]
	return session
}

// Free makes a session available for other requests.
func (s *Sessions) Free(session *backend.Once) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, session)
}
