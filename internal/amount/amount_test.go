package amount

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAmounts(t *testing.T) {
	require.Equal(t, []string{"0 B", "1023 B", "1.0 KiB", "1.5 MiB"}, []string{Bytes(0), Bytes(1023), Bytes(1024), Bytes(3 << 19)})
	require.Equal(t, []string{"7", "1,234", "-1,234,567", "-999"}, []string{Count(7), Count(1234), Count(-1234567), Count(-999)})
	require.Equal(t, []string{"1 branch", "2 branches", "0 entries", "3 days"},
		[]string{Plural(1, "branch"), Plural(2, "branch"), Plural(0, "entry"), Plural(3, "day")})
}
