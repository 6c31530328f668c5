package engine

import (
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
		if !isTOMLTable(c) {
			w.b.WriteString(tomlKey(c.name) + " = " + tomlValue(c, true) + "\n")
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
	if n.kind == objectKind {
		return true
	}
	if n.kind != listKind || len(n.children) == 0 {
		return false
	}
	for _, c := range n.children {
		if c.named || c.kind != objectKind {
			return false
		}
	}
	return true
}

// needsTOMLHeader reports whether a table needs its header. Tables with only sub-tables do not:
// these imply it.
func needsTOMLHeader(n *node) bool {
	children := n.grouped()
	for _, c := range children {
		if !isTOMLTable(c) {
			return true
		}
	}
	return len(children) == 0
}

// tomlValue returns n as a value in one line, or as a multi-line string if allowed and needed.
func tomlValue(n *node, multiline bool) string {
	switch n.kind {
	case textNode:
		if multiline && strings.Contains(n.text, "\n") {
			return tomlMultiline(n.text)
		}
		return tomlString(n.text)
	case numberNode:
		if !fitsTOML(n.text) {
			return tomlString(n.text)
		}
		return n.text
	case literalNode:
		return n.text
	}
	var b strings.Builder
	writeTOMLInline(&b, n)
	return b.String()
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

func writeTOMLInline(b *strings.Builder, n *node) {
	switch n.kind {
	case listKind:
		b.WriteByte('[')
		for i, c := range n.children {
			if i > 0 {
				b.WriteString(", ")
			}
			writeTOMLInline(b, c.asItem())
		}
		b.WriteByte(']')
	case objectKind:
		b.WriteByte('{')
		for i, c := range n.grouped() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(" " + tomlKey(c.name) + " = ")
			writeTOMLInline(b, c)
		}
		if len(n.children) > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte('}')
	default:
		b.WriteString(tomlValue(n, false))
	}
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

func tomlString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		default:
			writeTOMLRune(&b, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tomlMultiline returns text between triple quotes, with its line breaks.
func tomlMultiline(text string) string {
	var b strings.Builder
	b.WriteString("\"\"\"\n")
	quotes := 0
	for i, r := range text {
		switch r {
		case '"':
			if quotes++; quotes == 3 || i == len(text)-1 {
				b.WriteByte('\\')
				quotes = 0
			}
			b.WriteByte('"')
			continue
		case '\\':
			b.WriteString(`\\`)
		case '\n':
			b.WriteByte('\n')
		default:
			writeTOMLRune(&b, r)
		}
		quotes = 0
	}
	b.WriteString(`"""`)
	return b.String()
}

// writeTOMLRune writes a rune; control characters are escaped.
func writeTOMLRune(b *strings.Builder, r rune) {
	switch {
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r < ' ' || r == 0x7f:
		const hex = "0123456789ABCDEF"
		b.WriteString(`\u00`)
		b.WriteByte(hex[r>>4])
		b.WriteByte(hex[r&15])
	default:
		b.WriteRune(r)
	}
}
