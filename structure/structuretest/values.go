// Package structuretest generates structural records for property tests.
//
// The records are well formed and cover every field and form, but they are not
// consistent: they refer to threads, runs and blocks that do not exist. A generated
// record equals the one decoded from its binary form.
package structuretest

import (
	"bytes"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// IDs generates ids that are not zero. A few ids are frequent, so that records
// share them.
func IDs[T ~[16]byte]() *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) (id T) {
		if rapid.Bool().Draw(t, "frequent id") {
			id[15] = rapid.ByteRange(1, 4).Draw(t, "id")
			return id
		}
		copy(id[:], rapid.SliceOfN(rapid.Byte(), len(id), len(id)).Draw(t, "id"))
		id[0] |= 1
		return id
	})
}

// OptionalIDs generates ids, including the zero id.
func OptionalIDs[T ~[16]byte]() *rapid.Generator[T] {
	return rapid.OneOf(rapid.Just(T{}), IDs[T]())
}

// SpanRefs generates addresses of spans.
func SpanRefs() *rapid.Generator[structure.SpanRef] {
	return rapid.Custom(func(t *rapid.T) structure.SpanRef {
		return structure.SpanRef{Run: OptionalIDs[structure.RunID]().Draw(t, "run"), Seq: places().Draw(t, "place")}
	})
}

// OptionalSpanRefs generates addresses of spans, including the empty position.
func OptionalSpanRefs() *rapid.Generator[structure.SpanRef] {
	return rapid.OneOf(rapid.Just(structure.SpanRef{}), SpanRefs())
}

func places() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(1, 5), rapid.Uint64Range(math.MaxUint64-1, math.MaxUint64), rapid.Uint64Range(1, math.MaxUint64))
}

// ContentIDs generates ids of content, including the zero id.
func ContentIDs() *rapid.Generator[content.ID] {
	return rapid.Custom(func(t *rapid.T) content.ID {
		if rapid.Bool().Draw(t, "absent") {
			return content.ID{}
		}
		return content.Sum(ByteStrings().Draw(t, "content"))
	})
}

// Times generates times as records store them: in milliseconds and UTC, including
// the zero time and times before 1970.
func Times() *rapid.Generator[time.Time] {
	return rapid.OneOf(
		rapid.Just(time.Time{}),
		rapid.Just(time.UnixMilli(0).UTC()),
		rapid.Map(rapid.Int64Range(1<<40, 1<<41), fromMillis),
		rapid.Map(rapid.Int64(), fromMillis),
	)
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Texts generates strings: empty, of any script, invalid UTF-8, and long ones.
func Texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "main", "user", "text/plain", "naïve 雪 🧊 \u202e", "\x00", "\xff\xfe"}),
		rapid.StringN(0, 12, -1),
		rapid.Map(ByteStrings(), func(b []byte) string { return string(b) }),
	)
}

// ByteStrings generates bytes that are not nil, from none to some hundred thousand.
func ByteStrings() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		pattern := append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")...)
		return bytes.Repeat(pattern, rapid.SampledFrom([]int{1, 1, 1, 1, 1, 20, 300, 20_000}).Draw(t, "times"))
	})
}

// OptionalByteStrings generates bytes, including nil.
func OptionalByteStrings() *rapid.Generator[[]byte] {
	return rapid.OneOf(rapid.Just([]byte(nil)), ByteStrings())
}

// MediaTypes generates media types: known, unknown and empty.
func MediaTypes() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{content.TypeText, content.TypeJSON, content.TypePNG, content.TypePDF, "application/x-unknown"}), Texts(),
	)
}

// BlockOrigins generates origins of blocks.
func BlockOrigins() *rapid.Generator[content.BlockOrigin] {
	return rapid.Custom(func(t *rapid.T) content.BlockOrigin {
		return content.BlockOrigin{
			Kind:     content.OriginKind(rapid.ByteRange(0, 127).Draw(t, "origin kind")),
			ParentID: ContentIDs().Draw(t, "parent content"),
		}
	})
}

// Attributions generates attributions.
func Attributions() *rapid.Generator[content.Attribution] {
	return rapid.Custom(func(t *rapid.T) content.Attribution {
		return content.Attribution{
			UserID:   Texts().Draw(t, "user"),
			ModelID:  Texts().Draw(t, "model"),
			SourceID: Texts().Draw(t, "source"),
		}
	})
}
