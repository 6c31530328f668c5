package structure_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// Reading spans of a layout in any order agrees with decoding the whole commit,
// including the blocks that they use.
func TestLayoutAgreesWithDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commit := structuretest.Commits().Draw(t, "commit")
		payload, _, err := new(structure.Encoder).Encode(commit)
		require.NoError(t, err)
		readAll(t, payload, func(n int) []int {
			return rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3*n).Draw(t, "which")
		})
	})
}

// laid is a span from decoding the whole commit, with the blocks before it.
type laid struct {
	span   *structure.Span
	before []*structure.Block
}

// readAll reads the chosen spans of a valid payload.
func readAll(t require.TestingT, payload []byte, choose func(n int) []int) {
	whole, err := structure.DecodeCommit(payload)
	require.NoError(t, err)
	var blocks []*structure.Block
	var spans []laid
	for _, r := range whole.Records {
		switch r := r.(type) {
		case *structure.Block:
			blocks = append(blocks, r)
		case *structure.Span:
			spans = append(spans, laid{r, blocks[:len(blocks):len(blocks)]})
		}
	}
	var l structure.Layout
	require.NoError(t, l.Reset(sampleMessages)) // its buffers are reused
	require.NoError(t, l.Reset(payload))
	require.Equal(t, whole.Time, l.Time)
	require.Equal(t, len(spans), l.Len())
	require.Equal(t, -1, l.Find(structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1}))
	for i, s := range spans {
		require.Equal(t, s.span.Ref, l.Ref(i))
		require.Equal(t, s.span.Ref, spans[l.Find(s.span.Ref)].span.Ref)
	}
	if len(spans) == 0 {
		return
	}
	again := l.Clone()
	require.NoError(t, l.Reset(sampleMessages))
	var shared, own structure.Reading
	for _, i := range choose(len(spans)) {
		require.NoError(t, again.Read(i, false, &shared))
		spans[i].require(t, &shared)
		require.NoError(t, again.Read(i, true, &own))
		spans[i].require(t, &own)
	}
}

func (l laid) require(t require.TestingT, got *structure.Reading) {
	require.Equal(t, l.span, &got.Span)
	require.Len(t, got.Local, len(l.span.Usages))
	for i, local := range got.Local {
		if local != nil {
			require.Equal(t, l.span.Usages[i].Content, local.ID)
			require.Contains(t, l.before, local)
		}
	}
}

var sampleMessages = func() []byte {
	payload, _, err := new(structure.Encoder).Encode(messageCommit())
	if err != nil {
		panic(err)
	}
	return payload
}()

// A span with a damaged block is refused, its neighbors are not.
func TestLayoutChecksWhatItReturns(t *testing.T) {
	run := structure.NewID[structure.RunID]()
	span := func(seq uint64, id content.ID) *structure.Span {
		return &structure.Span{Ref: structure.SpanRef{Run: run, Seq: seq}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: id, Role: "user"}}}
	}
	first, second := sampleBlock("first"), sampleBlock("second")
	payload, offsets, err := new(structure.Encoder).Encode(&structure.Commit{Records: []structure.Record{first, span(1, first.ID), second, span(2, second.ID)}})
	require.NoError(t, err)
	payload[offsets[0]+2] ^= 0xff // the type of the first block
	var l structure.Layout
	require.NoError(t, l.Reset(payload))
	var r structure.Reading
	require.Error(t, l.Read(l.Find(structure.SpanRef{Run: run, Seq: 1}), false, &r))
	require.NoError(t, l.Read(l.Find(structure.SpanRef{Run: run, Seq: 2}), false, &r))
	require.Equal(t, second.ID, r.Span.Usages[0].Content)
	require.Equal(t, "second", string(r.Local[0].Body))
}

// Owned results do not change with the payload, and reading many spans into the
// same memory allocates little.
func TestReadingIntoMemory(t *testing.T) {
	payload := append([]byte(nil), sampleMessages...)
	var l structure.Layout
	require.NoError(t, l.Reset(payload))
	var own, shared structure.Reading
	require.NoError(t, l.Read(0, true, &own))
	require.NoError(t, l.Read(0, false, &shared))
	require.NotNil(t, own.Local[0])
	said := string(own.Local[0].Body)
	require.LessOrEqual(t, campaign.Allocs(10, func() {
		if l.Read(0, false, &shared) != nil {
			panic("unreadable")
		}
	}), 1.0) // the id of the user
	clear(payload)
	require.Equal(t, said, string(own.Local[0].Body))
	require.NotEqual(t, said, string(shared.Local[0].Body))
}

func sampleBlock(body string) *structure.Block {
	return structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: content.OriginUser}, sampleTime, []byte(body))
}
