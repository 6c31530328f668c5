package archives

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// upTo allows for so many values.
func upTo(values int) *allowance { return &allowance{values: values, objects: maxValues} }

func TestUnpack(t *testing.T) {
	for name, c := range map[string]struct {
		packed string
		want   string
	}{
		"small numbers": {"\x94\x00\x7f\xff\xe0", `[0,127,-1,-32]`},
		"numbers":       {"\x98\xcc\xff\xcd\xff\xff\xce\xff\xff\xff\xff\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\xd3\x80\x00\x00\x00\x00\x00\x00\x00", `[255,65535,4294967295,18446744073709551615,-128,-32768,-2147483648,-9223372036854775808]`},
		"floats":        {"\x93\xca\x3f\xc0\x00\x00\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", `[1.5,1.5,"+Inf"]`},
		"texts":         {"\x92\xa2hi\xd9\x02\xff\xfe", `["hi","` + "\uFFFD" + `"]`},
		"objects":       {"\x82\xa1a\xc3\x01\xc0", `{"a":true,"1":null}`},
		"bytes":         {"\xc4\x01\x05", `{"__bytes__":"BQ=="}`},
		"time":          {"\xd6\xff\x00\x00\x00\x01", `"1970-01-01T00:00:01Z"`},
		"class":         {"\xc7\x0b\x00\x94\xa1m\xa1C\x81\xa1x\x05\xa1f", `{"__class__":"m.C","x":5}`},
		"argument":      {"\xd7\x00\x93\xa1m\xa1C\xa1x\xc0", `{"__class__":"m.C","value":"x"}`},
		"other":         {"\xd4\x63\x01", `{"__class__":"msgpack.extension 99","value":{"__bytes__":"AQ=="}}`},
	} {
		v, err := unpack(upTo(maxValues), []byte(c.packed))
		require.NoError(t, err, name)
		require.Equal(t, c.want, string(appendJSON(nil, v)), name)
	}
	for _, bad := range []string{
		"", "\xc1", "\x81", "\xa5abc", "\xdd\xff\xff\xff\xff", "\xdf\x7f\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x05",
		"\xd4\x05\xc0", "\xd5\x05\x92\xa1", "\x00\x00",
	} {
		_, err := unpack(upTo(maxValues), []byte(bad))
		require.ErrorIs(t, err, errPacked, "%q", bad)
	}
}

// A value takes more memory than its bytes: the number of values is limited, for any nesting.
func TestTooManyValues(t *testing.T) {
	many := "\xdc\x01\x00" + strings.Repeat("\xc0", 256)
	packed := []byte("\xc8\x01\x08\x05\x93\xa1m\xa1C" + many)
	for _, b := range [][]byte{[]byte(many), packed} {
		_, err := unpack(upTo(300), b)
		require.NoError(t, err)
		_, err = unpack(upTo(200), b)
		require.ErrorIs(t, err, errTooMany)
	}
	list := []byte("[[" + strings.Repeat("1,", 150) + "1],{" + strings.Repeat(`"a":1,`, 50) + `"a":1}]`)
	_, err := decodeJSON(upTo(300), list)
	require.NoError(t, err)
	_, err = decodeJSON(upTo(200), list)
	require.ErrorIs(t, err, errTooMany)
}

// Unpacked values are valid JSON, and apparent messages are valid.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\x92\xa2hi\xd9\x02\xff\xfe"))
	f.Add([]byte("\xc7\x20\x05\x94\xa1m\xacHumanMessage\x82\xa7content\xa2hi\xa2id\xa11\xa0"))
	f.Add([]byte("\xdf\x7f\xff\xff\xff"))
	f.Add([]byte("\x92\xa0\xa500000")) // a message of nobody
	f.Add([]byte("\x91\x91\x91\x91\x91\x91\xc0"))
	f.Add([]byte("\x83\xa4type\xa2ai\xa7content\x91\xc0\xaatool_calls\x91\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := unpack(upTo(maxValues), b)
		if err != nil {
			require.ErrorIs(t, err, errPacked)
			return
		}
		packed := appendJSON(nil, v)
		require.True(t, json.Valid(packed), "%q", packed)
		if n, ok := messageNode(v); ok {
			require.NotEmpty(t, n.Role)
			require.True(t, n.Metadata == nil || json.Valid(n.Metadata))
			require.True(t, n.Type != "application/json" || json.Valid(n.Body))
		}
		again, err := decodeJSON(upTo(maxValues), packed)
		if errors.Is(err, errPacked) {
			return // objects of classes take two levels
		}
		require.NoError(t, err)
		require.True(t, json.Valid(appendJSON(nil, again)))
	})
}
