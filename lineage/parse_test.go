package lineage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

func TestParse(t *testing.T) {
	thread, c := newThread(t, newStore(t))
	at := say(t, c, "one")
	threadID, err := lineage.ParseThreadID(thread.ID().String())
	require.NoError(t, err)
	require.Equal(t, thread.ID(), threadID)
	contextID, err := lineage.ParseContextID(c.ID().String())
	require.NoError(t, err)
	require.Equal(t, c.ID(), contextID)
	for _, want := range []lineage.SpanRef{at, {}} {
		ref, err := lineage.ParseSpanRef(want.String())
		require.NoError(t, err)
		require.Equal(t, want, ref)
	}
	for _, text := range []string{"", "main", thread.ID().String() + "0", at.String() + "x", strings.Repeat("x", 1000)} {
		_, threadErr := lineage.ParseThreadID(text)
		_, contextErr := lineage.ParseContextID(text)
		_, spanErr := lineage.ParseSpanRef(text)
		for subject, err := range map[string]error{"thread": threadErr, "context": contextErr, "span": spanErr} {
			require.ErrorIs(t, err, lineage.ErrInvalid)
			require.ErrorContains(t, err, subject)
			require.Less(t, len(err.Error()), 200)
		}
	}
}
