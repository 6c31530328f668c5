package project

import (
	"errors"

	"github.com/lineage-store/lineage/lineage"
)

func exists(_ any, err error) (bool, error) {
	if errors.Is(err, lineage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
