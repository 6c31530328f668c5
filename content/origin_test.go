package content

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// feature: lineage/origin-kinds
func TestOriginKindText(t *testing.T) {
	for kind, name := range map[OriginKind]string{
		OriginUnknown:   "unknown",
		OriginUser:      "user",
		OriginAssistant: "assistant",
		OriginSystem:    "system",
		OriginImport:    "import",
		OriginTool:      "tool",
	} {
		require.True(t, kind.IsValid())
		require.Equal(t, name, kind.String())
		parsed, err := ParseOriginKind(name)
		require.NoError(t, err)
		require.Equal(t, kind, parsed)

		text, err := json.Marshal(Origin{Kind: kind})
		require.NoError(t, err)
		require.Contains(t, string(text), `"`+name+`"`)
		var o Origin
		require.NoError(t, json.Unmarshal(text, &o))
		require.Equal(t, kind, o.Kind)
	}
}

func TestOriginKindRefuses(t *testing.T) {
	for _, text := range []string{"", "User", "robot", "origin kind 6", "1"} {
		_, err := ParseOriginKind(text)
		require.ErrorAs(t, err, new(*ParseError))
		kind := OriginTool
		require.Error(t, kind.UnmarshalText([]byte(text)))
		require.Equal(t, OriginTool, kind, "a failure changes nothing")
	}
	const unheardOf = OriginTool + 1
	require.False(t, unheardOf.IsValid())
	require.Equal(t, "origin kind 6", unheardOf.String())
	_, err := unheardOf.MarshalText()
	require.ErrorAs(t, err, new(*ParseError))
}

func TestOriginIsZero(t *testing.T) {
	require.True(t, Origin{}.IsZero())
	for _, o := range []Origin{
		{Kind: OriginUser}, {UserID: "u"}, {ModelID: "m"}, {SourceID: "s"}, {ParentID: ID{1}},
	} {
		require.False(t, o.IsZero())
	}
}
