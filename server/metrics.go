package server

import (
	"sync"
	"time"
)

// metrics are the counters of the server.
type metrics struct {
	mu       sync.Mutex
	requests map[requestLabels]*requestCounts
	refusals map[string]uint64
	events   uint64
	dropped  uint64
}

type requestLabels struct {
	route  string
	status int
}

type requestCounts struct {
	n       uint64
	seconds float64
}

func (m *metrics) request(route string, status int, elapsed time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil {
		m.requests = make(map[requestLabels]*requestCounts)
	}
	l := requestLabels{route, status}
	c := m.requests[l]
	if c == nil {
		c = &requestCounts{}
		m.requests[l] = c
	}
	c.n++
	c.seconds += elapsed.Seconds()
}

func (m *metrics) refused(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusals == nil {
		m.refusals = make(map[string]uint64)
	}
	m.refusals[why]++
}

func (m *metrics) add(counter *uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*counter++
}
