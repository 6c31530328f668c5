package lock

import (
	"encoding/json"
	"math"
	"time"
)

// maxRecord limits the size of a lock file.
const maxRecord = 16 << 10

// holderRecord is the content of a lock file. All programs that share the file read the first three keys;
// the others are for this package.
type holderRecord struct {
	PID       int    `json:"pid"`
	Timestamp int64  `json:"timestamp"` // last refresh, in Unix milliseconds
	Hostname  string `json:"hostname"`

	Acquired int64  `json:"acquired,omitempty"` // in Unix milliseconds
	Stale    int64  `json:"stale,omitempty"`    // the holder's Options.Stale in milliseconds
	Scope    string `json:"scope,omitempty"`    // where PID and Started are unique
	Started  string `json:"started,omitempty"`  // when the process started, see process
	Token    string `json:"token,omitempty"`    // unique per acquisition
}

func (r holderRecord) encode() []byte {
	data, _ := json.Marshal(r) // texts and integers always encode
	return append(data, '\n')
}

// decodeRecord returns a record with at least the three shared keys, or nil if data is empty,
// incomplete or something else.
func decodeRecord(data []byte) *holderRecord {
	var keys struct {
		holderRecord
		Timestamp *int64  `json:"timestamp"`
		Hostname  *string `json:"hostname"`
	}
	if len(data) > maxRecord || json.Unmarshal(data, &keys) != nil {
		return nil
	}
	if keys.PID <= 0 || keys.PID > math.MaxInt32 || keys.Timestamp == nil || keys.Hostname == nil {
		return nil
	}
	keys.holderRecord.Timestamp, keys.holderRecord.Hostname = *keys.Timestamp, *keys.Hostname
	return &keys.holderRecord
}

// Info describes the holder of a lock.
type Info struct {
	// PID is the holder's process, 0 if unknown.
	PID int
	// Hostname is the machine of the process.
	Hostname string
	// Since is the time of acquisition, Refreshed that of the last refresh.
	Since, Refreshed time.Time
}

func (r holderRecord) info() *Info {
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

// process is the state of a pid.
type process struct {
	running bool
	// started distinguishes the process from others with the same pid in the same scope, earlier or
	// later. It is empty if unknown.
	started string
}
