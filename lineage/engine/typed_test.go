package engine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/engine"
)

func rendered(t require.TestingT, r engine.Renderer, fragments ...engine.Fragment) string {
	out, err := r.Render(fragments...)
	require.NoError(t, err)
	return out
}

type size int

type table struct {
	Name    string         `json:"name"`
	Columns []string       `json:"columns,omitempty"`
	Rows    size           `json:"rows"`
	Hidden  string         `json:"-"`
	Made    time.Time      `json:"made"`
	Stats   map[string]any `json:"stats"`
	Next    *table         `json:"next,omitempty"`
	unseen  int
}

// feature: fragment/typed
func TestTypedData(t *testing.T) {
	one := table{
		Name: "users", Columns: []string{"id", "<b>"}, Rows: 3, Hidden: "no", Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Stats: map[string]any{"b": 1.5, "a": nil}, Next: &table{Name: "orders"}, unseen: 1,
	}
	stats := engine.Object{{"b", 1.5}}
	want := engine.Object{
		{"name", "users"}, {"columns", []string{"id", "<b>"}}, {"rows", 3}, {"made", "2026-01-02T03:04:05Z"}, {"stats", stats},
		{"next", engine.Object{{"name", "orders"}, {"rows", 0}, {"made", "0001-01-01T00:00:00Z"}}},
	}
	word := "text"
	var none *table
	for name, pair := range map[string][2]any{
		"structure":           {one, want},
		"pointer":             {&one, want},
		"nil pointer":         {none, nil},
		"numbers":             {[]int{1, -2}, []any{1, -2}},
		"floats":              {[2]float32{0.5, 1}, []any{float32(0.5), float32(1)}},
		"small float":         {struct{ F float32 }{1e-6}, engine.Object{{"F", float32(1e-6)}}},
		"named types":         {[]size{4}, []any{4}},
		"structures":          {[]table{{Name: "x"}}, []any{engine.Object{{"name", "x"}, {"rows", 0}, {"made", "0001-01-01T00:00:00Z"}}}},
		"map of lists":        {map[string][]int{"b": {2}, "a": {1}}, engine.Object{{"a", []any{1}}, {"b", []any{2}}}},
		"map with numbers":    {map[int]bool{2: true}, engine.Object{{"2", true}}},
		"text pointer":        {&word, "text"},
		"bytes":               {[]byte("hi"), "aGk="},
		"duration and errors": {[]time.Duration{7}, []any{7}},
		"fragments":           {map[string]engine.Fragment{"k": engine.Hint("h")}, engine.Object{{"k", []engine.Fragment{engine.Hint("h")}}}},
		"fragments in lists":  {[][]engine.Fragment{{engine.Hint("h")}}, []any{[]engine.Fragment{engine.Hint("h")}}},
		"JSON":                {json.RawMessage(` {"z":1.0,"a":[null,"x"]}`), engine.Object{{"z", json.Number("1.0")}, {"a", []any{"x"}}}},
		"fragment in JSON":    {json.RawMessage(`{"name":"hint","data":"h"}`), []engine.Fragment{engine.Hint("h")}},
		"map that is one":     {map[string]any{"name": "hint", "data": "h"}, []engine.Fragment{engine.Hint("h")}},
		"maps that are some":  {[]any{map[string]any{"name": "hint", "data": "h"}}, []engine.Fragment{engine.Hint("h")}},
		"other members":       {map[string]any{"name": "hint", "data": "h", "rank": 1}, []engine.Fragment{engine.Hint("h")}},
		"no fragment":         {map[string]any{"name": 1, "data": "h"}, engine.Object{{"data", "h"}, {"name", 1}}},
	} {
		for format, r := range renderers {
			require.Equal(t, rendered(t, r, engine.New("root", pair[1])), rendered(t, r, engine.New("root", pair[0])), "%s as %s", name, format)
		}
	}
}

// feature: fragment/json
func TestFragmentsAsJSON(t *testing.T) {
	var f engine.Fragment
	require.NoError(t, json.Unmarshal([]byte(`{"name":"database","data":[{"name":"hint","data":"PostgreSQL 15"},{"name":"constraints","data":[{"name":"hint","data":"No DELETE"}]}]}`), &f))
	require.Equal(t,
		rendered(t, engine.XMLRenderer{}, engine.F("database", engine.Hint("PostgreSQL 15"), engine.F("constraints", engine.Hint("No DELETE")))),
		rendered(t, engine.XMLRenderer{}, f))
	for _, bad := range []string{`7`, `{}`, `{"name":"a"}`, `{"data":1}`, `{"name":1,"data":1}`, `{"name":"a","name":"b","data":1}`} {
		require.ErrorIs(t, json.Unmarshal([]byte(bad), &f), engine.ErrUnsupported, bad)
	}
	deep := strings.Repeat(`[`, 2000) + strings.Repeat(`]`, 2000)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"name":"a","data":`+deep+`}`), &f), engine.ErrTooDeep)

	fragment := engine.AssistantText("hi", "a1")
	fragment.Metadata = map[string]any{"k": "v"}
	b, err := json.Marshal(fragment)
	require.NoError(t, err)
	var back engine.Fragment
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, fragment, func() engine.Fragment { back.Codec = fragment.Codec; return back }())

	rapid.Check(t, func(t *rapid.T) {
		name := anyText().Filter(func(s string) bool { return s != "" }).Draw(t, "name")
		f := engine.F("outer", engine.New(strings.ToValidUTF8(name, "?"), anyData(3).Draw(t, "data")), engine.Hint("h"))
		b, err := json.Marshal(f)
		require.NoError(t, err)
		var back engine.Fragment
		require.NoError(t, json.Unmarshal(b, &back), "%s", b)
		for format, r := range renderers {
			require.Equal(t, rendered(t, r, f), rendered(t, r, back), format)
			require.Equal(t, rendered(t, r, engine.F("around", f)), rendered(t, r, engine.New("around", json.RawMessage(b))), format)
		}
	})
}

// feature: fragment/render-raw
func TestRawText(t *testing.T) {
	list := engine.New("notes", []any{engine.Raw("**bold**\n\n- a\n- b"), "*not*"})
	require.Equal(t, "## notes\n\n- **bold**\n\n  - a\n  - b\n- \\*not\\*", rendered(t, engine.MarkdownRenderer{}, list))
	require.Equal(t, "## guide\n\n# Title\n\ntext", rendered(t, engine.MarkdownRenderer{}, engine.New("guide", engine.Raw("# Title\r\n\r\ntext"))))
	for raw, want := range map[string]string{
		"a <b>c</b> &amp; d":  "<x>a <b>c</b> &amp; d</x>",
		"plain":               "<x>plain</x>",
		"a < b":               "<x><![CDATA[a < b]]></x>",
		"</x><y>":             "<x><![CDATA[</x><y>]]></x>",
		"</raw><raw>":         "<x><![CDATA[</raw><raw>]]></x>",
		"<?xml?>":             "<x><![CDATA[<?xml?>]]></x>",
		"<!DOCTYPE a>":        "<x><![CDATA[<!DOCTYPE a>]]></x>",
		"&nbsp;]]>\x00":       "<x><![CDATA[&nbsp;]]]]><![CDATA[>␀]]></x>",
		"<!-- c --><br/>text": "<x><!-- c --><br/>text</x>",
	} {
		require.Equal(t, want, rendered(t, engine.XMLRenderer{}, engine.New("x", engine.Raw(raw))))
	}
	for _, format := range []string{"toml", "toon"} {
		require.Equal(t, rendered(t, renderers[format], engine.New("x", "# <b>")), rendered(t, renderers[format], engine.New("x", engine.Raw("# <b>"))))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		out := rendered(t, engine.XMLRenderer{}, engine.New("x", engine.Raw(text)))
		root := readXML(t, out)
		require.Len(t, root.children, 1, "%q", out)
		if strings.Contains(out, "<![CDATA[") && !strings.Contains(text, "<![CDATA[") && !strings.ContainsAny(text, "\r\ufffe\uffff") {
			require.Equal(t, controlPictures(text), root.children[0].text)
		}
	})
}

func controlPictures(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' {
			return '␀' + r
		}
		return r
	}, text)
}

// feature: fragment/render-names
func TestNamesOfTheOriginal(t *testing.T) {
	f := engine.New("user_hints", []any{"one", engine.Object{{"steps", []any{"a", "b"}}}, []any{"x"}})
	require.Equal(t, strings.Join([]string{
		"<user_hints>", "  <user_hint>one</user_hint>", "  <user_hint>", "    <steps>", "      <step>a</step>", "      <step>b</step>", "    </steps>", "  </user_hint>",
		"  <user_hint>", "    <item>x</item>", "  </user_hint>", "</user_hints>",
	}, "\n"), rendered(t, engine.XMLRenderer{Singular: true}, f))
	for plural, one := range map[string]string{
		"hints": "hint", "steps": "step", "policies": "policy", "categories": "category", "boxes": "box", "classes": "class", "statuses": "status", "status": "status",
		"buses": "bus", "cases": "case", "databases": "database", "responses": "response", "courses": "course", "houses": "house", "causes": "cause", "uses": "use",
		"users": "user", "queries": "query", "people": "person", "children": "child", "analyses": "analysis", "indexes": "index", "indices": "index", "data": "datum",
		"media": "media", "criteria": "criterion", "matches": "match", "batches": "batch", "dishes": "dish", "buzzes": "buzz", "quizzes": "quiz", "heroes": "hero",
		"photos": "photo", "keys": "key", "news": "news", "series": "series", "aliases": "alias", "viruses": "virus", "notes": "note", "addresses": "address",
		"process": "process", "processes": "process", "phases": "phase", "glasses": "glass", "gas": "gas", "sizes": "size", "userHints": "userHint", "HINTS": "HINT",
		"People": "Person", "knives": "knife", "leaves": "leaf", "shoes": "shoe", "roles": "role", "caches": "cache", "s": "s", "x": "x", "my people": "my person",
	} {
		out := rendered(t, engine.XMLRenderer{Singular: true}, engine.New(plural, []any{"v"}))
		require.Equal(t, rendered(t, engine.XMLRenderer{}, engine.F(plural, engine.New(one, "v"))), out)
	}
	for name, title := range map[string]string{
		"role": "Role", "system_prompt": "System Prompt", "systemPrompt": "System Prompt", "user-hint": "User Hint", "first name": "First Name",
		"a": "A", "apiKey2Use": "Api Key2 Use", "__x__": "X", "été": "Été",
	} {
		require.Equal(t, "## "+title+"\n\n- **"+title+"**: v", rendered(t, engine.MarkdownRenderer{TitleCase: true}, engine.F(name, engine.New(name, "v"))))
	}
	rapid.Check(t, func(t *rapid.T) {
		name := anyText().Filter(func(s string) bool { return s != "" }).Draw(t, "name")
		data := anyData(3).Draw(t, "data")
		require.Len(t, readXML(t, rendered(t, engine.XMLRenderer{Singular: true}, engine.New(name, data))).children, 1)
		require.NotEmpty(t, rendered(t, engine.MarkdownRenderer{TitleCase: true}, engine.New(name, data)))
	})
}

// feature: fragment/render
func TestNegativeZero(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, zero := range []any{negative, float32(negative), json.Number("-0"), json.Number("-0.00"), json.Number("-0e5"), json.RawMessage("-0")} {
		for format, r := range renderers {
			require.Equal(t, rendered(t, r, engine.New("k", []any{0, 1})), rendered(t, r, engine.New("k", []any{zero, 1})), format)
		}
		require.Equal(t, "k: 0", rendered(t, engine.TOONRenderer{}, engine.New("k", zero)))
	}
	for _, other := range []string{"-0.1", "-10", "-1e0", "0"} {
		require.Equal(t, "k: "+other, rendered(t, engine.TOONRenderer{}, engine.New("k", json.Number(other))))
	}
	require.Equal(t, "k: "+fmt.Sprintf("%q", "-0"), rendered(t, engine.TOONRenderer{}, engine.New("k", "-0")))
}
