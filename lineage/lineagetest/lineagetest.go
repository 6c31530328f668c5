// Package lineagetest opens stores for the tests of programs that use package lineage.
package lineagetest

import (
	"testing"

	"github.com/lineage-store/lineage/lineage"
)

// New opens an empty store in memory. It is closed when the test and its subtests are complete. A failure to open or to
// close it fails the test.
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
