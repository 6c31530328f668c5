package embedded

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestFollow commits in a store, and follows its commits in another, which is closed and reopened in between: both have
// the same commits, ids and requests.
func TestFollow(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		ctx := context.Background()
		var log []Sequenced
		first, err := Open(ctx, "", Options{InMemory: true})
		require.NoError(t, err)
		defer first.Close()
		dir, err := os.MkdirTemp(outer.TempDir(), "store")
		require.NoError(t, err)
		open := func() *Engine {
			e, err := Open(ctx, dir, Options{Durability: backend.Normal})
			require.NoError(t, err)
			return e
		}
		second := open()
		defer func() { require.NoError(t, second.Close()) }()

		var requests []backend.Once
		followed := 0
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			c := &structure.Commit{Records: []structure.Record{&structure.Thread{ID: structure.NewID[structure.ThreadID]()}}}
			o := backend.Options{}
			if rapid.Bool().Draw(t, "once") {
				o.Once = &backend.Once{Session: [16]byte{1}, Sequence: uint64(i + 1)}
			}
			before, err := first.Head(ctx)
			require.NoError(t, err)
			_, err = first.Apply(ctx, c, o)
			require.NoError(t, err)
			for c, err := range first.Feed(ctx, before) {
				require.NoError(t, err)
				payload, _, err := new(structure.Encoder).Encode(c)
				require.NoError(t, err)
				log = append(log, Sequenced{Number: c.Number, ID: c.ID, Payload: payload, Once: o.Once})
			}
			if o.Once != nil {
				requests = append(requests, *o.Once)
			}
			if rapid.Bool().Draw(t, "follow") {
				for ; followed < len(log); followed++ {
					require.NoError(t, second.Follow(ctx, log[followed]))
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "reopen") == 0 {
				require.NoError(t, second.Close())
				second = open()
			}
		}
		for ; followed < len(log); followed++ {
			require.NoError(t, second.Follow(ctx, log[followed]))
		}
		require.ErrorIs(t, second.Follow(ctx, Sequenced{Number: uint64(len(log)) + 2, ID: 1, Payload: payloadOf(t)}), backend.ErrConflict)
		require.Error(t, second.Follow(ctx, Sequenced{Number: uint64(len(log)) + 1, ID: 1, Payload: []byte{0xff}}))
		for _, e := range []*Engine{first, second} {
			n := 0
			for c, err := range e.Feed(ctx, backend.Cursor{}) {
				require.NoError(t, err)
				require.Equal(t, log[n].ID, c.ID)
				require.Equal(t, log[n].Number, c.Number)
				n++
			}
			require.Equal(t, len(log), n)
			for _, o := range requests {
				r, err := e.Outcome(ctx, o)
				require.NoError(t, err)
				require.Equal(t, log[r.Number-1].Once.Sequence, o.Sequence)
			}
			for f, err := range e.Verify(ctx, backend.VerifyOptions{Deep: true}) {
				require.NoError(t, err)
				t.Errorf("%v", f)
			}
		}
	})
}

func payloadOf(t require.TestingT) []byte {
	var e structure.Encoder
	b, _, err := e.Encode(&structure.Commit{Records: []structure.Record{&structure.Thread{ID: structure.NewID[structure.ThreadID]()}}})
	require.NoError(t, err)
	return b
}
