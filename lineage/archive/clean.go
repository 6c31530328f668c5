package archive

import "strings"

// clean replaces invalid UTF-8 in text fields by U+FFFD, so that they are read back as stored.
// Bodies are not changed.
func (c *Conversation) clean() {
	for _, s := range []*string{&c.SourceID, &c.Title, &c.UserID, &c.Model, &c.Current, &c.ForkedFrom} {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	for i := range c.Empty {
		b := &c.Empty[i]
		b.Name, b.Of = strings.ToValidUTF8(b.Name, "\uFFFD"), strings.ToValidUTF8(b.Of, "\uFFFD")
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for _, s := range [...]*string{&n.ID, &n.Parent, &n.Role, &n.Name, &n.Type, &n.Model, &n.UserID, &n.Branch, &n.Aside} {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
		for k := range n.Attachments {
			a := &n.Attachments[k]
			a.Filename, a.Type = strings.ToValidUTF8(a.Filename, "\uFFFD"), strings.ToValidUTF8(a.Type, "\uFFFD")
		}
	}
}
