package judge

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

func refusal(subject string, id fmt.Stringer, why error, detail string) error {
	return &backend.SubjectError{Subject: subject, ID: id.String(), Err: why, Detail: detail}
}

// required returns an error if a subject does not exist. The id is converted to an
// interface only then, to avoid an allocation.
func required[ID fmt.Stringer](there bool, err error, subject string, id ID) error {
	if err == nil && !there {
		err = refusal(subject, id, backend.ErrNotFound, "")
	}
	return err
}
