package engine

import (
	"slices"
	"strconv"
	"strings"
)

// TOMLRenderer renders fragments as a TOML 1.0 document. Fragments and fields are keys; those with
// the same name become a list. Objects are tables, lists of objects arrays of tables. As TOML
// requires, the plain values of a table come before its tables; otherwise the order is kept.
//
// Numbers outside the range of 64-bit integers and floats are written as strings.
type TOMLRenderer struct{}

// Render implements Renderer.
func (TOMLRenderer) Render(fragments ...Fragment) (string, error) {
	doc, err := document(fragments)
	if err != nil {
		return "", err
	}
	var w tomlWriter
	w.table(doc, "")
	return strings.TrimSuffix(w.b.String(), "\n"), nil
}

type tomlWriter struct{ b strings.Builder }

// table writes the content of the table at path, whose header is already written.
func (w *tomlWriter) table(n *node, path string) {
	children := n.grouped()
	for _, c := range children {
		switch {
		case isTOMLTable(c):
		case c.kind == textNode && strings.Contains(c.text, "\n"):
			w.b.WriteString(tomlKey(c.name) + " = " + tomlMultiline(c.text) + "\n")
		default:
			w.b.WriteString(tomlKey(c.name) + " = " + tomlValue(c) + "\n")
		}
	}
	for _, c := range children {
		if !isTOMLTable(c) {
			continue
		}
		inner := tomlKey(c.name)
		if path != "" {
			inner = path + "." + inner
		}
		if c.kind == listKind {
			for _, item := range c.children {
				w.header("[[" + inner + "]]")
				w.table(item, inner)
			}
			continue
		}
		if needsTOMLHeader(c) {
			w.header("[" + inner + "]")
		}
		w.table(c, inner)
	}
}

func (w *tomlWriter) header(text string) {
	if w.b.Len() > 0 {
		w.b.WriteByte('\n')
	}
	w.b.WriteString(text + "\n")
}

// isTOMLTable reports whether n needs its own headers: an object or a list of objects only.
func isTOMLTable(n *node) bool {
	if n.kind != listKind {
		return n.kind == objectKind
	}
	return len(n.children) > 0 && !slices.ContainsFunc(n.children, func(c *node) bool { return c.named || c.kind != objectKind })
}

// needsTOMLHeader reports whether a table needs its header. Tables with only sub-tables do not:
// these imply it.
func needsTOMLHeader(n *node) bool {
	children := n.grouped()
	return len(children) == 0 || slices.ContainsFunc(children, func(c *node) bool { return !isTOMLTable(c) })
}

// tomlValue returns n as a value in one line.
func tomlValue(n *node) string {
	switch n.kind {
	case textNode:
		return tomlString(n.text)
	case numberNode:
		if !fitsTOML(n.text) {
			return tomlString(n.text)
		}
	case listKind:
		items := make([]string, len(n.children))
		for i, c := range n.children {
			items[i] = tomlValue(c.asItem())
		}
		return "[" + strings.Join(items, ", ") + "]"
	case objectKind:
		if len(n.children) == 0 {
			return "{}"
		}
		var fields []string
		for _, c := range n.grouped() {
			fields = append(fields, tomlKey(c.name)+" = "+tomlValue(c))
		}
		return "{ " + strings.Join(fields, ", ") + " }"
	}
	return n.text
}

// fitsTOML reports whether a number is in TOML's range.
func fitsTOML(number string) bool {
	var err error
	if strings.ContainsAny(number, ".eE") {
		_, err = strconv.ParseFloat(number, 64)
	} else {
		_, err = strconv.ParseInt(number, 10, 64)
	}
	return err == nil
}

// tomlKey returns name as a key, bare if possible.
func tomlKey(name string) string {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return tomlString(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// tomlControl is the format of control characters.
const tomlControl = `\u%04X`

func tomlString(text string) string { return quoted(text, tomlControl) }

// tomlMultiline returns text between triple quotes, with its line breaks.
func tomlMultiline(text string) string {
	var b strings.Builder
	b.WriteString("\"\"\"\n")
	quotes := 0
	for i, r := range text {
		if r == '"' {
			if quotes++; quotes == 3 || i == len(text)-1 {
				b.WriteByte('\\')
				quotes = 0
			}
			b.WriteByte('"')
			continue
		}
		quotes = 0
		if r == '\n' {
			b.WriteByte('\n')
		} else {
			b.WriteString(escaped(r, tomlControl))
		}
	}
	b.WriteString(`"""`)
	return b.String()
}
