package archives

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/archive"
)

var (
	// errPacked is returned for a value that is not what its encoding allows.
	errPacked  = errors.New("malformed packed value")
	errTooDeep = fmt.Errorf("%w: nested too deeply", errPacked)
)

// maxPackedDepth is the maximum nesting depth of values.
const maxPackedDepth = 256

// allowance is what may still be read of an item.
type allowance struct {
	in      *archive.Input
	bytes   int64
	objects int64
	values  int // nested values
}

// maxValues is the maximum number of nested values in an item. A value takes up to 40 bytes of
// memory and at least one of the file.
const maxValues = 8 << 20

var errTooMany = fmt.Errorf("%w: too many values in it", errPacked)

// object counts an object.
func (a *allowance) object() error {
	if a.objects--; a.objects < 0 {
		return &archive.LimitError{Limit: "objects", Most: a.in.MaxObjects(), What: "objects in an item", Err: archive.ErrTooLarge}
	}
	return nil
}

// value counts a value.
func (a *allowance) value() error {
	if a.values--; a.values < 0 {
		return errTooMany
	}
	return nil
}
