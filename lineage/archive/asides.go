package archive

import "github.com/lineage-store/lineage/internal/rawjson"

// largeField is the size from which a field of a conversation is stored as content, which is stored
// once for all conversations.
const largeField = 2 << 10

// fields collects the fields of a conversation that are not messages.
type fields struct {
	small jsonObject
	large []rawjson.Member
}

func (f *fields) add(m rawjson.Member) {
	if len(m.Value) >= largeField {
		f.large = append(f.large, m)
		return
	}
	f.small.add(m)
}

// keep adds the fields to the conversation: small ones to its metadata, each large one to its log,
// as a message with the role "field" and the field's name.
func (c *Conversation) keep(f *fields, at Position) {
	c.Metadata = f.small.bytes()
	for i, m := range f.large {
		c.Nodes = append(c.Nodes, Node{
			Aside: asideLog, Root: i == 0, Role: "field", Name: m.Key, Body: compactJSON(m.Value), Type: typeJSON, At: at,
		})
	}
}
