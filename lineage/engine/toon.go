package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TOONRenderer renders fragments as TOON (token-oriented object notation), which needs few tokens:
// indentation instead of braces, quotes only if necessary, lists with their length, and lists of
// uniform objects as tables. Fragments with the same name become a list. Control characters without
// a short escape are written \u00XX.
type TOONRenderer struct{}

// Render implements Renderer.
func (TOONRenderer) Render(fragments ...Fragment) (string, error) {
	doc, err := document(fragments)
	if err != nil {
		return "", err
	}
	var w toonWriter
	w.fields(doc, 0, false)
	return w.b.String(), nil
}

type toonWriter struct{ b strings.Builder }

// line starts a line.
func (w *toonWriter) line(level int) {
	if w.b.Len() > 0 {
		w.b.WriteByte('\n')
	}
	w.b.WriteString(indent(level))
}

// fields writes an object. The first field of a list item continues its line.
func (w *toonWriter) fields(n *node, level int, isItem bool) {
	for i, c := range n.grouped() {
		if i > 0 || !isItem {
			w.line(level)
		}
		w.b.WriteString(toonKey(c.name))
		switch {
		case c.isScalar():
			w.b.WriteString(": " + toonScalar(c))
		case c.kind == listKind:
			w.list(c, level)
		default:
			w.b.WriteByte(':')
			w.fields(c, level+1, false)
		}
	}
}

// list writes a list after its name, with items one level deeper.
func (w *toonWriter) list(n *node, level int) {
	fmt.Fprintf(&w.b, "[%d]", len(n.children))
	if names := toonColumns(n); names != nil {
		w.b.WriteString("{" + strings.Join(names, ",") + "}:")
		for _, row := range n.children {
			w.line(level + 1)
			w.row(row, names)
		}
		return
	}
	w.b.WriteByte(':')
	if allScalar(n) {
		if len(n.children) > 0 {
			w.b.WriteByte(' ')
		}
		w.scalars(n.children)
		return
	}
	for _, c := range n.children {
		item := c.asItem()
		w.line(level + 1)
		w.b.WriteByte('-')
		switch {
		case item.isScalar():
			w.b.WriteString(" " + toonScalar(item))
		case item.kind == listKind:
			w.b.WriteByte(' ')
			w.list(item, level+1)
		case len(item.children) > 0:
			w.b.WriteByte(' ')
			w.fields(item, level+2, true)
		}
	}
}

// row writes the values of a uniform object in the order of the columns.
func (w *toonWriter) row(n *node, columns []string) {
	byName := make(map[string]*node, len(columns))
	for _, c := range n.children {
		byName[toonKey(c.name)] = c
	}
	values := make([]*node, len(columns))
	for i, name := range columns {
		values[i] = byName[name]
	}
	w.scalars(values)
}

func (w *toonWriter) scalars(values []*node) {
	for i, v := range values {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.b.WriteString(toonScalar(v))
	}
}

func allScalar(n *node) bool {
	return !slices.ContainsFunc(n.children, func(c *node) bool { return c.named || !c.isScalar() })
}

// toonColumns returns the column names if a list can be a table, else nil: its items must be
// objects with the same names and scalar values.
func toonColumns(n *node) []string {
	var names []string
	known := make(map[string]bool)
	for i, item := range n.children {
		if item.named || item.kind != objectKind || len(item.children) == 0 {
			return nil
		}
		if i > 0 && len(item.children) != len(names) {
			return nil
		}
		seen := make(map[string]bool, len(item.children))
		for _, c := range item.children {
			if !c.isScalar() || seen[c.name] || i > 0 && !known[c.name] {
				return nil
			}
			seen[c.name] = true
			if i == 0 {
				known[c.name] = true
				names = append(names, toonKey(c.name))
			}
		}
	}
	return names
}

// toonKey returns name as a key, quoted unless it is an identifier.
func toonKey(name string) string {
	for i, r := range name {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !plain && (i == 0 || r != '.' && (r < '0' || r > '9')) {
			return toonQuote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

func toonScalar(n *node) string {
	if n.kind == textNode && needsTOONQuotes(n.text) {
		return toonQuote(n.text)
	}
	return n.text
}

// needsTOONQuotes reports whether unquoted text could be misread.
func needsTOONQuotes(text string) bool {
	switch text {
	case "", "true", "false", "null":
		return true
	}
	if text != strings.TrimSpace(text) || text[0] == '-' {
		return true
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`:"\[]{},`, r) {
			return true
		}
	}
	if text[0] < '0' || text[0] > '9' {
		return false
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

func toonQuote(text string) string { return quoted(text, `\u%04x`) }
