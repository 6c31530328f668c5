package structure_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

func TestCommitRoundTrip(t *testing.T) {
	var enc structure.Encoder // reused: nothing of one commit may appear in the next
	rapid.Check(t, func(t *rapid.T) {
		want := structuretest.Commits().Draw(t, "commit")
		payload, _, err := enc.Encode(want)
		require.NoError(t, err)
		payload = bytes.Clone(payload)

		got, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Equal(t, want, got)

		fresh, _, err := new(structure.Encoder).Encode(got)
		require.NoError(t, err)
		require.Equal(t, payload, fresh)
	})
}

func TestEncodeReturnsRecordOffsets(t *testing.T) {
	var d structure.Decoder
	rapid.Check(t, func(t *rapid.T) {
		commit := structuretest.Commits().Draw(t, "commit")
		payload, offsets, err := new(structure.Encoder).Encode(commit)
		require.NoError(t, err)
		require.NoError(t, d.Reset(payload))
		require.Equal(t, commit.Time, d.Time)
		require.Len(t, offsets, len(commit.Records))
		for i, want := range commit.Records {
			require.True(t, d.More())
			offset, r, err := d.Next()
			require.NoError(t, err)
			require.Equal(t, offsets[i], offset)
			require.Equal(t, want, r)
			requireObject(t, payload[offset:], want)
		}
		require.False(t, d.More())
		_, _, err = d.Next()
		require.ErrorIs(t, err, structure.ErrMalformed)
	})
}

// requireObject requires that a record can be read from the middle of a commit, with its size
// from its first bytes.
func requireObject(t require.TestingT, from []byte, want structure.Record) {
	size := structure.RecordSize(from[:min(len(from), 16)])
	require.Positive(t, size)
	require.LessOrEqual(t, size, len(from))
	got, err := structure.DecodeObject(from[:size])
	switch want.Kind() {
	case structure.KindBlock, structure.KindChunk:
		require.NoError(t, err)
		require.Equal(t, want, got)
	default:
		require.ErrorIs(t, err, structure.ErrMalformed)
		require.Nil(t, got)
	}
}

func TestPlainRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := structuretest.PlainRecords().Draw(t, "record")
		b, err := structure.MarshalRecord(want)
		require.NoError(t, err)
		got, err := structure.UnmarshalRecord(want.Kind(), b)
		require.NoError(t, err)
		require.Equal(t, want, got)

		_, err = structure.UnmarshalRecord(want.Kind(), append(b[:len(b):len(b)], 0))
		require.ErrorIs(t, err, structure.ErrMalformed)
		_, err = structure.UnmarshalRecord(want.Kind(), b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")])
		require.ErrorIs(t, err, structure.ErrMalformed)
	})
}

func TestRecordSize(t *testing.T) {
	chunk := &structure.Chunk{Bytes: make([]byte, 300)}
	payload, offsets, err := new(structure.Encoder).Encode(&structure.Commit{Records: []structure.Record{chunk}})
	require.NoError(t, err)
	record := payload[offsets[0]:]
	for n := range len(record) + 1 {
		want := 0
		if n >= 3 { // kind and a length of two bytes
			want = 303
		}
		require.Equal(t, want, structure.RecordSize(record[:n]), "of %d bytes", n)
	}
	require.Zero(t, structure.RecordSize([]byte{2, 0x80, 0}), "a length in a longer form than it needs")
	require.Zero(t, structure.RecordSize(append([]byte{2}, bytes.Repeat([]byte{0xff}, 20)...)), "a length beyond 64 bits")
	require.Zero(t, structure.RecordSize([]byte{2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), "an impossible length")
}

// Content that a commit named before is referred to by distance within reach, and by id
// beyond.
func TestContentOfTheSameCommit(t *testing.T) {
	tests := []struct {
		name   string
		blocks []string
		use    string
		byID   bool
	}{
		{"the latest", []string{"a", "b"}, "b", false},
		{"an earlier one", []string{"a", "b"}, "a", false},
		{"one of two alike", []string{"a", "b", "a", "c"}, "a", false},
		{"none", []string{"a"}, "b", true},
		{"further back than a byte counts", append([]string{"far"}, numbered(300)...), "far", false},
		{"as far back as is looked", append([]string{"far"}, numbered(511)...), "far", false},
		{"further back than is looked", append([]string{"far"}, numbered(512)...), "far", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := &structure.Commit{Time: sampleTime}
			for _, body := range tt.blocks {
				want.Records = append(want.Records, text(body))
			}
			used := content.Sum([]byte(tt.use))
			want.Records = append(want.Records, &structure.Span{Ref: at(1, 1), Usages: []structure.Usage{
				{Kind: structure.MessageUsage, Content: used, Role: "user", CreatedAt: sampleTime},
			}})
			payload, _, err := new(structure.Encoder).Encode(want)
			require.NoError(t, err)
			require.Equal(t, tt.byID, bytes.Contains(payload, used[:]))
			got, err := structure.DecodeCommit(payload)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// A payload contains an id once, however many usages of the commit name it in whatever way.
func TestIDsAreWrittenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(structuretest.ContentIDs(), 1, 6, rapid.ID).Draw(t, "ids")
		some := rapid.SampledFrom(ids)
		c := &structure.Commit{Time: sampleTime}
		for i := range rapid.IntRange(1, 60).Draw(t, "spans") {
			s := &structure.Span{Ref: at(1, uint64(i)+1)}
			for range rapid.IntRange(1, 4).Draw(t, "usages") {
				u := structure.Usage{Kind: structure.MessageUsage, Content: some.Draw(t, "content"), Role: "user", CreatedAt: sampleTime}
				if rapid.Bool().Draw(t, "formed") {
					u.Form = some.Draw(t, "form")
				}
				if rapid.Bool().Draw(t, "with metadata") {
					u.MetadataContent = some.Draw(t, "metadata")
				}
				s.Usages = append(s.Usages, u)
			}
			c.Records = append(c.Records, s)
		}
		payload := encode(t, c)
		for _, id := range ids {
			require.LessOrEqual(t, bytes.Count(payload, id[:]), 1)
		}
		requireOneForm(t, payload)
		readAll(t, payload, everyOne)
		got, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Equal(t, c.Records, got.Records)
	})
}

// An extra that equals the source id takes one byte, whichever of the extras it is, and one
// that only resembles it is decoded correctly too.
func TestExtraIsTheSourceID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"m-1", `"`, `""`, "\\"})).Draw(t, "source id")
		u := structure.Usage{Kind: structure.MessageUsage, Role: "user", Form: content.Sum(nil), CreatedAt: sampleTime, SourceID: source}
		like := rapid.SampledFrom([]string{`"` + source + `"`, source, `"` + source, source + `"`, `"` + source + ` "`, "", `""`})
		for range rapid.IntRange(1, 5).Draw(t, "extras") {
			u.Extras = append(u.Extras, []byte(like.Draw(t, "extra")))
		}
		payload := encode(t, &structure.Commit{Records: []structure.Record{&structure.Span{Ref: at(1, 1), Usages: []structure.Usage{u}}}})
		got, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Equal(t, u, got.Records[0].(*structure.Span).Usages[0])
		requireOneForm(t, payload)
		// The byte that states a length of 34 is a quotation mark, too.
		if own := `"` + source + `"`; len(source) > 2 && (len(source) < 31 || len(source) > 34) {
			require.NotContains(t, string(payload), own)
		}
	})
}

func TestFieldsOfOtherUsagesAreNotStored(t *testing.T) {
	all := structure.Usage{Role: "user", Name: "ada", Document: "plan", Revision: 1, Filename: "a.png", CreatedAt: sampleTime}
	for kind, want := range map[structure.UsageKind]structure.Usage{
		structure.MessageUsage:  {Role: "user", Name: "ada"},
		structure.DocumentUsage: {Document: "plan", Revision: 1},
		structure.AssetUsage:    {Filename: "a.png"},
		structure.PartUsage:     {Name: "ada"},
	} {
		all.Kind, want.Kind, want.CreatedAt = kind, kind, sampleTime
		payload := encode(t, &structure.Commit{Records: []structure.Record{
			&structure.Span{Ref: at(1, 1), Usages: []structure.Usage{all}},
		}})
		got, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Equal(t, want, got.Records[0].(*structure.Span).Usages[0])
	}
}

// Records share memory with their payload, but without spare capacity: appending to a field
// does not overwrite the next.
func TestDecodedBytesHaveNoCapacityToSpare(t *testing.T) {
	payload := encode(t, sampleCommit())
	before := bytes.Clone(payload)
	got, err := structure.DecodeCommit(payload)
	require.NoError(t, err)
	for _, r := range got.Records {
		switch r := r.(type) {
		case *structure.Block:
			_ = append(r.Body, "more"...)
		case *structure.Chunk:
			_ = append(r.Bytes, "more"...)
		case *structure.Thread:
			_ = append(r.Metadata, "more"...)
		case *structure.Context:
			_ = append(r.Overrides.JSON, "more"...)
		case *structure.Summary:
			_ = append(r.Embedding, "more"...)
		case *structure.Span:
			for _, u := range r.Usages {
				_ = append(u.Metadata, "more"...)
			}
		}
	}
	require.Equal(t, before, payload)
}

func numbered(n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprint("body ", i)
	}
	return bodies
}

func TestTimesKeepMilliseconds(t *testing.T) {
	zone := time.FixedZone("somewhere", 3600)
	tests := []struct{ in, want time.Time }{
		{time.Date(2026, 5, 4, 3, 2, 1, 999_999_999, zone), time.Date(2026, 5, 4, 2, 2, 1, 999e6, time.UTC)},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999e6, time.UTC)},
		{time.Time{}, time.Time{}},
	}
	for _, tt := range tests {
		commit := &structure.Commit{Time: tt.in, Records: []structure.Record{
			&structure.Branch{CreatedAt: tt.in},
			&structure.Span{Ref: at(1, 1), Usages: []structure.Usage{{Kind: structure.AssetUsage, CreatedAt: tt.in}}},
		}}
		payload, _, err := new(structure.Encoder).Encode(commit)
		require.NoError(t, err)
		got, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Equal(t, tt.want, got.Time)
		require.Equal(t, tt.want, got.Records[0].(*structure.Branch).CreatedAt)
		require.Equal(t, tt.want, got.Records[1].(*structure.Span).Usages[0].CreatedAt)
	}
}

// foreign is an unknown kind of record.
type foreign struct{}

func (foreign) Kind() structure.Kind { return 99 }

// value returns a value of the store.
func value(key string, change func(*structure.Value)) *structure.Value {
	v := &structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.StoreScope}, key)}
	if change != nil {
		change(v)
	}
	return v
}

func TestEncodeRefusesUnreadableRecords(t *testing.T) {
	usages := []structure.Usage{{Kind: structure.AssetUsage}}
	half := structure.SpanRef{Run: id[structure.RunID](1)}
	usage := func(u structure.Usage) *structure.Span {
		return &structure.Span{Ref: at(1, 1), Usages: []structure.Usage{u}}
	}
	tests := []struct {
		name   string
		record structure.Record
	}{
		{"no record", nil},
		{"unknown kind", foreign{}},
		{"span without usages", &structure.Span{Ref: at(1, 1)}},
		{"span without a place", &structure.Span{Usages: usages}},
		{"span without a place in its run", &structure.Span{Ref: half, Usages: usages}},
		{"usage without a kind", &structure.Span{Ref: at(1, 1), Usages: []structure.Usage{{}}}},
		{"usage of an unknown kind", &structure.Span{Ref: at(1, 1), Usages: []structure.Usage{{Kind: 5}}}},
		{"tree of negative size", &structure.Block{Tree: content.Root{Size: -1}}},
		{"tree of no size", &structure.Block{Tree: content.Root{Key: content.Key{1}}}},
		{"tree of impossible size", &structure.Block{Tree: content.Root{Key: content.Key{1}, Size: 1<<62 + 1}}},
		{"lookup without a source id", &structure.Span{Ref: at(1, 1), Usages: []structure.Usage{{Kind: structure.AssetUsage, Lookup: 1}}}},
		{"usage of an unknown piece", usage(structure.Usage{Kind: structure.MessageUsage, Piece: 6})},
		{"piece of an asset", usage(structure.Usage{Kind: structure.AssetUsage, Piece: 1})},
		{"form of a part", usage(structure.Usage{Kind: structure.PartUsage, Form: content.ID{1}})},
		{"opaque with a form", usage(structure.Usage{Kind: structure.MessageUsage, Form: content.ID{1}, Opaque: true})},
		{"extras without a form", usage(structure.Usage{Kind: structure.MessageUsage, Extras: [][]byte{{}}})},
		{"too many extras", usage(structure.Usage{Kind: structure.MessageUsage, Form: content.ID{1}, Extras: make([][]byte, structure.MostExtras+1)})},
		{"extras too large", usage(structure.Usage{Kind: structure.MessageUsage, Form: content.ID{1}, Extras: [][]byte{make([]byte, structure.MostExtraBytes), {1}}})},
		{"metadata twice", usage(structure.Usage{Kind: structure.MessageUsage, Metadata: []byte{}, MetadataContent: content.ID{1}})},
		{"deletion of nothing", &structure.Deletion{}},
		{"deletion of a run", &structure.Deletion{Subject: structure.KindRun}},
		{"tip without a place", &structure.Tip{Span: half}},
		{"base without a place", &structure.Context{Base: half}},
		{"context's tip without a place", &structure.Context{Tip: half}},
		{"parent without a place", &structure.Run{Parent: half}},
		{"incarnation of no thread", &structure.Run{Home: structure.Home{Incarnation: 1}}},
		{"span set after no place", &structure.SpanSet{Parent: half}},
		{"checkpoint of no place", &structure.Checkpoint{Span: half}},
		{"summary from no place", &structure.Summary{From: half}},
		{"summary to no place", &structure.Summary{To: half}},
		{"reflog from no place", &structure.Reflog{From: half}},
		{"reflog to no place", &structure.Reflog{To: half}},
		{"value of no scope", &structure.Value{ValueKey: valueKey(structure.Owner{}, "k")}},
		{"value of an unknown scope", &structure.Value{ValueKey: valueKey(structure.Owner{Scope: 6}, "k")}},
		{"value without a key", value("", nil)},
		{"value of a key that is too long", value(strings.Repeat("k", structure.MaxValueName+1), nil)},
		{"value of a key with NUL", value("a\x00b", nil)},
		{"value of a key that is not UTF-8", value("\xff", nil)},
		{"value of a user without a name", &structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.UserScope}, "k")}},
		{"value of a user with NUL", &structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.UserScope, Name: "a\x00"}, "k")}},
		{"value of the store with a name", &structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.StoreScope, Name: "a"}, "k")}},
		{"value of two owners", &structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.ContextScope, Thread: id[structure.ThreadID](1)}, "k")}},
		{"value that is empty", value("k", func(v *structure.Value) { v.JSON = []byte{} })},
		{"value that is too large", value("k", func(v *structure.Value) { v.JSON = make([]byte, structure.MaxInlineValue+1) })},
		{"value twice", value("k", func(v *structure.Value) { v.JSON, v.Content = []byte("1"), content.ID{1} })},
		{"value with the incarnation of no thread", value("k", func(v *structure.Value) { v.Incarnation = 1 })},
		{"value seen by no context", value("k", func(v *structure.Value) { v.Seen = at(1, 1) })},
		{"value seen at no place", &structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.ContextScope}, "k"), Seen: half}},
	}
	var enc structure.Encoder
	want, _, err := new(structure.Encoder).Encode(messageCommit())
	require.NoError(t, err)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			commit := messageCommit()
			commit.Records = append(commit.Records, tt.record)
			payload, offsets, err := enc.Encode(commit)
			require.ErrorIs(t, err, structure.ErrIncomplete)
			require.Nil(t, payload)
			require.Nil(t, offsets)

			payload, _, err = enc.Encode(messageCommit())
			require.NoError(t, err)
			require.Equal(t, want, payload, "the commit after a refused one")
		})
	}
	for _, r := range messageCommit().Records {
		_, err := structure.MarshalRecord(r)
		require.ErrorIs(t, err, structure.ErrIncomplete, "%v by itself", r.Kind())
		_, err = structure.UnmarshalRecord(r.Kind(), nil)
		require.Error(t, err, "%v by itself", r.Kind())
	}
}
