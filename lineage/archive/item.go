package archive

import (
	"bytes"
	"errors"
	"iter"
	"runtime"
	"unsafe"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/scratch"
)

// LargeItem is the size from which on the text of an item is in a temporary file, if the format has Large set.
const LargeItem = 8 << 20

// Item is an item of an input.
type Item struct {
	// Raw is the item's text. The caller may keep it, unless its format has Large set.
	Raw []byte
	At  Position
	// Pause is set where a format with Grows must yield what it has read.
	Pause bool

	objects int64         // limit of objects
	open    bool          // last line, without a line end
	feed    *Feed         // of the line, or nil
	text    *scratch.Text // that Raw is in, if it may be mapped
}

// Keep returns a part of the item's text that the caller may keep.
func (i Item) Keep(part []byte) []byte {
	if !i.isMapped() {
		return part
	}
	part = bytes.Clone(part)
	runtime.KeepAlive(i.text)
	return part
}

// Elements yields the elements of a list in the item's text, which the caller may keep, with their numbers from 1.
func (i Item) Elements(list []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		n := 0
		for element := range rawjson.Elements(list) {
			if n++; !yield(n, i.Keep(element)) {
				break
			}
		}
		runtime.KeepAlive(i.text)
	}
}

// Within returns the item for a part of its text.
func (i Item) Within(part []byte) Item {
	i.Raw = part
	return i
}

// offset returns where a part of the item's text begins in it.
func (i Item) offset(part []byte) int {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(i.Raw)))
	if at >= uintptr(len(i.Raw)) {
		panic("archive: the text of a message is not in that of its item")
	}
	return int(at)
}

// Memory returns how much memory a part of the item's text takes.
func (i Item) Memory(part []byte) int64 {
	if i.isMapped() {
		return 0
	}
	return int64(len(part))
}

// isMapped reports whether the item's text is not in memory of its own.
func (i Item) isMapped() bool { return i.text != nil && i.text.Mapped() }

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
