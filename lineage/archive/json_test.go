package archive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
)

// values draws JSON with random formatting.
func values() *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](1.5),
		rapid.Custom(func(t *rapid.T) any {
			return rapid.StringOf(rapid.RuneFrom([]rune{'a', '"', '\\', '\n', '{', '}', '[', ']', ',', ':', 'é', '😀', 0, ' '})).Draw(t, "s")
		}),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"id", "role", `k"`, "x\\", "é", ""}), value(depth-1), 0, 4), func(v map[string]any) any { return v }),
		)
	}
	return value(3)
}

func encoded(t *rapid.T, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(rapid.Bool().Draw(t, "escapes"))
	if rapid.Bool().Draw(t, "indented") {
		e.SetIndent(" ", "\t")
	}
	require.NoError(t, e.Encode(v))
	return bytes.TrimSpace(b.Bytes())
}

// Members, elements and texts are read as by the standard library.
func TestReadingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := encoded(t, values().Draw(t, "value"))
		require.NoError(t, rawjson.Check(raw))
		require.Equal(t, len(raw), rawjson.ValueEnd(raw, 0))
		requireSameJSON(t, raw)
	})
}

func requireSameJSON(t require.TestingT, raw []byte) {
	switch {
	case rawjson.IsObject(raw):
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &want))
		var o rawjson.Object
		n := 0
		for m := range rawjson.Members(raw) {
			n++
			require.JSONEq(t, string(want[m.Key]), string(m.Value))
			o.Add(m)
			requireSameJSON(t, m.Value)
		}
		require.Equal(t, len(want), n)
		if n > 0 {
			require.JSONEq(t, string(raw), string(o.Bytes()))
		}
	case rawjson.IsArray(raw):
		var want []json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &want))
		n := 0
		for e := range rawjson.Elements(raw) {
			require.Equal(t, string(want[n]), string(e))
			n++
			requireSameJSON(t, e)
		}
		require.Len(t, want, n)
	case rawjson.IsString(raw):
		var want string
		require.NoError(t, json.Unmarshal(raw, &want))
		got, ok := rawjson.Text(raw)
		require.True(t, ok)
		require.Equal(t, want, got)
		body, mediaType := TextBody(raw)
		require.Equal(t, content.TypeText, mediaType)
		require.Equal(t, want, string(body))
	}
}

func TestHalfCharactersAreKeptAsTheyAreWritten(t *testing.T) {
	for raw, whole := range map[string]string{
		`"\ud83d\ude00"`: "😀", `"a\u00e9\n\t\/\"\\"`: "aé\n\t/\"\\", `"\ud83d"`: "", `"\ude00\ud83d"`: "", `"x\ud83dy"`: "", `"\ud83d\u0041"`: "",
	} {
		body, mediaType := TextBody([]byte(raw))
		if whole == "" {
			require.Equal(t, content.TypeJSON, mediaType)
			require.Equal(t, raw, string(body))
			require.Contains(t, rawjson.Str([]byte(raw)), "\uFFFD")
			continue
		}
		require.Equal(t, content.TypeText, mediaType)
		require.Equal(t, whole, string(body))
	}
}

// A stream yields the values that were written, however it is read.
func TestItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(values(), 0, 6).Draw(t, "values")
		var raws [][]byte
		for _, v := range want {
			raws = append(raws, encoded(t, v))
		}
		separator := rapid.SampledFrom([]string{"\n", " \n ", "\r\n"}).Draw(t, "separator")
		text := bytes.Join(raws, []byte(separator))
		if rapid.Bool().Draw(t, "array") || len(raws) > 0 && rawjson.IsArray(raws[0]) {
			text = []byte("[" + string(bytes.Join(raws, []byte(separator+","))) + "]")
		}
		var r io.Reader = bytes.NewReader(text)
		if rapid.Bool().Draw(t, "by bytes") {
			r = iotest.OneByteReader(r)
		}
		in := NewInput("x", r)
		in.reader = bufio.NewReaderSize(r, 16)
		var got []string
		for item, err := range in.Items(context.Background()) {
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(text[item.At.Offset:], item.Raw))
			got = append(got, string(item.Raw))
		}
		var as []string
		for _, raw := range raws {
			as = append(as, string(raw))
		}
		require.Equal(t, as, got)
	})
}

func TestLines(t *testing.T) {
	in := NewInput("x", strings.NewReader("one\n\n  two  \r\n"+strings.Repeat("long", 100_000)+"\nlast"))
	in.limits.Item = 300_000
	var got []string
	for item, err := range in.Lines(context.Background()) {
		if err != nil {
			var d *Damage
			require.ErrorAs(t, err, &d)
			require.ErrorIs(t, err, ErrTooLarge)
			require.EqualValues(t, 4, d.At.Line)
			continue
		}
		got = append(got, string(item.Raw))
	}
	require.Equal(t, []string{"one", "two", "last"}, got)
}

func TestParseTime(t *testing.T) {
	at := time.Date(2024, 5, 6, 7, 8, 9, 120_000_000, time.UTC)
	for _, raw := range []string{
		`"2024-05-06T07:08:09.12Z"`, `"2024-05-06T09:08:09.120+02:00"`, `1714979289.12`, `1714979289120`, `1714979289120000`, `1714979289120000000`,
		`"2024-05-06T07:08:09.120"`, `"2024-05-06 07:08:09.12"`, `"1714979289.12"`,
	} {
		require.Equal(t, at, ParseTime([]byte(raw)), raw)
	}
	for _, raw := range []string{``, `null`, `0`, `{}`, `"soon"`, `1e400`, `1e30`, `-1e300`, `"99999-01-01T00:00:00Z"`, `true`} {
		require.True(t, ParseTime([]byte(raw)).IsZero(), raw)
	}
}

func TestOrderOfTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "entries")
		var tr Tree
		ids := func(name string) string {
			return rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g"}).Draw(t, name)
		}
		messages := 0
		for range n {
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				tr.Skip(ids("void"), ids("parent"))
			} else {
				messages++
				tr.Add(Node{ID: ids("id"), Parent: ids("parent")}, nil, true)
			}
		}
		c := Conversation{Current: ids("current")}
		tr.Fill(&c)
		out := c.Nodes
		require.Len(t, out, messages, "every message is there, once")
		seen := make(map[string]bool)
		for _, node := range out {
			if !node.Root {
				require.True(t, seen[node.Parent], "after its parent")
			}
			if node.ID != "" {
				require.False(t, seen[node.ID])
				seen[node.ID] = true
			}
		}
	})
}

//test:norace
func TestDeepTreesDoNotRecurse(t *testing.T) {
	const n = 200_000
	var tr Tree
	for i := range n {
		tr.Add(Node{ID: fmt.Sprint("a", i), Parent: fmt.Sprint("a", (i+1)%n)}, nil, true) // a circle
	}
	require.Len(t, tr.order(""), n)
}

// jsonSeeds are values as archives have them.
var jsonSeeds = []string{
	`[{"conversation_id":"c","current_node":"b","mapping":{"r":{"message":null,"parent":null},"a":{"parent":"r","message":{"content":{"parts":["x"]}}}}}]`,
	"{\"sessionId\":\"s\",\"startTime\":\"2026-01-01T00:00:00Z\"}\n{\"id\":\"1\",\"type\":\"user\",\"content\":\"x\"}\n{\"$set\":{\"messages\":[{\"id\":1.5e3}]}}",
}

// The same values are accepted as by the standard library, except for depth.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range append(jsonSeeds, `-0.5e+10`, `01`, `1.`, `.5`, `1e`, `-`, `[1,]`, `{"a":1,}`, `{,}`, `[[]`, `{}}`, `{"a"}`, `nul`, `"\u12"`, `"\x"`,
		"\"\t\"", `""`, ` [ ] `, `{"":{}}`, "\"\x7f\xff\"", `truefalse`, `[true false]`, `"`, ``, ` `, `"12345678"`, `"1234567\"`, "\"1234567\x1f\"") {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := rawjson.Check(b)
		if errors.Is(err, ErrTooDeep) {
			return
		}
		require.Equal(t, json.Valid(b), err == nil, "%q: %v", b, err)
	})
}

// For any bytes there is no panic, and the items yielded are JSON.
func FuzzItems(f *testing.F) {
	for _, seed := range append(jsonSeeds, "[1,2,[3]] {} \"x\" 7", "]", "{", "[\"", "\"\\", "[[[[", "1 2", "\xef\xbb\xbf[]") {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := NewInput("x", bytes.NewReader(b))
		in.limits.Item = 1 << 10
		items := 0
		for item, err := range in.Items(context.Background()) {
			items++
			if err != nil {
				var d *Damage
				require.True(t, errors.As(err, &d), "%v", err)
				continue
			}
			require.True(t, json.Valid(item.Raw))
			require.LessOrEqual(t, len(item.Raw), 1<<10)
		}
		require.LessOrEqual(t, items, len(b)+1)
	})
}
