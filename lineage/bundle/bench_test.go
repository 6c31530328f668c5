package bundle_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

// filledStore creates a store of threads with 100 messages each.
func filledStore(b *testing.B, messages int) *lineage.Store {
	s, err := lineage.Open(bg, b.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	words := make([]string, 2000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range words {
		words[i] = strconv.FormatUint(r.Uint64N(1<<30), 36)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for done := 0; done < messages; done += 100 {
		th, c, run := structure.NewID[structure.ThreadID](), structure.NewID[structure.ContextID](), structure.NewID[structure.RunID]()
		records := []structure.Record{&structure.Thread{ID: th, CreatedAt: at, UpdatedAt: at}, &structure.Run{ID: run}}
		for k := range uint64(100) {
			var text []byte
			for len(text) < 500 {
				text = append(append(text, words[r.IntN(len(words))]...), ' ')
			}
			at = at.Add(time.Second)
			block := structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: content.OriginUser}, at, text[:500])
			records = append(records, block, &structure.Span{Ref: structure.SpanRef{Run: run, Seq: k + 1}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID, CreatedAt: at}}})
		}
		records = append(records, &structure.Context{ID: c, Thread: th, Tip: structure.SpanRef{Run: run, Seq: 100}, CreatedAt: at},
			&structure.Branch{Thread: th, Name: "main", Context: c, CreatedAt: at},
			&structure.Thread{ID: th, Active: c, CreatedAt: at, UpdatedAt: at})
		_, err := write.Of(s).Engine().Apply(bg, &structure.Commit{Time: at, Records: records}, backend.Options{})
		require.NoError(b, err)
	}
	return s
}

func perMessage(b *testing.B, messages int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(messages), "µs/message")
}

func BenchmarkWrite(b *testing.B) {
	n := campaign.BenchMessages(b, 20_000)
	s := filledStore(b, n)
	for b.Loop() {
		report, err := bundle.Write(bg, s, io.Discard, bundle.WriteOptions{})
		require.NoError(b, err)
		b.ReportMetric(float64(report.Bytes)/float64(n), "B/message")
	}
	perMessage(b, n)
}

func BenchmarkImport(b *testing.B) {
	n := campaign.BenchMessages(b, 20_000)
	var whole bytes.Buffer
	_, err := bundle.Write(bg, filledStore(b, n), &whole, bundle.WriteOptions{})
	require.NoError(b, err)
	for b.Loop() {
		s, err := lineage.Open(bg, b.TempDir(), lineage.Options{})
		require.NoError(b, err)
		_, err = bundle.Import(bg, s, bytes.NewReader(whole.Bytes()), bundle.ImportOptions{})
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
	perMessage(b, n)
}

func BenchmarkImportAgain(b *testing.B) {
	n := campaign.BenchMessages(b, 20_000)
	s := filledStore(b, n)
	var whole bytes.Buffer
	_, err := bundle.Write(bg, s, &whole, bundle.WriteOptions{})
	require.NoError(b, err)
	for b.Loop() {
		_, err = bundle.Import(bg, s, bytes.NewReader(whole.Bytes()), bundle.ImportOptions{})
		require.NoError(b, err)
	}
	perMessage(b, n)
}

func BenchmarkTake(b *testing.B) {
	n := campaign.BenchMessages(b, 20_000)
	s := filledStore(b, n)
	for b.Loop() {
		_, err := bundle.Take(bg, s)
		require.NoError(b, err)
	}
	perMessage(b, n)
}
