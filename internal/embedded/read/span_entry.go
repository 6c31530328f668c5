package read

import (
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// spanEntry returns the value of the entry of a span.
func (v *View) spanEntry(r structure.SpanRef) ([]byte, error) {
	value, ok, err := v.Index.Get(keys.Span(r))
	if err == nil && !ok {
		err = &backend.SubjectError{Subject: "span", ID: r.String(), Err: backend.ErrNotFound}
	}
	return value, err
}
