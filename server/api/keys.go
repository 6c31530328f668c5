package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

const (
	// keysOf is the application whose values are the keys of applied requests.
	keysOf = "lineage/idempotency"
	// maxKey is the maximum size of a key in bytes.
	maxKey = 255
	day    = 24 * time.Hour
)

// applied is the value of a key: a hash of the request that used it, and what the request made.
type applied struct {
	Request string `json:"request"`
	Made    []made `json:"made"`
}

// keyOf returns the name of a key's value, for a key that was used on a day.
func keyOf(at time.Time, name string) string { return at.Format(time.DateOnly) + "/" + name }

// sum hashes texts. Their lengths are included, so that they cannot run into each other.
func sum(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// keeper deletes keys of past days.
type keeper struct {
	mu    sync.Mutex
	swept string // the last day on which it finished
	after string // the last deleted key; earlier ones are not examined again
}

// maxSwept limits the keys that are deleted at once.
const maxSwept = 1000

// sweep deletes old keys, once a day. After a failure, the next request tries again.
func (k *keeper) sweep(ctx context.Context, store *lineage.Store, today time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := today.Format(time.DateOnly)
	if k.swept == now {
		return
	}
	first := today.Add(-day).Format(time.DateOnly) // the first day that is still looked up
	owner := lineage.Owner{Scope: lineage.ApplicationScope, Name: keysOf}
	next, _, err := store.Values(owner).DeleteRange(ctx, k.after, first, maxSwept) // keys are ordered by day
	switch {
	case err != nil:
	case next != "":
		k.after = next
	default:
		k.after, k.swept = first, now
	}
}
