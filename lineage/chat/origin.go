package chat

import (
	"github.com/lineage-store/lineage/lineage/backend"
)

// originOf returns the origin of the message at a step.
func originOf(step *backend.Step) Origin {
	origin := step.Span.Usages[0].OriginWith(step.Blocks[0].Origin)
	o := Origin{UserID: origin.UserID, ModelID: origin.ModelID, SourceID: origin.SourceID}
	if !origin.ParentID.IsZero() {
		o.DerivedFrom = origin.ParentID.String()
	}
	return o
}
