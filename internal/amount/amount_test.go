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

func TestParseBytes(t *testing.T) {
	for text, size := range map[string]int64{
		"0": 0, "4096": 4096, "1023 B": 1023, "1KiB": 1024, "1.5 MiB": 3 << 19, "1GiB": 1 << 30, "7EiB": 7 << 60, "9223372036854775807": 1<<63 - 1,
	} {
		n, err := ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, size, n, text)
	}
	for _, text := range []string{"", "KiB", "many", "-1", "-1KiB", "1GB", "1.5", "1 000", "8EiB", "9223372036854775808", "nanKiB", "infKiB", "1e300MiB"} {
		_, err := ParseBytes(text)
		require.ErrorIs(t, err, errSize, text)
	}
}
