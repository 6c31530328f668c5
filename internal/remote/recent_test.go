package remote

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestExtendIsOneRequest extends a context by what the client knows of it, also after others have
// extended it.
func TestExtendIsOneRequest(t *testing.T) {
	e := memory(t)
	one := serve(t, &wrapped{Engine: e}, socketPipe, ServerOptions{}, ClientOptions{Durability: backend.Normal})
	defer one.Close()
	run, view := structure.DeriveID[structure.RunID]("run"), structure.DeriveID[structure.ContextID]("view")
	begins := &structure.Commit{Records: []structure.Record{
		&structure.Run{ID: run}, &structure.Context{ID: view}}}
	_, err := one.Apply(background, begins, backend.Options{})
	require.NoError(t, err)
	extend := func(by backend.Engine, from structure.SpanRef) error {
		body := saying("said").Records[0].(*structure.Block)
		next := structure.SpanRef{Run: run, Seq: from.Seq + 1}
		_, err := by.Apply(background, &structure.Commit{Records: []structure.Record{
			body,
			&structure.Span{Ref: next, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: body.ID, Role: "user"}}},
			&structure.Tip{Context: view, Span: next},
		}}, backend.Options{Tips: []backend.Expect{{Context: view, Tip: from}}})
		return err
	}
	recent := func() structure.SpanRef {
		got, err := one.Recent().Context(background, view)
		require.NoError(t, err)
		return got.Tip
	}
	requests := func(of func()) int {
		before := one.last
		of()
		return int(one.last - before)
	}

	require.Equal(t, 2, requests(func() { require.NoError(t, extend(one, recent())) }))
	for range 3 {
		require.Equal(t, 1, requests(func() { require.NoError(t, extend(one, recent())) }))
	}
	got, err := e.Context(background, view)
	require.NoError(t, err)
	require.EqualValues(t, 4, got.Tip.Seq)
	require.NoError(t, extend(e, got.Tip))
	require.Equal(t, 1, requests(func() { require.ErrorIs(t, extend(one, recent()), backend.ErrTipMoved) }))
	require.Equal(t, 2, requests(func() { require.NoError(t, extend(one, recent())) }), "a commit that failed is followed by a read")
	require.Equal(t, 1, requests(func() { require.NoError(t, extend(one, recent())) }))
}

func TestRecentIsBounded(t *testing.T) {
	var r recent
	for range 3 * maxRecent {
		r.remember([]backend.Context{{Context: structure.Context{ID: structure.NewID[structure.ContextID]()}}})
		require.LessOrEqual(t, len(r.contexts), maxRecent)
	}
}
