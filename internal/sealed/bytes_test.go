package sealed

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// indexShape has as many kinds of ids as the table of an index.
type indexShape struct{ Shape }

func (indexShape) Owners() []byte { return []byte("crt") }

// TestBytesByTable prints what the tables of a closed index take in its sealed table, in its order:
//
//	LINEAGE_TEST_INDEX=STORE/index.bolt go test -v -run TestBytesByTable ./internal/sealed
func TestBytesByTable(t *testing.T) {
	path := os.Getenv("LINEAGE_TEST_INDEX")
	if path == "" {
		t.Skip("LINEAGE_TEST_INDEX names no index")
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		directory := tx.Bucket([]byte("sealed")).Get([]byte("directory"))
		table, err := Open(indexShape{}, directory, Sum(directory))
		require.NoError(t, err)
		var name string
		var blocks, count, bytes, all int
		show := func() {
			if blocks > 0 {
				fmt.Printf("%-10s %6d blocks %8d entries %9d bytes %6.2f each\n", name, blocks, count, bytes, float64(bytes)/float64(count))
			}
			blocks, count, bytes = 0, 0, 0
		}
		for kind := range table.sections {
			for _, at := range table.sections[kind].blocks {
				of := "ids of " + string(indexShape{}.Owners()[min(kind, 2)])
				if kind == table.kinds {
					extent := tx.Bucket([]byte("sealed")).Get(binary.BigEndian.AppendUint32([]byte("e"), at.Extent))
					of = string(extent[at.Offset])
				}
				if of != name {
					show()
					name = of
				}
				blocks, count, bytes, all = blocks+1, count+at.count, bytes+at.Length, all+at.Length
			}
		}
		show()
		fmt.Printf("directory %d, together %d of a file of %d bytes\n", len(directory), all+len(directory), tx.Size())
		return nil
	}))
}
