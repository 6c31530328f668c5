package content

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTypeCodes(t *testing.T) {
	for code, want := range typeCodes[1:] {
		got, ok := TypeCode(want)
		require.True(t, ok)
		require.Equal(t, uint8(code+1), got, "a type has one code")
		back, ok := TypeOfCode(got)
		require.True(t, ok)
		require.Equal(t, want, back)
	}
	for _, unlisted := range []string{"", "text", "TEXT/PLAIN", "text/x-unheard-of"} {
		code, ok := TypeCode(unlisted)
		require.False(t, ok)
		require.Zero(t, code)
	}
	for _, code := range []uint8{0, uint8(len(typeCodes)), 255} {
		_, ok := TypeOfCode(code)
		require.False(t, ok)
	}
}
