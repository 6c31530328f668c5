package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeFlag(t *testing.T) {
	for text, ago := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "36h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "0d": 0, "10000w": 70_000 * 24 * time.Hour} {
		var f TimeFlag
		before := time.Now()
		require.NoError(t, f.Set(text), text)
		require.WithinRange(t, f.Time, before.Add(-ago), time.Now().Add(-ago), text)
		require.Equal(t, f.Time, f.In(time.FixedZone("elsewhere", 3600)), text)
	}
	for text, want := range map[string]string{
		"2026-01-31": "2026-01-31T00:00:00", "2026-01-31 18:05": "2026-01-31T18:05:00", "2026-01-31T18:05:06": "2026-01-31T18:05:06", "2026-01-31T18:05:06Z": "2026-01-31T18:05:06",
	} {
		var f TimeFlag
		require.NoError(t, f.Set(text), text)
		require.Equal(t, want, f.Format("2006-01-02T15:04:05"), text)
	}
	for _, text := range []string{"tomorrow", "d", "7", "-7d", "7 d", "1.5d", "7m", "10001w", "99999999999999999999d", "2026-13-01"} {
		var f TimeFlag
		require.Error(t, f.Set(text), text)
	}
	var f TimeFlag
	require.NoError(t, f.Set("7d"))
	require.NoError(t, f.Set(""))
	require.True(t, f.IsZero())
}
