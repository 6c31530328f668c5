package structure

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// ErrBadID is returned when text cannot be parsed as an id.
var ErrBadID = errors.New("malformed id")

// ID is the id of a record of kind K: a UUID that is comparable, can be a map key, and
// cannot be confused with the id of another kind.
type ID[K any] [16]byte

type (
	storeKind      struct{}
	threadKind     struct{}
	contextKind    struct{}
	runKind        struct{}
	spanSetKind    struct{}
	checkpointKind struct{}
	summaryKind    struct{}
)

type (
	// StoreID identifies a store and its copies.
	StoreID = ID[storeKind]
	// ThreadID identifies a thread.
	ThreadID = ID[threadKind]
	// ContextID identifies a context, and the branch that names it.
	ContextID = ID[contextKind]
	// RunID identifies a run.
	RunID = ID[runKind]
	// SpanSetID identifies a span set.
	SpanSetID = ID[spanSetKind]
	// CheckpointID identifies a checkpoint.
	CheckpointID = ID[checkpointKind]
	// SummaryID identifies a summary.
	SummaryID = ID[summaryKind]
)

// NewID returns a new id. Later ids of one process sort later. They are UUIDs of version 7:
// the time in milliseconds and a number that starts at random in each process and is
// incremented, so that consecutive ids compress well.
func NewID[T ~[16]byte]() T { return NewIDAt[T](time.Now()) }

// NewIDAt is like NewID, with a given current time.
func NewIDAt[T ~[16]byte](now time.Time) T { return T(created.next(now)) }

// NewIncarnation returns a new number that distinguishes a thread from a deleted thread
// with the same id.
func NewIncarnation() uint64 {
	id := created.next(time.Now())
	return binary.BigEndian.Uint64(id[8:])
}

// created generates ids, without duplicates between goroutines.
var created idGenerator

type idGenerator struct {
	mu     sync.Mutex
	millis int64
	start  uint64        // number before the first id
	number atomic.Uint64 // of the last id; 0 before the first
}

func (m *idGenerator) next(now time.Time) (id uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.number.Load()
	if n == 0 {
		var b [8]byte
		rand.Read(b[:])
		n = binary.BigEndian.Uint64(b[:])>>3 | 1 // far from overflowing
		m.start = n
	}
	n++
	m.millis = max(m.millis, now.UnixMilli())
	binary.BigEndian.PutUint64(id[:8], uint64(m.millis)<<16|7<<12)
	binary.BigEndian.PutUint64(id[8:], 2<<62|n)
	m.number.Store(n)
	return id
}

// LastMade returns the number of the last id that NewID created in this process, or 0.
func LastMade() uint64 { return created.number.Load() }

// Made returns the number of an id if NewID created it in this process. Later ids have
// greater numbers.
func Made[T ~[16]byte](id T) (number uint64, ok bool) {
	last := LastMade()
	number = binary.BigEndian.Uint64(id[8:]) &^ (3 << 62)
	return number, last != 0 && id[8]>>6 == 2 && number <= last && number > created.start
}

// DeriveID returns an id derived from the given parts: the same parts give the same id in
// every store. Parts are length-prefixed before hashing, so ("ab", "c") and ("a", "bc")
// differ.
func DeriveID[T ~[16]byte](parts ...string) T {
	var stack [256]byte
	b := stack[:0]
	for _, p := range parts {
		b = appendString(b, p)
	}
	sum := sha256.Sum256(b)
	var id T
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80 // version 8: vendor specific
	id[8] = id[8]&0x3f | 0x80 // RFC 9562 variant
	return id
}

// ParseID parses the text form of an id.
func ParseID[T ~[16]byte](s string) (T, error) {
	u, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		if len(s) > 48 {
			s = s[:48] + "…"
		}
		return T{}, fmt.Errorf("%w: %q", ErrBadID, s)
	}
	return T(u), nil
}

// IsZero reports whether the id is absent.
func (id ID[K]) IsZero() bool { return id == ID[K]{} }

// Compare orders ids by their bytes.
func (id ID[K]) Compare(other ID[K]) int { return bytes.Compare(id[:], other[:]) }

// shortLength is how many characters a short id has.
const shortLength = 8

// Short returns the end of the id's text, by which people tell ids apart.
func (id ID[K]) Short() string {
	text := id.String()
	return text[len(text)-shortLength:]
}

// String returns the canonical text form.
func (id ID[K]) String() string { return uuid.UUID(id).String() }

// MarshalText implements encoding.TextMarshaler.
func (id ID[K]) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID[K]) UnmarshalText(text []byte) error {
	parsed, err := ParseID[ID[K]](string(text))
	if err == nil {
		*id = parsed
	}
	return err
}
