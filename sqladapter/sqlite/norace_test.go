//go:build !race

package sqlite_test

import (
	"testing"

	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

const (
	manyMessages  = 100_000
	longChain     = 0 // the defaults
	rapidChecks   = ""
	projectChecks = 0
	projectLarge  = 0
)

// TestConformanceInMemory is not run under the race detector, which takes minutes for
// it and sees the same code in TestConformance.
func TestConformanceInMemory(t *testing.T) {
	chattest.Run(t, chattest.Config{Search: true, Forgets: true, New: func(testing.TB) chattest.OpenFunc {
		return opener(sqlite.Memory)
	}})
}
