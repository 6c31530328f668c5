package importer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

const oneConversation = `{"messages":[{"role":"user","content":"And Porto?"}]}` + "\n"

// A caller knows whether there is anything to import before it has a store.
func TestAnEmptyImportNeedsNoStore(t *testing.T) {
	for source, want := range map[string]error{"": archive.ErrNothingFound, "notes": archive.ErrUnknownFormat} {
		b, err := importer.Begin(t.Context(), archive.Stream("x", strings.NewReader(source)), importer.Options{})
		require.NoError(t, err)
		require.True(t, b.Empty())
		_, err = b.Into(nil)
		require.ErrorIs(t, err, want)
		b.Close()
	}
	b, err := importer.Begin(t.Context(), archive.Stream("x", strings.NewReader(oneConversation)), importer.Options{})
	require.NoError(t, err)
	defer b.Close()
	require.False(t, b.Empty())
	report, err := b.Into(storetest.New(t))
	require.NoError(t, err)
	require.EqualValues(t, 1, report.NewConversations)
	_, err = importer.Begin(t.Context(), archive.Path("x"), importer.Options{Format: "nosuch"})
	require.ErrorIs(t, err, archive.ErrUnknownFormat)
}

// An error before the first conversation is returned unchanged.
func TestAnImportThatFailsAtOnceIsEmpty(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	b, err := importer.Begin(ctx, archive.Stream("x", strings.NewReader(oneConversation)), importer.Options{})
	require.NoError(t, err)
	defer b.Close()
	require.True(t, b.Empty())
	_, err = b.Into(nil)
	require.ErrorIs(t, err, broken)
}

// A closed import stops reading its source, however large.
func TestClosedImportStopsReading(t *testing.T) {
	b, err := importer.Begin(t.Context(), archive.Stream("x", io.LimitReader(&repeated{text: oneConversation}, 1<<40)), importer.Options{})
	require.NoError(t, err)
	require.False(t, b.Empty())
	b.Close()
	b.Close()
}

// repeated yields a text repeatedly.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
