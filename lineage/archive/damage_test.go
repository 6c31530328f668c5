package archive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPositionForPeople(t *testing.T) {
	for _, c := range []struct {
		at             Position
		string, within string
	}{
		{Position{File: "a.json", Line: 4, Offset: 519}, "a.json: line 4 (byte 519)", "line 4 (byte 519)"},
		{Position{File: "a.json", Item: 3, Offset: 120}.In("message m"), "a.json: item 3 (byte 120), message m", "item 3 (byte 120), message m"},
		{Position{File: "a.json", Offset: 120}.Element("node", 2), "a.json, node 2", "node 2"},
		{Position{File: "a.json"}, "a.json", ""},
		{Position{Line: 1}, "input: line 1 (byte 0)", "line 1 (byte 0)"},
		{Position{}, "input", ""},
	} {
		require.Equal(t, c.string, c.at.String())
		require.Equal(t, c.within, c.at.Within())
	}
}
