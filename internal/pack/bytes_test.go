package pack

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pack/compress"
	"github.com/lineage-store/lineage/internal/pack/layout"
)

// TestBytesByPart prints what a pack consists of, before and after compression, and what each column of its records and
// each kind of content would take if it was compressed alone:
//
//	LINEAGE_TEST_PACK=STORE/journal/….pack go test -v -run TestBytesByPart ./internal/pack
func TestBytesByPart(t *testing.T) {
	path := os.Getenv("LINEAGE_TEST_PACK")
	if path == "" {
		t.Skip("LINEAGE_TEST_PACK names no pack")
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	p, err := Open(&memory{b}, int64(len(b)), path, NewCache(1<<20))
	require.NoError(t, err)
	rows, err := p.table()
	require.NoError(t, err)
	codec := &compress.Codec{Dense: p.Dense}
	defer codec.Close()
	alone := func(b []byte) int {
		out, err := codec.Squeeze(b)
		require.NoError(t, err)
		return len(out)
	}
	var raw, packed [3]int64
	var heads int64
	columns, columnsAlone := map[int]int{}, map[int]int{}
	content, contentAlone := [layout.BodyKinds + 1]int{}, [layout.BodyKinds + 1]int{}
	for n := range rows {
		r := &rows[n]
		heads += r.Head
		for i, size := range [3]int64{r.IDBytes, r.Columns, r.ContentSize()} {
			raw[i] += size
			packed[i] += r.Parts[i].Size
		}
		d, err := p.codec(n)
		require.NoError(t, err)
		fields, err := p.expand(d, r.Parts[layout.PartColumns], r.Columns)
		require.NoError(t, err)
		var sizes []int
		for sum := 0; sum < len(fields); {
			v, k := binary.Uvarint(fields)
			fields, sizes, sum = fields[k:], append(sizes, int(v)), sum+int(v)
		}
		fields = fields[len(fields)-sumOf(sizes):]
		for i, size := range sizes {
			columns[i] += size
			columnsAlone[i] += alone(fields[:size])
			fields = fields[size:]
		}
		b, err := p.content(rows, n)
		require.NoError(t, err)
		for i, size := range append(r.Laid[:], r.Text) {
			content[i] += int(size)
			contentAlone[i] += alone(b[:size])
			b = b[size:]
		}
	}
	fmt.Printf("%d bytes, %d chapters; heads %d, table %d, lookups %d, parity %d\n", len(b), len(rows), heads, p.foot.TableSize, p.foot.ParityAt(p.size)-p.foot.LookupAt(), p.foot.ParitySize)
	for i, name := range [...]string{"ids", "columns", "content"} {
		fmt.Printf("%-10s %9d bytes, compressed %9d\n", name, raw[i], packed[i])
	}
	for i := range 256 {
		if columns[i] > 0 {
			fmt.Printf("column %3d %9d bytes, alone %9d\n", i, columns[i], columnsAlone[i])
		}
	}
	for i, name := range [...]string{"texts of bodies", "other bodies", "other texts"} {
		fmt.Printf("%-15s %9d bytes, alone %9d\n", name, content[i], contentAlone[i])
	}
}

func sumOf(sizes []int) (sum int) {
	for _, n := range sizes {
		sum += n
	}
	return sum
}
