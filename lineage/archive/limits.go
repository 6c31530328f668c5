package archive

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Limits limit what an archive can make an import do. The zero value of each field is its default.
// Exceeding a limit is reported as a *LimitError.
type Limits struct {
	// Item is the maximum size of a conversation or line, and in a database of a checkpoint, or of a
	// request with its response. Default 256 MiB. Memory use is at limit a few times that.
	Item int64
	// Objects is the maximum number of JSON objects, such as messages, in an item. Default
	// 1,000,000.
	Objects int64
	// Conversations is the maximum number of conversations of an import. Default 10,000,000.
	Conversations int64
	// Total is the maximum size of a file after decompression, or of what is read from a database.
	// Default 1 TiB.
	Total int64
	// Ratio is the maximum of that size in relation to the size of the file, checked after RatioFrom
	// bytes. Defaults 250 and 64 MiB.
	Ratio, RatioFrom int64
	// Density is the maximum number of lines or values per 64 compressed bytes of a file, checked
	// after DensityFrom of them. Defaults 16 and 50,000.
	Density, DensityFrom int64
	// Depth is the maximum nesting of archives. Default 3.
	Depth int64
	// Files is the maximum number of files in an archive or folder. Default 1,000,000.
	Files int64
}

// OrDefault returns the limits with the defaults in place of zeros.
func (l Limits) OrDefault() Limits {
	return Limits{
		Item: cmp.Or(l.Item, 256<<20), Objects: cmp.Or(l.Objects, 1_000_000), Conversations: cmp.Or(l.Conversations, 10_000_000),
		Total: cmp.Or(l.Total, 1<<40), Ratio: cmp.Or(l.Ratio, 250), RatioFrom: cmp.Or(l.RatioFrom, 64<<20),
		Density: cmp.Or(l.Density, 16), DensityFrom: cmp.Or(l.DensityFrom, 50_000), Depth: cmp.Or(l.Depth, 3), Files: cmp.Or(l.Files, 1_000_000),
	}
}

// ByName returns the limits by the names that errors use, such as "ratio".
func (l *Limits) ByName() map[string]*int64 {
	return map[string]*int64{
		"item": &l.Item, "objects": &l.Objects, "conversations": &l.Conversations, "total": &l.Total, "ratio": &l.Ratio,
		"density": &l.Density, "depth": &l.Depth, "files": &l.Files,
	}
}

// LimitError is returned when a limit is exceeded. It matches ErrTooLarge, ErrTooDeep or
// ErrRefused.
type LimitError struct {
	// Limit is the name of the limit: see Limits.ByName.
	Limit string
	Most  int64
	What  string // the unit
	Err   error
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: more than %s %s (limit %q)", e.Err, strconv.FormatInt(e.Most, 10), e.What, e.Limit)
}

// Unwrap returns the sentinel that it matches.
func (e *LimitError) Unwrap() error { return e.Err }

// checkObjects refuses a value with too many objects.
func checkObjects(raw []byte, limit int64) error {
	if int64(bytes.Count(raw, []byte("{"))) <= limit {
		return nil // the count includes braces in strings
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
	if n > limit {
		return &LimitError{Limit: "objects", Most: limit, What: "objects in an item", Err: ErrTooLarge}
	}
	return nil
}

// guard counts what is read of an archive when it is decompressed, and from a database, and stops
// reading beyond limits. All parts of an archive share one.
type guard struct {
	limits Limits
	in     func() int64 // compressed bytes read, or the size of the database
	out    int64
	items  int64
}

// expand counts decompressed bytes.
func (g *guard) expand(n int64) error {
	g.out += n
	if g.out > g.limits.Total {
		return &LimitError{Limit: "total", Most: g.limits.Total, What: "bytes to read", Err: ErrTooLarge}
	}
	if g.out > g.limits.RatioFrom && g.out/g.limits.Ratio > max(g.in(), 1) {
		return &LimitError{Limit: "ratio", Most: g.limits.Ratio, What: "times its size", Err: ErrRefused}
	}
	return nil
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
