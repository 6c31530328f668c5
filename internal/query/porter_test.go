package query

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "cats": "cat", "feed": "feed", "agreed": "agre", "plastered": "plaster", "motoring": "motor",
		"sing": "sing", "conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "tanned": "tan", "falling": "fall",
		"hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file", "happy": "happi", "sky": "sky", "relational": "relat",
		"conditional": "condit", "rational": "ration", "digitizer": "digit", "vietnamization": "vietnam", "operator": "oper", "feudalism": "feudal",
		"hopefulness": "hope", "formality": "formal", "sensitivity": "sensit", "triplicate": "triplic", "electrical": "electr", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "adjustable": "adjust", "adoption": "adopt", "effective": "effect", "bowdlerize": "bowdler",
		"probate": "probat", "rate": "rate", "controll": "control", "roll": "roll", "a": "a", "is": "is", "x86": "x86", "2024": "2024",
	} {
		require.Equal(t, want, stem(word), word)
	}
	require.Equal(t, strings.Repeat("s", 65), stem(strings.Repeat("s", 65)), "long words stay")
}

// TestStemsOfAnything checks that the stemmer accepts every word and adds at most
// one letter.
func TestStemsOfAnything(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := rapid.StringMatching(`[a-z0-9]{0,12}(s|es|ed|ing|y|ational|ization|iviti|ness|ement|e|ll|eed|bled)?`).Draw(r, "word")
		require.LessOrEqual(t, len(stem(w)), len(w)+1)
	})
}
