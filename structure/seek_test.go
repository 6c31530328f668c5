package structure_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// Whoever seeks some of a commit's spans, in order, gets what reading all of it
// gives, and the blocks that those spans use.
func TestSeekFindsWhatReadingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commit := structuretest.Commits().Draw(t, "commit")
		payload, _, err := new(structure.Encoder).Encode(commit)
		require.NoError(t, err)
		seekAll(t, payload, func() bool { return rapid.Bool().Draw(t, "seek") })
	})
}

// seekAll seeks the spans of a payload that decodes, or those chosen of them.
func seekAll(t require.TestingT, payload []byte, choose func() bool) {
	whole, err := structure.DecodeCommit(payload)
	require.NoError(t, err)
	d, err := structure.NewDecoder(payload)
	require.NoError(t, err)
	blocks := map[content.ID]*structure.Block{}
	seen := map[structure.SpanRef]bool{}
	for _, r := range whole.Records {
		switch r := r.(type) {
		case *structure.Block:
			blocks[r.ID] = r
		case *structure.Span:
			if seen[r.Ref] || !choose() {
				seen[r.Ref] = true
				continue
			}
			seen[r.Ref] = true
			found, err := d.Seek(r.Ref)
			require.NoError(t, err)
			require.Equal(t, r, found)
			for _, u := range r.Usages {
				if local := d.Local(u.Content); local != nil {
					require.Equal(t, blocks[u.Content], local)
				}
			}
		}
	}
	none, err := d.Seek(structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1})
	require.NoError(t, err)
	require.Nil(t, none)
}

// A span whose block is damaged is not returned, one beside it is.
func TestSeekChecksWhatItReturns(t *testing.T) {
	run := structure.NewID[structure.RunID]()
	span := func(seq uint64, id content.ID) *structure.Span {
		return &structure.Span{Ref: structure.SpanRef{Run: run, Seq: seq}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: id, Role: "user"}}}
	}
	first, second := sampleBlock("first"), sampleBlock("second")
	payload, offsets, err := new(structure.Encoder).Encode(&structure.Commit{Records: []structure.Record{first, span(1, first.ID), second, span(2, second.ID)}})
	require.NoError(t, err)
	payload[offsets[0]+2] ^= 0xff // the type of the first block
	for seq, good := range map[uint64]bool{1: false, 2: true} {
		d, err := structure.NewDecoder(payload)
		require.NoError(t, err)
		s, err := d.Seek(structure.SpanRef{Run: run, Seq: seq})
		if !good {
			require.Error(t, err)
			require.Nil(t, s)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, second.ID, s.Usages[0].Content)
		require.Equal(t, "second", string(d.Local(second.ID).Body))
	}
}

func sampleBlock(body string) *structure.Block {
	return structure.NewBlock(content.TypeText, content.Origin{Kind: content.OriginUser}, sampleTime, []byte(body))
}
