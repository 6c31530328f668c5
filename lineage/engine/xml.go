package engine

import "strings"

// XMLRenderer renders fragments as XML elements, one after the other without a
// root. Fields are elements, list items are <item>. Text is kept exactly: it is
// never indented or wrapped.
//
// A name that is no plain XML name is reduced to one, and the element carries
// the real one in an attribute: <first_name name="first name">. Control
// characters that XML cannot express become their Unicode pictures (U+2400…),
// and U+FFFE and U+FFFF become U+FFFD.
type XMLRenderer struct{}

// Render implements Renderer.
func (XMLRenderer) Render(fragments ...Fragment) (string, error) {
	doc, err := document(fragments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, n := range doc.children {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeXML(&b, n, 0)
	}
	return b.String(), nil
}

func writeXML(b *strings.Builder, n *node, level int) {
	tag, attribute := "item", ""
	if n.named {
		tag = xmlName(n.name)
		if tag != n.name {
			attribute = ` name="` + xmlAttribute.Replace(xmlText(n.name)) + `"`
		}
	}
	b.WriteString(indent(level) + "<" + tag + attribute)
	switch {
	case n.isScalar():
		b.WriteString(">" + xmlText(n.text))
	case len(n.children) == 0:
		b.WriteString("/>")
		return
	default:
		b.WriteString(">\n")
		for _, c := range n.children {
			writeXML(b, c, level+1)
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

// xmlText returns text as it may stand between tags.
func xmlText(text string) string {
	return xmlEscapes.Replace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return r
		case r == 0xFFFE || r == 0xFFFF:
			return '\uFFFD'
		case r < ' ':
			return controlPicture(r)
		}
		return r
	}, text))
}

// xmlName returns name if it is a plain XML name in ASCII, and otherwise the
// nearest one: every run of other characters is one underscore.
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
