package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"
)

const (
	// codeLife is how long a link can be opened. sessionLife is how long the page can then be used.
	codeLife    = time.Minute
	sessionLife = 24 * time.Hour
	// maxCodes and maxSessions limit the numbers at one time. The oldest ones are dropped first.
	maxCodes    = 16
	maxSessions = 256
)

// browserSessions are the sessions of the page, and the codes of links that start one. Only hashes are kept, and only in
// memory.
type browserSessions struct {
	host string // of the page

	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time
	open  map[[sha256.Size]byte]time.Time
}

// code returns a new code. It can be exchanged once.
func (s *browserSessions) code(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return put(&s.codes, maxCodes, now, codeLife)
}

// begin exchanges a code for the secret of a session.
func (s *browserSessions) begin(code string, now time.Time) (secret string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := sha256.Sum256([]byte(code))
	end, ok := s.codes[h]
	delete(s.codes, h)
	if !ok || !now.Before(end) {
		return "", false
	}
	return put(&s.open, maxSessions, now, sessionLife), true
}

// valid reports whether a secret belongs to a session.
func (s *browserSessions) valid(secret string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.open[sha256.Sum256([]byte(secret))]
	return ok && now.Before(end)
}

// end ends a session.
func (s *browserSessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(secret)))
}

// put adds a random secret to a map. It removes the secrets that have expired, and the oldest ones beyond a maximum
// number.
func put(all *map[[sha256.Size]byte]time.Time, most int, now time.Time, life time.Duration) string {
	if *all == nil {
		*all = make(map[[sha256.Size]byte]time.Time)
	}
	for h, end := range *all {
		if !now.Before(end) {
			delete(*all, h)
		}
	}
	for len(*all) >= most {
		var first [sha256.Size]byte
		for h, end := range *all {
			if was, ok := (*all)[first]; !ok || end.Before(was) {
				first = h
			}
		}
		delete(*all, first)
	}
	var b [32]byte
	rand.Read(b[:]) // never fails
	secret := base64.RawURLEncoding.EncodeToString(b[:])
	(*all)[sha256.Sum256([]byte(secret))] = now.Add(life)
	return secret
}
