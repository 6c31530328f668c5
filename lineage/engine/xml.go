package engine

import (
	"encoding/xml"
	"io"
	"strings"
)

// XMLRenderer renders fragments as XML elements without a root. Fields are elements, list items are
// <item>. Text is never indented or wrapped. [Raw] text is written unchanged if it is well-formed,
// else in CDATA sections.
//
// A name that is not a plain XML name is converted to one, with the original in an attribute:
// <first_name name="first name">. Control characters that XML cannot express become their Unicode
// pictures (U+2400…), U+FFFE and U+FFFF become U+FFFD.
type XMLRenderer struct {
	// Singular names list items after the list, <hints><hint>…</hint></hints>, by rules of English
	// plurals. Otherwise they are <item>.
	Singular bool
}

// Render implements Renderer.
func (r XMLRenderer) Render(fragments ...Fragment) (string, error) {
	doc, err := document(fragments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, n := range doc.children {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.write(&b, n, "item", 0)
	}
	return b.String(), nil
}

// write writes an element. name applies if it has no name of its own.
func (r XMLRenderer) write(b *strings.Builder, n *node, name string, level int) {
	if n.named {
		name = n.name
	}
	tag, attribute := xmlName(name), ""
	if tag != name {
		attribute = ` name="` + xmlAttribute.Replace(xmlText(name)) + `"`
	}
	b.WriteString(indent(level) + "<" + tag + attribute)
	switch {
	case n.raw:
		b.WriteString(">" + xmlRaw(n.text))
	case n.isScalar():
		b.WriteString(">" + xmlText(n.text))
	case len(n.children) == 0:
		b.WriteString("/>")
		return
	default:
		b.WriteString(">\n")
		item := "item"
		if r.Singular && n.named {
			item = singular(n.name)
		}
		for _, c := range n.children {
			r.write(b, c, item, level+1)
			b.WriteByte('\n')
		}
		b.WriteString(indent(level))
	}
	b.WriteString("</" + tag + ">")
}

var (
	xmlEscapes   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")
	xmlAttribute = strings.NewReplacer(`"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;")
)

// xmlText returns text escaped for use between tags.
func xmlText(text string) string { return xmlEscapes.Replace(strings.Map(xmlChar, text)) }

// xmlChar returns the visible symbol of a character that XML cannot express, or else r.
func xmlChar(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return r
	case r == 0xFFFE || r == 0xFFFF:
		return '\uFFFD'
	case r < ' ':
		return controlPicture(r)
	}
	return r
}

// xmlRaw returns raw text for an element: unchanged, or in CDATA sections if it is not well-formed.
func xmlRaw(text string) string {
	text = strings.Map(xmlChar, text)
	if isWellFormed(text) {
		return text
	}
	return "<![CDATA[" + strings.ReplaceAll(text, "]]>", "]]]]><![CDATA[>") + "]]>"
}

// isWellFormed reports whether text is valid content of an element.
func isWellFormed(text string) bool {
	text = "<raw>" + text + "</raw>"
	d := xml.NewDecoder(strings.NewReader(text))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err == io.EOF
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			if depth--; depth == 0 && d.InputOffset() < int64(len(text)) {
				return false
			}
		case xml.ProcInst, xml.Directive:
			return false
		}
	}
}

// xmlName returns name if it is a plain ASCII XML name, else the nearest one: each run of other
// characters becomes one underscore.
func xmlName(name string) string {
	var b strings.Builder
	letters, gap := false, false
	for _, r := range name {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		isInner := r >= '0' && r <= '9' || r == '-' || r == '.'
		switch {
		case isLetter || r == '_' || isInner && b.Len() > 0:
			b.WriteRune(r)
			gap = false
		case isInner:
			b.WriteString("_")
			b.WriteRune(r)
		case !gap:
			b.WriteByte('_')
			gap = true
		}
		letters = letters || isLetter || r >= '0' && r <= '9'
	}
	if !letters && b.String() != name || name == "" {
		return "field"
	}
	return b.String()
}
