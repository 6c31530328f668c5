package archive

import (
	"bytes"
	"errors"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Item is an item of an input.
type Item struct {
	// Raw is the item's text. The caller may keep it.
	Raw []byte
	At  Position
	// Pause is set where a format with Grows must yield what it has read.
	Pause bool

	objects int64 // limit of objects
	open    bool  // last line, without a line end
	feed    *Feed // of the line, or nil
}

// Valid returns an error unless the item is valid JSON within the limits.
func (i Item) Valid() error {
	if err := checkObjects(i.Raw, i.objects); err != nil {
		return err
	}
	err := rawjson.Check(i.Raw)
	if err == nil && i.feed != nil {
		i.feed.valid(i.At.Line)
	}
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) {
		return Malformed("%v", syntax)
	}
	return err
}

// BeingWritten returns a repair for a last line whose JSON is cut off because the program is still writing it. It
// returns nil for other damage.
func (i Item) BeingWritten(bad error) *Damage {
	if !i.open || !errors.Is(bad, ErrMalformed) {
		return nil
	}
	return Damaged(i.At, Malformed("the last line is not complete; an import reads it once it is"))
}

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
