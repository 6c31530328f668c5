package structure_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure"
)

func FuzzDecodeCommit(f *testing.F) {
	for _, c := range []*structure.Commit{{}, messageCommit(), sampleCommit()} {
		f.Add(encode(f, c))
	}
	for _, r := range sampleCommit().Records {
		f.Add(encode(f, &structure.Commit{Time: sampleTime, Records: []structure.Record{r}}))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		requireOneForm(t, payload)
		if _, err := structure.DecodeCommit(payload); err == nil {
			readAll(t, payload, func(n int) []int { return everyOne(n) })
		} else if l := new(structure.Layout); l.Reset(payload) == nil {
			var r structure.Reading
			for i := range l.Len() { // it must end, whatever its contents
				_ = l.Read(i, true, &r)
			}
		}
	})
}

func everyOne(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func FuzzDecodeObject(f *testing.F) {
	payload, offsets, err := new(structure.Encoder).Encode(sampleCommit())
	require.NoError(f, err)
	for _, offset := range offsets {
		f.Add(payload[offset : offset+structure.RecordSize(payload[offset:])])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := structure.DecodeObject(b)
		if err != nil {
			require.Nil(t, r)
			return
		}
		require.Equal(t, len(b), structure.RecordSize(b))
		again, offsets, err := new(structure.Encoder).Encode(&structure.Commit{Records: []structure.Record{r}})
		require.NoError(t, err)
		require.LessOrEqual(t, len(again)-offsets[0], len(b))
		got, err := structure.DecodeObject(again[offsets[0]:])
		require.NoError(t, err)
		require.Equal(t, r, got)
	})
}

func FuzzUnmarshalRecord(f *testing.F) {
	for _, r := range slices.Concat(samplePlain(), sampleValues(), sampleRemnants()) {
		b, err := structure.MarshalRecord(r)
		require.NoError(f, err)
		f.Add(byte(r.Kind()), b)
	}
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		r, err := structure.UnmarshalRecord(structure.Kind(kind), b)
		if err != nil {
			require.Nil(t, r)
			return
		}
		again, err := structure.MarshalRecord(r)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

func FuzzParseSpanRef(f *testing.F) {
	for _, s := range []string{"-", "", "/", "/1", at(1, 1).String(), at(255, 1<<63).String(), at(1, 1).Run.String() + "/01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := structure.ParseSpanRef(s)
		if err != nil {
			require.ErrorIs(t, err, structure.ErrBadID)
			require.Zero(t, ref)
			require.Less(t, len(err.Error()), 500)
			return
		}
		require.Equal(t, strings.ToLower(s), ref.String())
	})
}

func FuzzParseID(f *testing.F) {
	canonical := id[structure.RunID](0xab).String()
	for _, s := range []string{"", canonical, strings.ToUpper(canonical), "{" + canonical + "}", "urn:uuid:" + canonical} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := structure.ParseID[structure.RunID](s)
		if err != nil {
			require.ErrorIs(t, err, structure.ErrBadID)
			require.Zero(t, id)
			require.Less(t, len(err.Error()), 300)
			return
		}
		require.Equal(t, strings.ToLower(s), id.String())
	})
}
