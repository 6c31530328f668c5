package structure_test

import (
	"bytes"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/structure"
)

func TestAllocations(t *testing.T) {
	commit := messageCommit()
	var enc structure.Encoder
	payload := bytes.Clone(encode(t, commit))
	var dec structure.Decoder
	usages := commit.Records[1].(*structure.Span).Usages
	tests := []struct {
		name string
		most float64
		run  func() error
	}{
		{"encode a message", 0, func() error { _, _, err := enc.Encode(commit); return err }},
		// The three records, the span's usages and the block's user id.
		{"decode a message", 5, func() error { return decodeAll(&dec, payload) }},
		{"next digest", 0, func() error { structure.NextDigest(structure.Digest{}, usages); return nil }},
		{"derive an id", 0, func() error { structure.DeriveID[structure.RunID]("scope", "chat-1"); return nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.run())
			require.LessOrEqual(t, campaign.Allocs(100, func() { _ = tt.run() }), tt.most)
		})
	}
}

func decodeAll(d *structure.Decoder, payload []byte) error {
	err := d.Reset(payload)
	for err == nil && d.More() {
		_, _, err = d.Next()
	}
	return err
}

// The allocations of the decoder are proportional to the size of the payload,
// whatever lengths and counts it claims.
func TestDecodingAllocatesInProportion(t *testing.T) {
	huge := bytes.Repeat([]byte{0xff}, 8)
	huge = append(huge, 0x7f) // 2^63 - 1
	asset := []byte{3, 0, 0, 0, 0}
	span := func(usages int, count []byte) []byte {
		body := join([]byte{8, 1}, make([]byte, 16), count, bytes.Repeat(asset, usages))
		return join(encode(t, &structure.Commit{Records: []structure.Record{text("")}}), record(structure.KindSpan, body)[2:])
	}
	ids := make([]byte, 0, 1<<17) // spans of a message whose extras are all its source id
	for range 100 {
		message := join([]byte{1, 0x51, 0, 1, 0, 0xc8, 1}, bytes.Repeat([]byte{'s'}, 200), []byte{0, 0x80, 2}, make([]byte, 256))
		ids = append(ids, record(structure.KindSpan, join([]byte{0, 1}, make([]byte, 16), message))[2:]...)
	}
	tests := map[string][]byte{
		"a huge record":          join([]byte{4, 0, 2}, huge),
		"a huge string":          record(structure.KindThread, join(make([]byte, 16), huge)),
		"a huge optional":        record(structure.KindThread, join(make([]byte, 16), []byte{0, 0, 0}, huge)),
		"countless usages":       span(0, huge),
		"usages without bytes":   span(0, []byte{0x80, 0x80, 0x20}),
		"a usage for each byte":  span(3000, []byte{0x98, 0x75}),
		"countless parts":        record(structure.KindSummary, join(make([]byte, 67), huge)),
		"parts without bytes":    record(structure.KindSummary, join(make([]byte, 67), []byte{0x80, 0x80, 0x02})),
		"the shortest records":   join([]byte{4, 0}, bytes.Repeat([]byte{2, 0}, 10_000)),
		"the source id for each": append(encode(t, &structure.Commit{Records: []structure.Record{text("")}}), ids...),
		"the shortest usages":    span(3000, []byte{0xb8, 0x17}),
		"a megabyte in a block":  encode(t, &structure.Commit{Records: []structure.Record{text(string(make([]byte, 1<<20)))}}),
	}
	for name, payload := range tests {
		t.Run(name, func(t *testing.T) {
			least := uint64(math.MaxUint64)
			for range 3 { // other goroutines count too
				least = min(least, allocated(func() { _, _ = structure.DecodeCommit(payload) }))
			}
			require.LessOrEqual(t, least, uint64(4096+96*len(payload)))
		})
	}
	for _, worst := range []string{"the shortest usages", "the source id for each"} {
		_, err := structure.DecodeCommit(tests[worst])
		require.NoError(t, err, "the worst case is accepted")
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func BenchmarkEncodeMessage(b *testing.B) {
	commit := messageCommit()
	var enc structure.Encoder
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := enc.Encode(commit); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeMessage(b *testing.B) {
	payload := encode(b, messageCommit())
	var d structure.Decoder
	b.ReportAllocs()
	for b.Loop() {
		if err := decodeAll(&d, payload); err != nil {
			b.Fatal(err)
		}
	}
}

// The span of an import: many usages, each of a block out of reach.
func BenchmarkEncodeManyFarUsages(b *testing.B) {
	commit := &structure.Commit{Time: sampleTime}
	for _, body := range numbered(1000) {
		commit.Records = append(commit.Records, text(body))
	}
	span := &structure.Span{Ref: at(1, 1)}
	for _, body := range numbered(1000) {
		span.Usages = append(span.Usages, structure.Usage{
			Kind: structure.MessageUsage, Content: content.Sum([]byte(body)), Role: "user", CreatedAt: sampleTime,
		})
	}
	commit.Records = append(commit.Records, span)
	var enc structure.Encoder
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := enc.Encode(commit); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextDigest(b *testing.B) {
	usages := messageCommit().Records[1].(*structure.Span).Usages
	var d structure.Digest
	b.ReportAllocs()
	for b.Loop() {
		d = structure.NextDigest(d, usages)
	}
}
