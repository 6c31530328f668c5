package entries

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
)

// MaxSessions is the largest number of sessions that an engine remembers, and SessionAge how long it remembers one after
// its last request.
const (
	MaxSessions = 1024
	SessionAge  = 10 * time.Minute
)

// Session is what an engine knows about the requests of a session. It is the value in keys.TableRequests.
type Session struct {
	// Whole is set if all commits of the session are known. Otherwise an unknown request may have
	// been applied.
	Whole    bool
	First    uint64 // first known commit
	Last     uint64 // last commit
	Sequence uint64 // sequence of the last commit
	highest  uint64 // highest sequence
	// applied has the requests within the window below highest, ordered by sequence.
	applied []appliedRequest
}

type appliedRequest struct{ sequence, commit uint64 }

func bySequence(r appliedRequest, sequence uint64) int { return cmp.Compare(r.sequence, sequence) }

// Add records the commit of a request.
func (s *Session) Add(sequence, commit uint64) {
	s.Last, s.Sequence = commit, sequence
	s.add(sequence, commit)
}

func (s *Session) add(sequence, commit uint64) {
	s.highest = max(s.highest, sequence)
	at, known := slices.BinarySearchFunc(s.applied, sequence, bySequence)
	if known {
		s.applied[at].commit = commit
	} else {
		s.applied = slices.Insert(s.applied, at, appliedRequest{sequence, commit})
	}
	old := 0
	for s.highest-s.applied[old].sequence >= backend.OnceWindow {
		old++
	}
	s.applied = slices.Delete(s.applied, 0, old)
}

// Find returns the commit of a request, or 0 if it was not applied.
func (s *Session) Find(id [16]byte, sequence uint64) (uint64, error) {
	if at, ok := slices.BinarySearchFunc(s.applied, sequence, bySequence); ok {
		return s.applied[at].commit, nil
	}
	if !s.Whole || s.highest >= backend.OnceWindow && sequence <= s.highest-backend.OnceWindow {
		return 0, Uncertain(id, sequence)
	}
	return 0, nil
}

// Uncertain is the error of a request that may have been applied.
func Uncertain(id [16]byte, sequence uint64) error {
	return fmt.Errorf("request %d of session %x: %w", sequence, id, backend.ErrUncertain)
}

// Encode returns the session's index entry.
func (s *Session) Encode() []byte {
	head := s.First << 1
	if s.Whole {
		head |= 1
	}
	b := binary.AppendUvarint(make([]byte, 0, 24+6*len(s.applied)), head)
	b = binary.AppendUvarint(b, s.Last-s.First)
	b = binary.AppendUvarint(b, s.Sequence)
	var before uint64
	for _, r := range s.applied {
		b = binary.AppendUvarint(b, r.sequence-before)
		b = binary.AppendUvarint(b, r.commit-s.First)
		before = r.sequence
	}
	return b
}

// DecodeSession is the inverse of Encode.
func DecodeSession(b []byte) (Session, error) {
	v := keys.ReadVarints(b)
	head := v.Next()
	s := Session{Whole: head&1 != 0, First: head >> 1}
	s.Last = s.First + v.Next()
	s.Sequence = v.Next()
	var sequence uint64
	for v.Err() == nil && len(v.Rest) > 0 {
		sequence += v.Next()
		s.add(sequence, s.First+v.Next())
	}
	return s, v.Err()
}
