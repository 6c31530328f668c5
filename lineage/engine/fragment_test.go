package engine_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/engine"
)

// feature: fragment/guards
func TestGuards(t *testing.T) {
	require.True(t, engine.IsFragment(engine.Hint("x")))
	require.True(t, engine.IsFragment(map[string]any{"name": "hint", "data": "x"}))
	require.True(t, engine.IsFragment(map[string]any{"name": "hint", "data": "x", "more": 1}))
	require.True(t, engine.IsFragment(map[string]any{"name": "hint", "data": "x", "id": 1, "type": 2}))
	require.False(t, engine.IsFragment(map[string]any{"name": 1, "data": "x"}))
	require.False(t, engine.IsFragment(map[string]any{"name": "hint"}))
	require.False(t, engine.IsObject(map[string]any{"name": "hint", "data": "x"}))
	require.True(t, engine.IsObject(map[string]any{}))
	require.True(t, engine.IsObject(engine.Object{}))
	require.False(t, engine.IsObject([]any{}))
	require.False(t, engine.IsObject(engine.Hint("x")))
	require.False(t, engine.IsObject(nil))

	// What is rendered as an object is one, whatever its Go type.
	type named struct{ A, B int }
	for _, object := range []any{
		struct{}{}, named{}, &named{}, map[string]int{"a": 1}, map[int]string{1: "a"}, map[string]named{}, json.RawMessage(`{"a":1}`),
		struct{ Name, Data string }{"hint", "x"}, map[string]string{"name": "hint", "data": "x"},
	} {
		require.True(t, engine.IsObject(object), "%T", object)
	}
	type typed struct {
		Name string `json:"name"`
		Data any    `json:"data"`
	}
	for _, other := range []any{
		"{}", 1, true, []int{1}, [2]string{}, []named{{}}, []engine.Fragment{}, time.Time{}, json.RawMessage(`[1]`), (*named)(nil), make(chan int),
		typed{"hint", "x"}, json.RawMessage(`{"name":"hint","data":"x"}`), engine.Raw("{}"),
	} {
		require.False(t, engine.IsObject(other), "%T", other)
	}
	require.True(t, engine.IsFragment(typed{"hint", "x"}), "it is rendered as one")
	require.True(t, engine.IsMessage(engine.User("x")))
	require.False(t, engine.IsMessage(engine.Hint("x")))
	require.True(t, engine.IsLazy(engine.LastAssistantMessage("x")))
	require.False(t, engine.IsLazy(engine.AssistantText("x", "")))
}

// feature: codec/helpers
// feature: codec/encode
// feature: codec/ids
func TestMessageFragments(t *testing.T) {
	u := engine.User("Hello")
	require.Equal(t, "user", u.Name)
	require.True(t, u.Persist)
	require.NotEmpty(t, u.ID)
	require.NotEqual(t, u.ID, engine.User("Hello").ID)
	row, err := u.Codec.Encode()
	require.NoError(t, err)
	require.Equal(t, `{"id":"`+u.ID+`","role":"user","parts":[{"type":"text","text":"Hello"}]}`, string(row))

	again, err := engine.MessageJSON(row)
	require.NoError(t, err)
	require.Equal(t, u.ID, again.ID)
	m, err := again.Codec.Decode()
	require.NoError(t, err)
	require.Equal(t, "Hello", m.Text())

	require.Equal(t, "assistant", engine.Assistant(engine.UIMessage{ID: "1", Role: "user"}).Name)
	require.Equal(t, "user", engine.UserMessage(engine.UIMessage{ID: "1"}).Name)
	require.Equal(t, "a1", engine.AssistantText("x", "a1").ID)

	_, err = engine.MessageJSON([]byte(`[]`))
	require.ErrorIs(t, err, engine.ErrBadMessage)
}

func TestStoredRowSurvivesItsFragment(t *testing.T) {
	f, err := engine.MessageJSON([]byte(odd))
	require.NoError(t, err)
	row, err := f.Codec.Encode()
	require.NoError(t, err)
	require.Equal(t, odd, string(row))

	moved, err := f.WithID("b2")
	require.NoError(t, err)
	require.Equal(t, "b2", moved.ID)
	row, err = moved.Codec.Encode()
	require.NoError(t, err)
	require.Equal(t, strings.Replace(odd, `"a\u0031"`, `"b2"`, 1), string(row))
	require.Equal(t, "a1", f.ID)

	_, err = engine.Hint("x").WithID("1")
	require.ErrorIs(t, err, engine.ErrNoCodec)
}

func TestCodecCopiesTheMessage(t *testing.T) {
	m := engine.UIMessage{ID: "1", Role: "user", Parts: []engine.Part{engine.TextPart("before")}}
	c := engine.NewCodec(m)
	m.Parts[0].Text = "after"
	decoded, err := c.Decode()
	require.NoError(t, err)
	require.Equal(t, "before", decoded.Text())
	decoded.Parts[0].Text = "after"
	again, err := c.Decode()
	require.NoError(t, err)
	require.Equal(t, "before", again.Text())
}

func TestResolveLazy(t *testing.T) {
	lazy := engine.LastAssistantMessage("corrected")
	require.NoError(t, lazy.Validate())
	require.Empty(t, lazy.ID)

	f := lazy.Resolve("a7")
	require.False(t, engine.IsLazy(f))
	require.Equal(t, "a7", f.ID)
	m, err := f.Codec.Decode()
	require.NoError(t, err)
	require.Equal(t, "corrected", m.Text())
	require.Equal(t, "assistant", m.Role)

	require.NotEmpty(t, lazy.Resolve("").ID)
	require.Equal(t, engine.Hint("x"), engine.Hint("x").Resolve("a7"))
}

func TestValidate(t *testing.T) {
	cycle := map[string]any{}
	cycle["again"] = cycle
	type pointer *any
	var target any
	loop := pointer(&target)
	target = loop
	type ring struct{ Next *ring }
	knot := &ring{}
	knot.Next = knot
	tests := []struct {
		name string
		in   engine.Fragment
		path string
		is   error
	}{
		{"foreign type", engine.New("a", engine.Object{{"b", []any{1, make(chan int)}}}), "a.b[1]", engine.ErrUnsupported},
		{"foreign field", engine.New("a", struct{ F func() }{}), "a", engine.ErrUnsupported},
		{"foreign keys", engine.New("a", map[[2]int]int{{1, 2}: 3}), "a", engine.ErrUnsupported},
		{"bad JSON", engine.New("a", json.RawMessage("{")), "a", engine.ErrUnsupported},
		{"names of JSON repeated", engine.New("a", json.RawMessage(`{"b":1,"b":2}`)), "a.b", engine.ErrUnsupported},
		{"NaN in a structure", engine.New("a", struct{ F float64 }{math.NaN()}), "a", engine.ErrUnsupported},
		{"cycle of pointers", engine.New("a", loop), "a", engine.ErrTooDeep},
		{"cycle of structures", engine.New("a", knot), "a", engine.ErrTooDeep},
		{"NaN", engine.New("a", []any{math.NaN()}), "a[0]", engine.ErrUnsupported},
		{"infinite", engine.New("a", float32(math.Inf(-1))), "a", engine.ErrUnsupported},
		{"bad number", engine.New("a", json.Number("1 ")), "a", engine.ErrUnsupported},
		{"no number", engine.New("a", json.Number("true")), "a", engine.ErrUnsupported},
		{"empty number", engine.New("a", json.Number("")), "a", engine.ErrUnsupported},
		{"name repeated", engine.New("a", engine.Object{{"b", 1}, {"b", 2}}), "a.b", engine.ErrUnsupported},
		{"no name", engine.F("a", engine.F("")), "a.", engine.ErrUnsupported},
		{"cycle", engine.New("a", cycle), "a.again.again.again.again.again.again.again….again.again.again.again.again.again.again.again", engine.ErrTooDeep},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.in.Validate()
			require.ErrorIs(t, err, test.is)
			var bad *engine.DataError
			require.True(t, errors.As(err, &bad))
			require.Equal(t, test.path, bad.Path)
			for _, r := range renderers {
				_, err := r.Render(test.in)
				require.ErrorIs(t, err, test.is)
			}
		})
	}
	require.ErrorIs(t, engine.Fragment{Name: "user", Type: engine.TypeMessage}.Validate(), engine.ErrNoCodec)
	for _, c := range renderCases {
		for _, f := range c.fragments {
			require.NoError(t, f.Validate())
		}
	}
}

// feature: fragment/nested
func TestDepthIsBounded(t *testing.T) {
	nest := map[string]func(any) any{
		"lists":     func(d any) any { return []any{d} },
		"objects":   func(d any) any { return engine.Object{{"o", d}} },
		"fragments": func(d any) any { return engine.New("f", d) },
	}
	for name, wrap := range nest {
		t.Run(name, func(t *testing.T) {
			data := any("x")
			for range engine.MaxDepth - 1 {
				data = wrap(data)
			}
			for format, r := range renderers {
				out, err := r.Render(engine.New("root", data))
				require.NoError(t, err, format)
				require.Contains(t, out, "x")
				_, err = r.Render(engine.New("root", wrap(data)))
				require.ErrorIs(t, err, engine.ErrTooDeep, format)
			}
		})
	}
}
