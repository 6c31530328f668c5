package judge

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

func sourceRefusal(id string, why error, detail string) error {
	return &backend.SubjectError{Subject: "source id", ID: fmt.Sprintf("%.80q", id), Err: why, Detail: detail}
}

// claimSource changes the source id of a name. No other name of the thread may have it.
func claimSource(s *state, now *OrderedMap[SourceID, string], stored func(SourceID) (string, error), n Name, was, id string) error {
	if was == id {
		return nil
	}
	freeSource(now, n, was)
	if id == "" {
		return nil
	}
	if err := backend.CheckSourceID(id); err != nil {
		return err
	}
	source := SourceID{n.Thread, id}
	if !s.Replay {
		name, changed := now.Get(source)
		if !changed {
			var err error
			if name, err = stored(source); err != nil {
				return err
			}
		}
		if name != "" {
			return sourceRefusal(id, backend.ErrExists, fmt.Sprintf("%.80q has it", name))
		}
	}
	now.set(source, n.Name)
	return nil
}

// freeSource removes the source id of a name.
func freeSource(now *OrderedMap[SourceID, string], n Name, id string) {
	if id == "" {
		return
	}
	source := SourceID{n.Thread, id}
	if name, changed := now.Get(source); !changed || name == n.Name {
		now.set(source, "")
	}
}
