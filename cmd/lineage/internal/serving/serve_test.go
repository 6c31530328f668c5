package serving

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// What has failed begins again until the context ends.
func TestRepeat(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	repeat(ctx, 1, func() {
		if calls++; calls == 3 {
			cancel()
		}
	})
	require.Equal(t, 3, calls)
	repeat(ctx, 1, func() { t.Error("the context has ended") })
}
