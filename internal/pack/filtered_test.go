package pack

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
	"github.com/stretchr/testify/require"
)

// No part of a filtered pack, including dictionaries, contains filtered data.
func TestFilteredPartsHoldNothing(t *testing.T) {
	shrink(t)
	const marker = "SECRET-MARKER"
	var commits []*structure.Commit
	run, dead := structure.RunID{1}, structure.RunID{2}
	for i := range 120 {
		text := strings.Repeat("what everybody says all the time ", 5) + fmt.Sprint(i)
		in := run
		if i%2 == 0 {
			text, in = strings.Repeat(marker+" what nobody else says ", 5)+fmt.Sprint(i), dead
		}
		b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, sampleStart, []byte(text))
		commits = append(commits, &structure.Commit{Time: sampleStart, Records: []structure.Record{
			b, &structure.Span{Ref: structure.SpanRef{Run: in, Seq: uint64(i/2 + 1)}, Usages: []structure.Usage{{
				Kind: structure.MessageUsage, Role: "user", Content: b.ID, CreatedAt: sampleStart,
				Metadata: fmt.Appendf(nil, `{"says":%q}`, text[:13]), SourceID: text[:13] + fmt.Sprint(i),
			}}},
		}})
	}
	whole := write(t, framesOf(t, 9, commits), nil)
	require.True(t, expanded(t, whole, marker))
	var frames []Frame
	for f, err := range whole.Frames(0, 0) {
		require.NoError(t, err)
		frames = append(frames, f)
	}
	left := write(t, frames, func(c *structure.Commit) error {
		if c.Records[1].(*structure.Span).Ref.Run == dead {
			c.Records[0], c.Records[1] = nil, nil
		}
		return nil
	})
	require.False(t, expanded(t, left, marker))
	require.True(t, expanded(t, left, "everybody"))
	n := 0
	for f, err := range left.Frames(0, 0) {
		require.NoError(t, err)
		n++
		c, err := structure.DecodeCommit(f.Payload)
		require.NoError(t, err)
		require.Len(t, c.Records, 2*((n-1)%2))
	}
	require.Equal(t, len(commits), n)
}

var sampleStart = time.UnixMilli(1_700_000_000_000).UTC()

// expanded reports whether any decompressed part of the pack contains a text.
func expanded(t *testing.T, p *File, text string) (found bool) {
	t.Helper()
	look := func(b []byte) { found = found || bytes.Contains(b, []byte(text)) }
	rows, err := p.table()
	require.NoError(t, err)
	require.Greater(t, len(rows), 2)
	for n := range rows {
		d, err := p.codec(n)
		require.NoError(t, err)
		look(d.Dict)
		for i, size := range []int64{layout.PartIDs: rows[n].IDBytes, layout.PartColumns: rows[n].Columns, layout.PartContent: rows[n].ContentSize()} {
			b, err := p.expand(d, rows[n].Parts[i], size)
			require.NoError(t, err)
			look(b)
		}
	}
	raw := make([]byte, p.size)
	require.NoError(t, p.read(raw, 0))
	look(raw)
	return found
}
