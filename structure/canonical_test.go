package structure_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// requireOneForm requires a payload to be refused with a known error, or to be
// the only form of its commit, apart from two exceptions of the decoder. These
// become shorter when encoded again, and occur only in blocks and spans.
func requireOneForm(t require.TestingT, payload []byte) {
	commit, err := structure.DecodeCommit(payload)
	if err != nil {
		require.Nil(t, commit)
		if !errors.Is(err, structure.ErrMalformed) {
			if !errors.Is(err, structure.ErrOldVersion) {
				require.ErrorIs(t, err, structure.ErrUnknownVersion)
			}
		}
		return
	}
	again, offsets, err := new(structure.Encoder).Encode(commit)
	require.NoError(t, err)
	if bytes.Equal(payload, again) {
		return
	}
	require.LessOrEqual(t, len(again), len(payload))
	d, err := structure.NewDecoder(payload)
	require.NoError(t, err)
	for i, start := range offsets {
		offset, r, err := d.Next()
		require.NoError(t, err)
		if k := r.Kind(); k != structure.KindBlock && k != structure.KindSpan {
			size := structure.RecordSize(again[start:])
			require.Equal(t, again[start:start+size], payload[offset:offset+structure.RecordSize(payload[offset:])], "record %d, %v", i, k)
		}
	}
	third, err := structure.DecodeCommit(again)
	require.NoError(t, err)
	require.Equal(t, commit, third)
}

func TestFlippedBytesAreDetected(t *testing.T) {
	payload := encode(t, sampleCommit())
	for i := range payload {
		for bit := range 8 {
			payload[i] ^= 1 << bit
			requireOneForm(t, payload)
			payload[i] ^= 1 << bit
		}
	}
}

func TestMutatedCommitsAreDetected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload, _, err := new(structure.Encoder).Encode(structuretest.Commits().Draw(t, "commit"))
		require.NoError(t, err)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			payload[rapid.IntRange(0, len(payload)-1).Draw(t, "byte")] = rapid.Byte().Draw(t, "value")
		}
		requireOneForm(t, payload)
	})
}

// A payload cut between two records is a shorter commit; only its frame can
// detect that. Any other cut is refused.
func TestTruncatedCommits(t *testing.T) {
	commit := sampleCommit()
	payload, offsets, err := new(structure.Encoder).Encode(commit)
	require.NoError(t, err)
	whole := map[int]int{}
	for i, offset := range offsets {
		whole[offset] = i
	}
	for n := range payload {
		got, err := structure.DecodeCommit(payload[:n:n])
		if records, ok := whole[n]; ok {
			require.NoError(t, err)
			require.Len(t, got.Records, records)
			continue
		}
		require.ErrorIs(t, err, structure.ErrMalformed, "%d bytes", n)
		require.Nil(t, got)
	}
}

func TestTrailingBytes(t *testing.T) {
	payload := encode(t, sampleCommit())
	for b := range 256 {
		_, err := structure.DecodeCommit(append(payload[:len(payload):len(payload)], byte(b)))
		require.ErrorIs(t, err, structure.ErrMalformed, "%#x", b)
	}
	for _, r := range sampleCommit().Records {
		b, err := structure.MarshalRecord(r)
		if err != nil {
			continue // blocks, chunks, spans and tips
		}
		longer := append([]byte{4, 0, byte(r.Kind()), byte(len(b) + 1)}, append(b, 0)...)
		if len(b) < 127 {
			_, err = structure.DecodeCommit(longer)
			require.ErrorIs(t, err, structure.ErrMalformed, "%v", r.Kind())
		}
	}
}

// A block can be read without its commit: with any damaged byte it is refused or
// recognizably another block.
func TestFlippedBytesOfAnObject(t *testing.T) {
	for _, want := range sampleCommit().Records {
		if k := want.Kind(); k != structure.KindBlock && k != structure.KindChunk {
			continue
		}
		payload, offsets, err := new(structure.Encoder).Encode(&structure.Commit{Records: []structure.Record{want}})
		require.NoError(t, err)
		object := payload[offsets[0]:]
		for i := range object {
			for flip := 1; flip < 256; flip++ {
				object[i] ^= byte(flip)
				requireNotMistaken(t, want, object)
				object[i] ^= byte(flip)
			}
			_, err := structure.DecodeObject(object[:i])
			require.ErrorIs(t, err, structure.ErrMalformed)
		}
	}
}

func requireNotMistaken(t *testing.T, want structure.Record, object []byte) {
	got, err := structure.DecodeObject(object)
	if err != nil {
		require.Nil(t, got)
		return
	}
	switch got := got.(type) {
	case *structure.Block:
		if b, ok := want.(*structure.Block); ok {
			require.NotEqual(t, b.ID, got.ID)
		}
	case *structure.Chunk:
		if c, ok := want.(*structure.Chunk); ok {
			require.NotEqual(t, c.Key, got.Key)
		}
	}
}

func TestRefusedForms(t *testing.T) {
	const largest = 1 << 62
	ref := append([]byte{1}, bytes.Repeat([]byte{1}, 16)...) // at(1, 1)
	zeros := make([]byte, 32)
	one := join([]byte{1}, zeros[1:])
	plain := append([]byte{0}, ref...) // a span's flags and place
	// stating is the start of a span that states ids.
	stating := func(ids ...[]byte) []byte { return join([]byte{4}, ref, []byte{byte(len(ids))}, join(ids...)) }
	span := stating(zeros)
	usage := func(flags uint64, rest ...byte) []byte { // of an asset with a short name
		asset := append(binary.AppendUvarint([]byte{3}, flags), 0, 1, 'f', 0) // kind, flags, content, name, time
		return join(span, asset, rest)
	}
	after := func(b []byte) []byte { return b[len(plain):] } // flags and place
	message := func(flags uint64, rest ...byte) []byte {     // of a user
		return join(binary.AppendUvarint([]byte{1}, flags), []byte{0, 1, 0}, rest)
	}
	part := []byte{4, 0, 0, 0}
	several := func(states []byte, n byte, usages ...byte) []byte { // flags and count
		return join([]byte{states[0] | 8}, states[1:], []byte{n}, usages)
	}
	// formed is a message with a form, whose ids the span states.
	formed := func(flags uint64, rest ...byte) []byte {
		return join(stating(zeros, one), binary.AppendUvarint([]byte{1}, 16|flags), []byte{1, 1, 0, 0}, rest)
	}
	tests := []struct {
		name    string
		payload []byte
		err     error
	}{
		{"nothing", nil, structure.ErrMalformed},
		{"no time", []byte{4}, structure.ErrMalformed},
		{"version 0", []byte{0, 0}, structure.ErrOldVersion},
		{"the version before", []byte{2, 0}, structure.ErrOldVersion},
		{"the next version", []byte{5, 0}, structure.ErrUnknownVersion},
		{"the next version alone", []byte{5}, structure.ErrUnknownVersion},
		{"time in a longer form", []byte{4, 0x80, 0}, structure.ErrMalformed},
		{"record kind 0", record(0, nil), structure.ErrUnknownVersion},
		{"the next record kind", record(17, nil), structure.ErrUnknownVersion},
		{"length in a longer form", []byte{4, 0, 2, 0x80, 0}, structure.ErrMalformed},
		{"length beyond the payload", []byte{4, 0, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, structure.ErrMalformed},
		{"unknown span flags", record(structure.KindSpan, join([]byte{20}, usage(0)[1:])), structure.ErrMalformed},
		{"no usage", record(structure.KindSpan, span), structure.ErrMalformed},
		{"none of several usages", record(structure.KindSpan, several(plain, 0)), structure.ErrMalformed},
		{"one of several usages", record(structure.KindSpan, several(span, 1, part...)), structure.ErrMalformed},
		{"more usages than bytes", record(structure.KindSpan, several(span, 0xff, join(bytes.Repeat([]byte{0xff}, 8), []byte{1}, part)...)), structure.ErrMalformed},
		{"first span follows", record(structure.KindSpan, join([]byte{6}, after(usage(0)))), structure.ErrMalformed},
		{"span without a place", record(structure.KindSpan, join([]byte{4, 0}, after(usage(0)))), structure.ErrMalformed},
		{"zero span set", record(structure.KindSpan, join([]byte{5}, ref, zeros[:16], after(usage(0)))), structure.ErrMalformed},
		{"states no ids", record(structure.KindSpan, join([]byte{4}, ref, []byte{0}, part)), structure.ErrMalformed},
		{"states more ids than bytes", record(structure.KindSpan, join([]byte{4}, ref, bytes.Repeat([]byte{0xff}, 9), []byte{1}, zeros, part)), structure.ErrMalformed},
		{"states an id cut short", record(structure.KindSpan, stating(zeros)[:40]), structure.ErrMalformed},
		{"states more than it uses", record(structure.KindSpan, join(stating(zeros, one), []byte{4, 0, 1, 0})), structure.ErrMalformed},
		{"uses the last first", record(structure.KindSpan, several(stating(zeros, one), 2, 4, 0, 0, 0, 4, 0, 1, 0)), structure.ErrMalformed},
		{"unknown kind of usage", record(structure.KindSpan, join(span, []byte{5, 0, 0, 0, 0})), structure.ErrMalformed},
		{"unique without a source id", record(structure.KindSpan, usage(2)), structure.ErrMalformed},
		{"unknown usage flags", record(structure.KindSpan, usage(4096)), structure.ErrMalformed},
		{"usage flags in a longer form", record(structure.KindSpan, join(span, []byte{3, 0x80, 0, 0, 1, 'f', 0})), structure.ErrMalformed},
		{"version without a source id", record(structure.KindSpan, usage(512, 2)), structure.ErrMalformed},
		{"unique and a version", record(structure.KindSpan, usage(1|2|512, 1, 's', 2)), structure.ErrMalformed},
		{"version 1", record(structure.KindSpan, usage(1|512, 1, 's', 1)), structure.ErrMalformed},
		{"thread that keeps twice", record(structure.KindThread, join(make([]byte, 37), []byte{2, 0, 0})), structure.ErrMalformed},
		{"content of no name", record(structure.KindSpan, join(plain, part)), structure.ErrMalformed},
		{"content before the first name", record(structure.KindSpan, several(span, 2, 4, 0, 0, 0, 4, 0, 1, 0)), structure.ErrMalformed},
		{"content far before", record(structure.KindSpan, several(span, 2, join([]byte{4, 0, 0, 0, 4, 0}, bytes.Repeat([]byte{0xff}, 9), []byte{1, 0})...)), structure.ErrMalformed},
		{"unknown role", record(structure.KindSpan, join(span, []byte{1, 0, 0, 200, 0})), structure.ErrUnknownVersion},
		{"name of an asset", record(structure.KindSpan, usage(32, 1, 'n')), structure.ErrMalformed},
		{"empty name", record(structure.KindSpan, join(span, message(32, 0))), structure.ErrMalformed},
		{"empty media type", record(structure.KindSpan, usage(256, 0, 0)), structure.ErrMalformed},
		{"unknown media type", record(structure.KindSpan, usage(256, 255)), structure.ErrUnknownVersion},
		{"unknown attribution flags", record(structure.KindSpan, usage(8, 8)), structure.ErrMalformed},
		{"attribution to nobody", record(structure.KindSpan, usage(8, 0)), structure.ErrMalformed},
		{"empty user", record(structure.KindSpan, usage(8, 1, 0)), structure.ErrMalformed},
		{"empty model", record(structure.KindSpan, usage(8, 2, 0)), structure.ErrMalformed},
		{"empty source", record(structure.KindSpan, usage(8, 4, 0)), structure.ErrMalformed},
		{"zero parent content", record(structure.KindSpan, usage(128, append([]byte{1}, zeros...)...)), structure.ErrMalformed},
		{"empty source id", record(structure.KindSpan, usage(1, 0)), structure.ErrMalformed},
		{"form of an asset", record(structure.KindSpan, usage(16, 0)), structure.ErrMalformed},
		{"opaque asset", record(structure.KindSpan, usage(1024)), structure.ErrMalformed},
		{"piece of an asset", record(structure.KindSpan, join(span, []byte{0x13, 0, 0, 1, 'f', 0})), structure.ErrMalformed},
		{"unknown piece", record(structure.KindSpan, join(span, []byte{0x61, 0, 0, 1, 0})), structure.ErrMalformed},
		{"extras without a form", record(structure.KindSpan, join(span, message(64, 1, 0))), structure.ErrMalformed},
		{"form that is absent", record(structure.KindSpan, join(stating(one, zeros), []byte{1, 16, 1, 1, 0, 0})), structure.ErrMalformed},
		{"form of no name", record(structure.KindSpan, join(span, message(16, 1))), structure.ErrMalformed},
		{"opaque with a form", record(structure.KindSpan, formed(1024)), structure.ErrMalformed},
		{"no extras", record(structure.KindSpan, formed(64, 0)), structure.ErrMalformed},
		{"more extras than bytes", record(structure.KindSpan, formed(64, 9, 0)), structure.ErrMalformed},
		{"extra of no source id", record(structure.KindSpan, formed(64, 1, 0)), structure.ErrMalformed},
		{"extra that is the source id", record(structure.KindSpan, join(stating(zeros, one), []byte{1, 81, 1, 1, 0, 1, 's', 0, 1, 4, '"', 's', '"'})), structure.ErrMalformed},
		{"metadata twice", record(structure.KindSpan, join(stating(zeros, one), []byte{3, 0x84, 0x10, 1, 1, 'f', 0, 0, 0})), structure.ErrMalformed},
		{"metadata that is absent", record(structure.KindSpan, usage(2048, 0)), structure.ErrMalformed},
		{"tip of no span", record(structure.KindTip, append(zeros[:16:16], 1)), structure.ErrMalformed},
		{"unknown tip form", record(structure.KindTip, append(zeros[:16:16], 2)), structure.ErrMalformed},
		{"unknown body form", record(structure.KindBlock, []byte{1, 0, 0, 3, 0, 0, 0, 0}), structure.ErrMalformed},
		{"block of a wrong checksum", record(structure.KindBlock, []byte{1, 0, 0, 0, 1, 2, 3, 4}), structure.ErrMalformed},
		{"tree of no size", record(structure.KindBlock, tree(0)), structure.ErrMalformed},
		{"tree of impossible size", record(structure.KindBlock, tree(largest+1)), structure.ErrMalformed},
		{"gone body of no size", record(structure.KindBlock, gone(0)), structure.ErrMalformed},
		{"gone body of impossible size", record(structure.KindBlock, gone(largest+1)), structure.ErrMalformed},
		{"deletion of a run", record(structure.KindDeletion, append(zeros[:17:17], 0)), structure.ErrMalformed},
		{"value of no scope", record(structure.KindValue, []byte{0, 1, 'k', 0, 0}), structure.ErrMalformed},
		{"value of an unknown scope", record(structure.KindValue, []byte{6, 1, 'k', 0, 0}), structure.ErrMalformed},
		{"value without a key", record(structure.KindValue, []byte{1, 0, 0, 0}), structure.ErrMalformed},
		{"value of a key with NUL", record(structure.KindValue, []byte{1, 1, 0, 0, 0}), structure.ErrMalformed},
		{"value of a long key", record(structure.KindValue, join([]byte{1, 0x81, 4}, bytes.Repeat([]byte{'k'}, structure.MaxValueName+1), []byte{0, 0})), structure.ErrMalformed},
		{"value of a key longer than all", record(structure.KindValue, join([]byte{1}, bytes.Repeat([]byte{0xff}, 9), []byte{1, 0, 0})), structure.ErrMalformed},
		{"value of an application without a name", record(structure.KindValue, []byte{2, 0, 1, 'k', 0, 0}), structure.ErrMalformed},
		{"value of an unknown form", record(structure.KindValue, []byte{1, 1, 'k', 3, 0}), structure.ErrMalformed},
		{"value without its JSON", record(structure.KindValue, []byte{1, 1, 'k', 1, 0, 0}), structure.ErrMalformed},
		{"value of empty JSON", record(structure.KindValue, []byte{1, 1, 'k', 1, 1, 0}), structure.ErrMalformed},
		{"value longer than all", record(structure.KindValue, join([]byte{1, 1, 'k', 1}, bytes.Repeat([]byte{0xff}, 9), []byte{1, 0})), structure.ErrMalformed},
		{"value that is too large", record(structure.KindValue, join([]byte{1, 1, 'k', 1, 0x82, 0x80, 4}, make([]byte, structure.MaxInlineValue+1), []byte{0})), structure.ErrMalformed},
		{"value of absent content", record(structure.KindValue, join([]byte{1, 1, 'k', 2}, zeros, []byte{0})), structure.ErrMalformed},
		{"more parts than bytes", record(structure.KindSummary, join(make([]byte, 67), bytes.Repeat([]byte{0xff}, 9), []byte{1})), structure.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := structure.DecodeCommit(tt.payload)
			require.ErrorIs(t, err, tt.err)
			require.Nil(t, got)

			d, err := structure.NewDecoder(tt.payload)
			for err == nil {
				_, _, err = d.Next()
			}
			require.False(t, d.More(), "a decoder stops after an error")
		})
	}
	// The variants are derived from forms that are accepted.
	for name, payload := range map[string][]byte{
		"span":       record(structure.KindSpan, usage(0)),
		"span set":   record(structure.KindSpan, join([]byte{5}, ref, ref[1:], after(usage(0)))),
		"unique":     record(structure.KindSpan, usage(1|2, 1, 's')),
		"version":    record(structure.KindSpan, usage(1|512, 1, 's', 2)),
		"thread":     record(structure.KindThread, join(make([]byte, 37), []byte{1, 0, 0, 0})),
		"media type": record(structure.KindSpan, usage(256, 1)),
		"metadata":   record(structure.KindSpan, join(stating(zeros, one), []byte{3, 0x80, 0x10, 1, 1, 'f', 0, 0})),
		"form":       record(structure.KindSpan, formed(64, 1, 1)),
		"source":     record(structure.KindSpan, join(stating(zeros, one), []byte{1, 81, 1, 1, 0, 1, 's', 0, 1, 0})),
		"opaque":     record(structure.KindSpan, join(span, message(1024))),
		"parts":      record(structure.KindSpan, several(span, 3, bytes.Repeat(part, 3)...)),
		"ids":        record(structure.KindSpan, several(stating(zeros, one), 3, 4, 0, 1, 0, 4, 0, 1, 0, 4, 0, 0, 0)),
		"piece":      record(structure.KindSpan, join(span, []byte{0x54, 0, 0, 0})),
		"origin":     record(structure.KindSpan, usage(128, 2)),
		"deleted":    record(structure.KindValue, []byte{1, 1, 'k', 0, 0}),
		"value":      record(structure.KindValue, []byte{1, 1, 'k', 1, 2, '1', 0}),
		"long value": record(structure.KindValue, join([]byte{1, 1, 'k', 1, 0x81, 0x80, 4}, make([]byte, structure.MaxInlineValue), []byte{0})),
		"by":         record(structure.KindSpan, usage(8, 1, 1, 'u')),
		"tree":       record(structure.KindBlock, tree(largest)),
		"gone":       record(structure.KindBlock, gone(largest)),
	} {
		_, err := structure.DecodeCommit(payload)
		require.NoError(t, err, name)
	}
}

// If a shorter form exists, the longer one is refused.
func TestRefusedLongForms(t *testing.T) {
	asset := join([]byte{1}, make([]byte, 32), []byte{3, 0, 0, 0, 0}) // and the id stated by its span
	first := record(structure.KindSpan, join([]byte{4, 1}, make([]byte, 16), asset))
	next := record(structure.KindSpan, join([]byte{4, 2}, make([]byte, 16), asset))[2:]
	tip := record(structure.KindTip, join(make([]byte, 16), []byte{0, 1}, make([]byte, 16)))[2:]
	for name, second := range map[string][]byte{"span": next, "tip": tip} {
		_, err := structure.DecodeCommit(join(first, second))
		require.ErrorIs(t, err, structure.ErrMalformed, name)
	}
	_, err := structure.DecodeCommit(join([]byte{4, 0}, next, tip))
	require.NoError(t, err)
}

// An older encoder may not know the number of a name, or search less far for a
// block: its output is accepted.
func TestAcceptedLongForms(t *testing.T) {
	b := text("a")
	payload, _, err := new(structure.Encoder).Encode(&structure.Commit{Records: []structure.Record{b}})
	require.NoError(t, err)
	usages := join([]byte{1}, b.ID[:], []byte{1, 0x80, 2, 0},
		[]byte{0, 4}, []byte("user"), []byte{0}, []byte{0, 10}, []byte(content.TypeText))
	payload = append(payload, record(structure.KindSpan, join([]byte{4, 1}, make([]byte, 16), usages))[2:]...)

	got, err := structure.DecodeCommit(payload)
	require.NoError(t, err)
	require.Equal(t, []structure.Usage{{
		Kind: structure.MessageUsage, Content: b.ID, Role: "user", Type: content.TypeText, CreatedAt: got.Time,
	}}, got.Records[1].(*structure.Span).Usages)
	shorter := encode(t, got)
	require.Less(t, len(shorter), len(payload))
	requireOneForm(t, payload)
}

func TestNoSpanFollowsTheLastPlace(t *testing.T) {
	usages := []structure.Usage{{Kind: structure.AssetUsage}}
	payload := encode(t, &structure.Commit{Records: []structure.Record{
		&structure.Span{Ref: structure.SpanRef{Seq: math.MaxUint64}, Usages: usages},
	}})
	follower := []byte{2, 3, 0, 0, 0, 0}
	_, err := structure.DecodeCommit(append(payload, record(structure.KindSpan, follower)[2:]...))
	require.ErrorIs(t, err, structure.ErrMalformed)
}

// A reused decoder has no state of the payload before.
func TestDecoderForgets(t *testing.T) {
	var d structure.Decoder
	for name, body := range map[string][]byte{
		"names":      join([]byte{0, 1}, make([]byte, 16), []byte{3, 0, 0, 0, 0}),
		"span":       join([]byte{6, 1}, make([]byte, 32), []byte{3, 0, 0, 0, 0}),
		"tip's span": nil,
	} {
		payload := record(structure.KindSpan, body)
		if body == nil {
			payload = record(structure.KindTip, append(make([]byte, 16), 1))
		}
		require.NoError(t, decodeAll(&d, encode(t, messageCommit())))
		require.ErrorIs(t, decodeAll(&d, payload), structure.ErrMalformed, name)
		require.ErrorIs(t, d.Reset([]byte{5}), structure.ErrUnknownVersion)
		require.NoError(t, decodeAll(&d, encode(t, messageCommit())), "after an error")
	}
}

// tree returns the body of the record of a chunked block.
func tree(size uint64) []byte {
	head := join([]byte{1, 0, 0, 1}, make([]byte, 65))
	head = binary.AppendUvarint(head, size)
	return binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))
}

// gone returns a block of which only the description is left.
func gone(size uint64) []byte {
	head := binary.AppendUvarint(join([]byte{1, 0, 0, 2}, make([]byte, 32)), size)
	return binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))
}

// record returns a commit of time 0 with a single record.
func record(kind structure.Kind, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{4, 0, byte(kind)}, uint64(len(body))), body...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func encode(t require.TestingT, c *structure.Commit) []byte {
	payload, _, err := new(structure.Encoder).Encode(c)
	require.NoError(t, err)
	return payload
}
