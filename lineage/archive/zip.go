package archive

import (
	"archive/zip"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// localHeader is the minimum size of a zip file's header before its data.
const localHeader = 30

// overlap refuses a zip archive with overlapping files, in which little data is expanded many
// times.
func overlap(files []*zip.File) error {
	type extent struct{ begin, end int64 }
	var data []extent
	for _, f := range files {
		if f.CompressedSize64 == 0 {
			continue
		}
		begin, err := f.DataOffset()
		if err != nil {
			continue // opening it returns the error
		}
		if f.CompressedSize64 > math.MaxInt64/2 {
			return fmt.Errorf("zip: file %q of %d bytes: %w", f.Name, f.CompressedSize64, ErrRefused)
		}
		data = append(data, extent{begin, begin + int64(f.CompressedSize64)})
	}
	slices.SortFunc(data, func(a, b extent) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(data); i++ {
		if data[i].begin < data[i-1].end+localHeader {
			return fmt.Errorf("zip: files overlap at byte %d: %w", data[i].begin, ErrRefused)
		}
	}
	return nil
}
