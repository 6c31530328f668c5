package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines of any shape are compared. Only ids that are texts, or null, and times may differ.
func TestDifferInLines(t *testing.T) {
	was := `{"uuid":"a1","parentUuid":null,"id":"x","said":"hello"}`
	for line, one := range map[string]bool{
		`{"uuid":"b2","parentUuid":"c3","id":"y","said":"hello"}`:            true,
		`{"uuid":null,"parentUuid":"c3","id":"y","said":"hello"}`:            true,
		`{"uuid":"b2","parentUuid":null,"id":5,"said":"hello"}`:              false,
		`{"uuid":{},"parentUuid":[],"id":true,"said":"hello"}`:               false,
		`{"uuid":"b2","parentUuid":null,"id":"y","said":"other"}`:            false,
		`{"uuid":"b2","uuid":"b3","parentUuid":null,"said":"hello"}`:         false,
		`{"uuid":"b2","uuid":"b3","parentUuid":null,"id":"","said":"hello"}`: false,
		`{"uuid":"b2","parentUuid":null,"id":`:                               false,
		`{"uuid":"`:                                                          false,
		`5`:                                                                  false,
	} {
		require.Equal(t, one, differInLines([]byte(line), []byte(was)), line)
		require.Equal(t, one, differInLines([]byte(was), []byte(line)), line)
	}
}
