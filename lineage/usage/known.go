package usage

import "encoding/binary"

// knownKeys records the keys of answers in an update that began with empty data, so that a new one needs no query. It may have
// keys that were not stored.
type knownKeys struct {
	complete bool
	keys     map[uint64]struct{} // the start of each, which is of a hash
}

// mostKnown limits the keys that are remembered.
var mostKnown = 1 << 19

// begin begins a window. fresh is set if the data was empty when the update began, first if it is empty now.
func (k *knownKeys) begin(fresh, first bool) {
	if fresh && first {
		*k = knownKeys{complete: true, keys: make(map[uint64]struct{})}
	}
	k.complete = k.complete && fresh // else another process may have written
}

func (k *knownKeys) lacks(key *answerKey) bool {
	_, has := k.keys[binary.BigEndian.Uint64(key[:])]
	return k.complete && !has
}

// add records a key that may be stored.
func (k *knownKeys) add(key *answerKey) {
	if !k.complete {
		return
	}
	if k.keys[binary.BigEndian.Uint64(key[:])] = struct{}{}; len(k.keys) > mostKnown {
		*k = knownKeys{}
	}
}
