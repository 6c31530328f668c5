package engine_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/engine"
)

// anyText draws text with many characters that are special in a format.
func anyText() *rapid.Generator[string] {
	marks := []string{
		"\"", "\"\"\"", "\\", "\n", "\r", "\r\n", "\t", "\x00", "\x1b", "\x7f", " ", "  ", "```", "`", "<", ">", "&amp;", "]]>",
		"-", "- ", "#", "1.", "*", "_", "[", "]", "{", "}", ":", ",", "=", ".", "true", "null", "a", "é", "漢", "\u2028", "\ufffe", "\uffff", "🎉",
	}
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(marks), 0, 8), func(s []string) string { return strings.Join(s, "") }),
		rapid.String(),
		rapid.StringMatching(`[a-z]{1,6}`),
	)
}

// anyData draws nested data without fragments.
func anyData(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.Int().Draw(t, "number")
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			return rapid.SliceOfN(anyData(depth-1), 0, 4).Draw(t, "list")
		case 5:
			names := rapid.SliceOfNDistinct(anyText(), 0, 4, rapid.ID[string]).Draw(t, "names")
			object := engine.Object{}
			for _, name := range names {
				object = append(object, engine.Field{Name: name, Value: anyData(depth-1).Draw(t, "value")})
			}
			return object
		}
		return anyText().Draw(t, "text")
	})
}

// element is a parsed XML element.
type element struct {
	name     string
	text     string
	children []element
}

// xmlExpected returns the element that data with a name must be read as.
func xmlExpected(name string, data any) element {
	e := element{name: xmlLegal(name)}
	switch d := data.(type) {
	case engine.Object:
		for _, f := range d {
			e.children = append(e.children, xmlExpected(f.Name, f.Value))
		}
	case []any:
		for _, item := range d {
			e.children = append(e.children, xmlExpected("item", item))
		}
	case string:
		e.text = xmlLegal(d)
	case int:
		e.text = strconv.Itoa(d)
	case bool:
		e.text = strconv.FormatBool(d)
	}
	return e
}

func xmlLegal(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune("\t\n\r", r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(r + 0x2400)
		case r == 0xfffe, r == 0xffff:
			b.WriteRune(0xfffd)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func readXML(t require.TestingT, text string) element {
	d := xml.NewDecoder(strings.NewReader(text))
	root := element{}
	open := []*element{&root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			require.Len(t, open, 1)
			return root
		}
		require.NoError(t, err, "%q", text)
		top := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local}
			for _, a := range token.Attr {
				require.Equal(t, "name", a.Name.Local)
				e.name = a.Value
			}
			top.children = append(top.children, e)
			open = append(open, &top.children[len(top.children)-1])
		case xml.EndElement:
			if len(top.children) > 0 {
				require.Empty(t, strings.TrimSpace(top.text))
				top.text = ""
			}
			open = open[:len(open)-1]
		case xml.CharData:
			top.text += string(token)
		}
	}
}

// feature: fragment/render
func TestXMLReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := anyText().Filter(func(s string) bool { return s != "" }).Draw(t, "name")
		data := anyData(3).Draw(t, "data")
		out, err := engine.XMLRenderer{}.Render(engine.New(name, data))
		require.NoError(t, err)
		root := readXML(t, out)
		require.Equal(t, []element{xmlExpected(name, data)}, root.children)
	})
}

// tomlExpected returns what data must be read as.
func tomlExpected(data any) any {
	switch d := data.(type) {
	case engine.Object:
		table := map[string]any{}
		for _, f := range d {
			table[f.Name] = tomlExpected(f.Value)
		}
		return table
	case []any:
		list := []any{}
		for _, item := range d {
			list = append(list, tomlExpected(item))
		}
		return list
	case int:
		return tomlLiteral(strconv.Itoa(d))
	case bool:
		return tomlLiteral(strconv.FormatBool(d))
	}
	return data
}

func TestTOMLReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(anyText().Filter(func(s string) bool { return s != "" }), 1, 4, rapid.ID[string]).Draw(t, "names")
		want := map[string]any{}
		var fragments []engine.Fragment
		for _, name := range names {
			data := anyData(3).Draw(t, "data")
			fragments = append(fragments, engine.New(name, data))
			want[name] = tomlExpected(data)
		}
		out, err := engine.TOMLRenderer{}.Render(fragments...)
		require.NoError(t, err)
		got, err := readTOML(out)
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, got)
	})
}

func TestTOMLReaderRefuses(t *testing.T) {
	for _, bad := range []string{"a = 1\na = 2", "[a]\n[a]", "a = \"\x01\"", `a = "`, `a = "\q"`, "a b = 1", "a = 1\n[a]", "a = [1 2]", "a = 1 b = 2", "[[a]]\n[a]"} {
		_, err := readTOML(bad)
		require.Error(t, err, bad)
	}
}

func TestTOONTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		out, err := engine.TOONRenderer{}.Render(engine.New("k", text))
		require.NoError(t, err)
		shown, ok := strings.CutPrefix(out, "k: ")
		require.True(t, ok)
		require.NotContains(t, shown, "\n")
		if strings.HasPrefix(shown, `"`) {
			var got string
			require.NoError(t, json.Unmarshal([]byte(shown), &got))
			require.Equal(t, text, got)
			return
		}
		require.Equal(t, text, shown)
		require.NotContains(t, shown, ",")
		require.False(t, json.Valid([]byte(shown)), "%q looks like something else", shown)
	})
}

func TestMarkdownTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Filter(func(s string) bool { return s != "" }).Draw(t, "text")
		out, err := engine.MarkdownRenderer{}.Render(engine.New("k", []string{text}))
		require.NoError(t, err)
		shown, ok := strings.CutPrefix(out, "## k\n\n- ")
		require.True(t, ok)
		want := markdownVisible(strings.ReplaceAll(text, "\r\n", "\n"))
		if strings.HasPrefix(shown, "```") {
			lines := strings.Split(shown, "\n")
			fence := strings.TrimSuffix(lines[0], "text")
			require.Equal(t, "  "+fence, lines[len(lines)-1])
			inside := lines[1 : len(lines)-1]
			for i, line := range inside {
				require.NotContains(t, line, fence)
				inside[i] = strings.TrimPrefix(line, "  ")
			}
			require.Equal(t, want, strings.Join(inside, "\n"))
			return
		}
		require.NotContains(t, shown, "\n")
		require.Equal(t, want, markdownUnescape(shown))
		require.False(t, strings.ContainsAny(shown[:1], "#>+-=*`<&[~|_"), shown)
	})
}

func markdownVisible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0x7f:
			return 0x2421
		case r < 0x20 && r != '\t' && r != '\n':
			return r + 0x2400
		}
		return r
	}, s)
}

// markdownUnescape removes backslash escapes as CommonMark does.
func markdownUnescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		`{"a":[{"b":1,"c":"x"},{"b":2,"c":"y"}],"d":{"e":null}}`, `["x",[],{},[[1]]]`, `"\u0000]]>\ud800"`, `{"":{"":""}}`, `1e400`,
	} {
		f.Add("name", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.UseNumber()
		var value any
		if d.Decode(&value) != nil {
			value = string(data)
		}
		fragments := []engine.Fragment{
			engine.New(name, value),
			engine.F("twice", engine.New(name, value), engine.New("x", string(data)), engine.New(name, name)),
		}
		for format, r := range renderers {
			out, err := r.Render(fragments...)
			if err != nil {
				var bad *engine.DataError
				require.ErrorAs(t, err, &bad)
				continue
			}
			require.True(t, utf8.ValidString(out), format)
			again, err := r.Render(fragments...)
			require.NoError(t, err)
			require.Equal(t, out, again, format)
			switch format {
			case "xml":
				readXML(t, out)
			case "toml":
				_, err := readTOML(out)
				require.NoError(t, err, "%s", out)
			}
		}
	})
}
