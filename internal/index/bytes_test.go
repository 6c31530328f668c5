package index

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// indexShape has as many kinds of ids as the table of an index.
type indexShape struct{ sealed.Shape }

func (indexShape) Owners() []byte { return []byte("crt") }

// TestBytesByTable prints what the tables of a closed index take in its sealed table, in its order:
//
//	LINEAGE_TEST_INDEX=STORE/index.bolt go test -v -run TestBytesByTable ./internal/index
func TestBytesByTable(t *testing.T) {
	path := os.Getenv("LINEAGE_TEST_INDEX")
	if path == "" {
		t.Skip("LINEAGE_TEST_INDEX names no index")
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		directory := tx.Bucket(sealedBucket).Get(directoryKey)
		table, err := sealed.Open(indexShape{}, directory, sealed.Sum(directory))
		require.NoError(t, err)
		var name string
		var blocks, count, bytes, all int
		show := func() {
			if blocks > 0 {
				fmt.Printf("%-10s %6d blocks %8d entries %9d bytes %6.2f each\n", name, blocks, count, bytes, float64(bytes)/float64(count))
			}
			blocks, count, bytes = 0, 0, 0
		}
		for at := range table.Blocks() {
			of := "entries"
			if at.Kind >= 0 {
				of = "ids of " + string(indexShape{}.Owners()[at.Kind])
			} else if b, err := extentAt(tx, at.Location); err == nil {
				of = string(b[0])
			}
			if of != name {
				show()
				name = of
			}
			blocks, count, bytes, all = blocks+1, count+at.Count, bytes+at.Length, all+at.Length
		}
		show()
		fmt.Printf("directory %d, together %d of a file of %d bytes\n", len(directory), all+len(directory), tx.Size())
		return nil
	}))
}
