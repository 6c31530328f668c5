package pack

import (
	"fmt"

	"github.com/lineage-store/lineage/structure"
)

// Edit changes a commit in place before it is packed: it sets dropped records to nil
// and may replace others; the replaced records must not be changed. It must not change
// the number of records.
type Edit func(c *structure.Commit) error

// apply returns the filtered commit, the original offsets of its records, and whether it changed.
func (f Edit) apply(c *structure.Commit, offsets []int) (*structure.Commit, []int, bool, error) {
	before := append([]structure.Record(nil), c.Records...)
	if err := f(c); err != nil {
		return nil, nil, false, err
	}
	if len(c.Records) != len(before) {
		return nil, nil, false, fmt.Errorf("the filter changed the number of records from %d to %d", len(before), len(c.Records))
	}
	kept := &structure.Commit{Number: c.Number, Time: c.Time}
	var places []int
	changed := false
	for i, r := range c.Records {
		if r != before[i] {
			changed = true
		}
		if r != nil {
			kept.Records, places = append(kept.Records, r), append(places, offsets[i])
		}
	}
	if !changed {
		return c, offsets, false, nil
	}
	return kept, places, true, nil
}
