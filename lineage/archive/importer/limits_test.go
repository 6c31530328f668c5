package importer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// limited imports an archive and requires that it exceeds the named limit, in the report or as the
// error. It returns the report.
func limited(t *testing.T, source []byte, o importer.Options, name string) importer.Report {
	t.Helper()
	report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("z", bytes.NewReader(source)), o)
	if err == nil {
		require.NotEmpty(t, report.Skipped)
		err = report.Skipped[len(report.Skipped)-1]
	}
	var limit *archive.LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, name, limit.Limit)
	require.Contains(t, err.Error(), fmt.Sprintf("(limit %q)", name))
	require.Contains(t, (&archive.Limits{}).ByName(), name)
	return report
}

// A small archive with millions of conversations is stopped with an error.
func TestManyItemsInLittle(t *testing.T) {
	campaign.Long(t)
	text := []byte(strings.Repeat(oneConversation, 60_000))
	o := importer.Options{Limits: archive.Limits{DensityFrom: 1000}}
	for name, b := range map[string][]byte{"gzip": gzipped(t, text), "zstd": zstdCompressed(t, text), "zip": zipped(t, file{"a.jsonl", text}), "zip in zip": zipped(t, file{"z", zipped(t, file{"a.jsonl", text})})} {
		t.Run(name, func(t *testing.T) {
			report := limited(t, b, o, "density")
			require.Less(t, report.Conversations, int64(20_000))
			require.GreaterOrEqual(t, report.NewConversations, int64(1000), "what was read before stays")
		})
	}
	t.Run("not compressed", func(t *testing.T) {
		report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("", bytes.NewReader(text[:len(text)/20])), o)
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
		require.EqualValues(t, 3000, report.NewConversations)
	})
	t.Run("many files", func(t *testing.T) {
		var files []file
		for i := range 40 {
			files = append(files, file{fmt.Sprint(i), text[:100*len(oneConversation)]})
		}
		limited(t, zipped(t, files...), o, "density")
	})
}

func TestNumberOfConversations(t *testing.T) {
	report := limited(t, []byte(strings.Repeat(oneConversation, 100)), importer.Options{Limits: archive.Limits{Conversations: 40}}, "conversations")
	require.EqualValues(t, 40, report.Conversations)
	require.EqualValues(t, 40, report.NewConversations, "what was read before stays")
}

// Conversations with very many messages or other elements take bounded memory and are reported.
func TestNumberOfObjects(t *testing.T) {
	many := func(element string) string { return strings.Repeat(element+",", 5000) + element }
	o := importer.Options{Limits: archive.Limits{Objects: 1000}}
	for format, source := range map[string]string{
		"openai":  `{"messages":[` + many(`{"role":"user","content":"a"}`) + `]}`,
		"chatgpt": `[{"mapping":{"a":{}}},{"mapping":{` + many(`"a":{}`) + `}}]`,
		"claude":  `[{"chat_messages":[` + many(`{}`) + `]}]`,
	} {
		o.Format = format
		report := limited(t, []byte(source), o, "objects")
		require.Zero(t, report.Messages, format)
	}
	// Braces in texts do not count.
	text := `{"messages":[{"role":"user","content":"` + strings.Repeat("{", 5000) + `"}]}`
	report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("", strings.NewReader(text)), importer.Options{Limits: archive.Limits{Objects: 1000}})
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Messages)

	report, err = importer.Import(context.Background(), storetest.New(t), archive.Stream("", strings.NewReader(`{"messages":[{"role":"user","content":"a"},`+many("1")+`]}`)), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 5001, report.SkippedCount)
	require.Len(t, report.Skipped, 1000)
}

// Entries of a mapping that are not messages, in chains and circles, take linear time.
func TestChainsOfEmptyEntries(t *testing.T) {
	campaign.Long(t)
	const n = 60_000
	for name, last := range map[string]string{"chain": "null", "circle": fmt.Sprintf(`"v%d"`, n-1)} {
		var b strings.Builder
		b.WriteString(`[{"conversation_id":"c","mapping":{`)
		for i := range n {
			parent := last
			if i > 0 {
				parent = fmt.Sprintf(`"v%d"`, i-1)
			}
			fmt.Fprintf(&b, `"v%d":{"parent":%s,"message":null},"m%d":{"parent":"v%d","message":{"author":{"role":"user"},"content":null}},`, i, parent, i, n-1-i)
		}
		b.WriteString(`"x":{}}}]`)
		conversations, damages := readAll(t, archive.Stream("", strings.NewReader(b.String())), importer.Options{})
		require.Empty(t, damages)
		read := 0
		for nodes := range conversations[0].Parts() {
			read += len(nodes)
		}
		require.Equal(t, n, read)
		if name == "circle" {
			require.NotEmpty(t, conversations[0].Repairs)
		} else {
			require.Empty(t, conversations[0].Repairs)
		}
	}
}

// A zip archive whose directory refers to the same data several times is refused.
func TestOverlappingZip(t *testing.T) {
	whole := zipped(t, file{"a.jsonl", []byte(strings.Repeat(oneConversation, 100))})
	r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	require.NoError(t, err)
	begin, err := r.File[0].DataOffset()
	require.NoError(t, err)
	end := int(begin) + int(r.File[0].CompressedSize64)
	at := bytes.Index(whole, []byte("PK\x01\x02"))
	require.GreaterOrEqual(t, at, end)
	entry := whole[at:bytes.Index(whole, []byte("PK\x05\x06"))]
	const copies = 50
	out := bytes.Clone(whole[:at])
	for i := range copies {
		e := bytes.Clone(entry)
		copy(e[46:], fmt.Sprintf("%02d", i)) // another name
		out = append(out, e...)
	}
	tail := bytes.Clone(whole[len(whole)-22:])
	binary.LittleEndian.PutUint16(tail[8:], copies)
	binary.LittleEndian.PutUint16(tail[10:], copies)
	binary.LittleEndian.PutUint32(tail[12:], uint32(copies*len(entry)))
	out = append(out, tail...)
	if r, err = zip.NewReader(bytes.NewReader(out), int64(len(out))); err == nil {
		require.Len(t, r.File, copies)
	}
	report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("z", bytes.NewReader(out)), importer.Options{})
	require.NoError(t, err)
	require.Zero(t, report.Conversations)
	require.Len(t, report.Skipped, 1)
	require.ErrorIs(t, report.Skipped[0], archive.ErrRefused)
	require.Contains(t, report.Skipped[0].Error(), "overlap")
	// A valid archive, including empty files and folders, passes.
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"dir/", "dir/empty", "dir/a.jsonl", "b.jsonl"} {
		m, err := w.Create(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, "l") {
			_, err = io.WriteString(m, oneConversation)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	report, err = importer.Import(context.Background(), storetest.New(t), archive.Stream("z", &b), importer.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	require.EqualValues(t, 1, report.Conversations)
}

// A cancelled import stores no more of a long conversation.
func TestCancelledWithinAConversation(t *testing.T) {
	c := &archive.Conversation{SourceID: "c"}
	for k := range 5_000 {
		c.Nodes = append(c.Nodes, archive.Node{Role: "user", Body: []byte(fmt.Sprint("message ", k, strings.Repeat(" x", 200)))})
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := storetest.New(t)
	engine := &meddling{Engine: write.Of(s).Engine(), left: 3, meddle: cancel}
	_, err := importer.Import(ctx, lineage.New(engine), archive.Stream("made", strings.NewReader("made")), madeFormat([]*archive.Conversation{c}))
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, engine.left, -1, "commits that were tried afterwards")
	requireSound(t, s)
	importMade(t, s, []*archive.Conversation{c})
	requireImported(t, s, []*archive.Conversation{c})
}
