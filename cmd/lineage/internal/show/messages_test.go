package show

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A speaker has its name, and that of a call or a result is not the type of its record.
func TestSpeaker(t *testing.T) {
	for want, e := range map[string]*lineage.Entry{
		"user":               {Kind: lineage.Message, Role: "user"},
		"user Ada":           {Kind: lineage.Message, Role: "user", Name: "Ada"},
		"assistant":          {Kind: lineage.Message, Role: "assistant", Name: "function_call"},
		"tool":               {Kind: lineage.Message, Role: "tool", Name: "custom_tool_call_output"},
		"tool exec":          {Kind: lineage.Message, Role: "tool", Name: "exec"},
		"document notes":     {Kind: lineage.Document, Document: "notes", Role: "user"},
		"file a picture.png": {Kind: lineage.Asset, Filename: "a picture.png"},
	} {
		require.Equal(t, want, Speaker(e))
	}
}
