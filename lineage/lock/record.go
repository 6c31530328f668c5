package lock

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// maxRecord bounds what is read of a lock file.
const maxRecord = 16 << 10

// errUnreadable says that a file's bytes are not a lock record: it is empty, torn
// or something else altogether.
var errUnreadable = errors.New("not a lock record")

// record is what a lock file holds. The first three keys are what every program
// that shares the file reads; the others are for this package.
type record struct {
	PID       int    `json:"pid"`
	Timestamp int64  `json:"timestamp"` // last refresh, in Unix milliseconds
	Hostname  string `json:"hostname"`

	Acquired int64  `json:"acquired,omitempty"` // in Unix milliseconds
	Stale    int64  `json:"stale,omitempty"`    // the holder's Options.Stale in milliseconds
	Scope    string `json:"scope,omitempty"`    // where PID and Started mean something
	Started  string `json:"started,omitempty"`  // when the process started, see process
	Token    string `json:"token,omitempty"`    // this one acquisition and no other
}

func (r record) encode() ([]byte, error) {
	data, err := json.Marshal(r)
	return append(data, '\n'), err
}

// decodeRecord accepts any record with the three shared keys.
func decodeRecord(data []byte) (record, error) {
	var keys struct {
		record
		Timestamp *int64  `json:"timestamp"`
		Hostname  *string `json:"hostname"`
	}
	if len(data) > maxRecord || json.Unmarshal(data, &keys) != nil {
		return record{}, errUnreadable
	}
	if keys.PID <= 0 || keys.PID > math.MaxInt32 || keys.Timestamp == nil || keys.Hostname == nil {
		return record{}, errUnreadable
	}
	keys.record.Timestamp, keys.record.Hostname = *keys.Timestamp, *keys.Hostname
	return keys.record, nil
}

// Info describes the holder of a lock.
type Info struct {
	// PID is the holder's process, or 0 when the lock file does not tell.
	PID int
	// Hostname is the machine on which PID runs.
	Hostname string
	// Since is when the lock was acquired, Refreshed when it was last renewed.
	Since, Refreshed time.Time
}

func (r record) info() *Info {
	info := &Info{
		PID:       r.PID,
		Hostname:  r.Hostname,
		Since:     time.UnixMilli(r.Acquired),
		Refreshed: time.UnixMilli(r.Timestamp),
	}
	if r.Acquired == 0 {
		info.Since = info.Refreshed
	}
	return info
}
