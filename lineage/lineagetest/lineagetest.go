// Package lineagetest opens stores for the tests of programs that use package lineage.
package lineagetest

import (
	"testing"

	"github.com/lineage-store/lineage/lineage"
)

// New opens an empty store in a temporary directory. It is closed and removed when the test and its subtests are complete.
// A failure to open or to close it fails the test. Unless the options ask for it no change waits for the disk.
func New(t testing.TB, o lineage.Options) *lineage.Store {
	t.Helper()
	if o.Durability == 0 {
		o.Durability = lineage.Normal
	}
	store, err := lineage.Open(t.Context(), t.TempDir(), o)
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
