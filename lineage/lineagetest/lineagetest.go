// Package lineagetest opens stores for the tests of programs that use package lineage.
package lineagetest

import (
	"testing"

	"github.com/lineage-store/lineage/lineage"
)

// New opens an empty store in memory, which is closed when the test and its subtests complete. If
// opening or closing fails, the test fails.
func New(t testing.TB, o lineage.Options) *lineage.Store {
	t.Helper()
	store, err := lineage.OpenMemory(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
