package archive

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Limits bound what an archive can make an import do. The zero value of each field
// is a default. What is beyond a limit is reported as an error that is a *LimitError.
type Limits struct {
	// Item is the size of the largest conversation or line that is read. Default
	// 256 MiB. Memory is bounded by a few times that.
	Item int64
	// Objects is how many JSON objects, such as messages, an item may have. Default
	// 1,000,000.
	Objects int64
	// Conversations is how many conversations an import reads. Default 10,000,000.
	Conversations int64
	// Total is how many bytes a file may hold after decompression. Default 1 TiB.
	Total int64
	// Ratio is how many times its compressed size a file may hold, once it has
	// yielded RatioFrom bytes. Defaults 250 and 64 MiB.
	Ratio, RatioFrom int64
	// Density is how many lines or values a file may hold for each 64 bytes of its
	// compressed size, once it has yielded DensityFrom of them. Defaults 16 and 50,000.
	Density, DensityFrom int64
	// Depth is how many archives may be inside each other. Default 3.
	Depth int64
	// Files is how many files an archive or folder may have. Default 1,000,000.
	Files int64
}

func (l Limits) orDefault() Limits {
	return Limits{
		Item: cmp.Or(l.Item, 256<<20), Objects: cmp.Or(l.Objects, 1_000_000), Conversations: cmp.Or(l.Conversations, 10_000_000),
		Total: cmp.Or(l.Total, 1<<40), Ratio: cmp.Or(l.Ratio, 250), RatioFrom: cmp.Or(l.RatioFrom, 64<<20),
		Density: cmp.Or(l.Density, 16), DensityFrom: cmp.Or(l.DensityFrom, 50_000), Depth: cmp.Or(l.Depth, 3), Files: cmp.Or(l.Files, 1_000_000),
	}
}

// ByName returns the limits under the names that errors give them: "ratio".
func (l *Limits) ByName() map[string]*int64 {
	return map[string]*int64{
		"item": &l.Item, "objects": &l.Objects, "conversations": &l.Conversations, "total": &l.Total, "ratio": &l.Ratio,
		"density": &l.Density, "depth": &l.Depth, "files": &l.Files,
	}
}

// LimitError is returned for input beyond a limit. It matches ErrTooLarge, ErrTooDeep
// or ErrRefused.
type LimitError struct {
	// Limit is the name of the limit: see Limits.ByName.
	Limit string
	Most  int64
	What  string // that there is too much of
	Err   error
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: more than %s %s (limit %q)", e.Err, strconv.FormatInt(e.Most, 10), e.What, e.Limit)
}

// Unwrap returns the error that it matches.
func (e *LimitError) Unwrap() error { return e.Err }

// checkObjects refuses a value with too many objects in it.
func checkObjects(raw []byte, most int64) error {
	if int64(bytes.Count(raw, []byte("{"))) <= most {
		return nil // also those in strings
	}
	var n int64
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = rawjson.StringEnd(raw, i) - 1
		case '{':
			n++
		}
	}
	if n > most {
		return &LimitError{Limit: "objects", Most: most, What: "objects in an item", Err: ErrTooLarge}
	}
	return nil
}

// guard counts what comes of an archive, and ends its reading beyond limits. The parts
// of an archive share one.
type guard struct {
	limits Limits
	in     func() int64 // how much was read of what is compressed
	out    int64
	items  int64
}

// item counts a line or value.
func (g *guard) item() error {
	if g == nil {
		return nil // not compressed
	}
	if g.items++; g.items > g.limits.DensityFrom && g.items/g.limits.Density > g.in()/64 {
		return &LimitError{Limit: "density", Most: g.limits.Density, What: "items for each 64 compressed bytes", Err: ErrRefused}
	}
	return nil
}
