package sharing

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// sessions numbers the commits of a guest, so that each is applied once. A session has one commit at a time. The
// owner forgets old sessions by itself. A guest does not ask for that when it closes: an engine can tell a new
// session from a forgotten one only until it forgets a session that started later.
type sessions struct {
	mu   sync.Mutex
	free []*backend.Once
}

// take returns the next request of a free session.
func (s *sessions) take(ctx context.Context, h *storeHandle) (*backend.Once, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		request := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		request.Sequence++
		return request, nil
	}
	s.mu.Unlock()
	head, err := h.Head(ctx)
	if err != nil {
		return nil, err
	}
	request := &backend.Once{Since: head, Sequence: 1}
	_, err = rand.Read(request.Session[:])
	return request, err
}

// give frees the session of a request that was answered.
func (s *sessions) give(request *backend.Once) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, request)
}
