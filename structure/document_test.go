package structure_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// The commit shown in hex in docs/format.md is the output of the encoder.
func TestDocumentedCommit(t *testing.T) {
	document, err := os.ReadFile("../docs/format.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(document), "An extend by the message `hello`")
	require.True(t, found)
	_, example, _ = strings.Cut(example, "```\n")
	example, _, _ = strings.Cut(example, "```\n")

	var shown strings.Builder
	bytes := regexp.MustCompile(`^[0-9a-f]{2,}(?:…[0-9a-f]+)?$`)
	repeated := regexp.MustCompile(`^([0-9a-f]{2}){2}…[0-9a-f]{2}$`)
	for line := range strings.Lines(example) {
		for field := range strings.FieldsSeq(line) {
			if !bytes.MatchString(field) {
				break
			}
			if m := repeated.FindStringSubmatch(field); m != nil {
				field = strings.Repeat(m[1], 16) // an id of one repeated byte
			}
			shown.WriteString(field)
		}
	}
	require.NotEmpty(t, shown.String())
	want, err := hex.DecodeString(shown.String())
	require.NoError(t, err)

	c, err := structure.DecodeCommit(want)
	require.NoError(t, err)
	require.Len(t, c.Records, 3)
	hello := structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: content.OriginUser}, c.Time, []byte("hello"))
	ref := structure.SpanRef{Run: structure.RunID(repeat(1)), Seq: 7}
	c = &structure.Commit{Time: c.Time, Records: []structure.Record{
		hello,
		&structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: hello.ID, Role: "user", CreatedAt: c.Time}}},
		&structure.Tip{Context: structure.ContextID(repeat(2)), Span: ref},
	}}
	got, _, err := new(structure.Encoder).Encode(c)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got))
	require.Contains(t, string(document), fmt.Sprintf("without its frame, is %d bytes", len(got)))
	require.WithinRange(t, c.Time, time.UnixMilli(0), time.UnixMilli(1<<41))
}

// The table of records in docs/format.md has each kind, with its number and name.
func TestDocumentedKinds(t *testing.T) {
	document, err := os.ReadFile("../docs/format.md")
	require.NoError(t, err)
	for k := structure.KindBlock; k <= structure.KindRemnant; k++ {
		require.Contains(t, string(document), fmt.Sprintf("\n| %d | %s |", k, k))
	}
	next := structure.KindRemnant + 1
	require.NotContains(t, string(document), fmt.Sprintf("\n| %d | %s |", next, next))
}

func repeat(b byte) (id [16]byte) {
	for i := range id {
		id[i] = b
	}
	return id
}
