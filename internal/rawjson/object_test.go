package rawjson

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObject(t *testing.T) {
	var o, more Object
	require.Nil(t, o.Bytes())
	o.Join(&more)
	require.Nil(t, o.Bytes())
	more.Set("b", []byte(`1.0`))
	o.Join(&more)
	require.Equal(t, `{"b":1.0}`, string(o.Bytes()))
	for m := range Members([]byte(`{ "a\u0062" : [ 1 ] }`)) {
		o.Add(m)
	}
	o.SetText("none", "")
	o.SetText("<&\xff", "\xff")
	o.Join(&more)
	require.Equal(t, `{"b":1.0,"a\u0062":[ 1 ],"<&\ufffd":"\ufffd","b":1.0}`, string(o.Bytes()))
	require.Equal(t, `{"b":1.0}`, string(more.Bytes()), "building does not change what was joined")
	require.True(t, Valid(o.Bytes()))
}

func TestHas(t *testing.T) {
	require.True(t, Has([]byte(`{"a":1,"b":{"c":2},"a":3`), "a", "b"))
	require.False(t, Has([]byte(`{"a":1,"b":{"c":2}`), "a", "c"))
	require.False(t, Has([]byte(`[]`), "a"))
}

func TestFirst(t *testing.T) {
	require.Equal(t, `{"a":1}`, string(First([]byte(`[{"a":1},2`))))
	require.Nil(t, First([]byte(`[]`)))
	require.Nil(t, First([]byte(`{"a":1}`)))
}

func TestCompactJSON(t *testing.T) {
	require.Equal(t, `{"a":[1.0,"<"]}`, string(Compact([]byte("{ \"a\" :\n[1.0, \"<\"] }"))))
	require.Equal(t, `{x`, string(Compact([]byte(`{x`))))
}

// A member is read again from its part of the object.
func TestMemberOf(t *testing.T) {
	for _, object := range []string{`{"a":1}`, `{ "a" : [1, 2] , "b\u00fc":{"a":"}"} }`, "{\"\"\n:\tnull,\"x\": \"y\"}"} {
		n := 0
		for m := range Members([]byte(object)) {
			n++
			require.Equal(t, string(m.In([]byte(object))), string(PartAt([]byte(object), m.KeyAt)))
			require.Equal(t, string(m.Value), string(PartAt([]byte(object), m.At)))
			got := MemberOf(m.In([]byte(object)))
			require.Equal(t, m.Key, got.Key)
			require.Equal(t, string(m.Quoted), string(got.Quoted))
			require.Equal(t, string(m.Value), string(got.Value))
		}
		require.NotZero(t, n)
	}
	for at, e := range ElementsAt([]byte(`[1 , "a" ,{"b":[2]}, ["c" ] ]`)) {
		require.Equal(t, string(e), string(PartAt([]byte(`[1 , "a" ,{"b":[2]}, ["c" ] ]`), at)))
	}
	for cut := range `{"a" : [1]` { // a text that ends early
		PartAt([]byte(`{"a" : [1]`)[:cut+1], 0)
		PartAt([]byte(`{"a" : [1]`)[:cut+1], min(cut, 1))
	}
	MemberOf(nil)
	MemberOf([]byte(`"a`))
}
