package chat

import (
	"github.com/lineage-store/lineage/lineage/backend"
)

// originOf returns the origin of the message at a step.
func originOf(step *backend.Step) Origin {
	is := step.Span.Usages[0].OriginWith(step.Blocks[0].Origin)
	o := Origin{UserID: is.UserID, ModelID: is.ModelID, SourceID: is.SourceID}
	if !is.ParentID.IsZero() {
		o.DerivedFrom = is.ParentID.String()
	}
	return o
}
