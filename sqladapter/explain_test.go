package sqladapter

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// classifier is a dialect that takes every error for one of a lost connection.
type classifier struct{ Dialect }

func (classifier) Classify(error) Failure { return Lost }

// An error is explained once, by however many calls.
func TestExplainOnce(t *testing.T) {
	cause := errors.New("connection refused")
	err := Explain(classifier{}, fmt.Errorf("open: %w", Explain(classifier{}, cause)))
	require.EqualError(t, err, "open: database is busy or cannot be reached: connection refused")
	for _, one := range []error{cause, ErrBusy, backend.ErrConflict} {
		require.ErrorIs(t, err, one)
	}
}
