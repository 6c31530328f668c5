package archive

import "github.com/lineage-store/lineage/internal/rawjson"

// BesideMessages reports whether a context, by its metadata, holds what an import
// keeps beside messages: events, snapshots, large fields. Such a context is not a
// history that people read.
func BesideMessages(contextMetadata []byte) bool {
	if checkJSON(contextMetadata) != nil {
		return false
	}
	return rawjson.Str(rawjson.Get(contextMetadata, "aside")) == asideLog
}

// largeField is the size from which a field of a conversation is kept beside its
// messages: as content, which is stored once however many conversations have it.
const largeField = 2 << 10

// fields gathers what is known of a conversation beside its messages.
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

// keep puts the fields into the conversation: small ones into its metadata, each
// large one into its log, as a message of the role "field" under the field's name.
func (c *Conversation) keep(f *fields, at Position) {
	c.Metadata = f.small.bytes()
	for i, m := range f.large {
		c.Nodes = append(c.Nodes, Node{
			Aside: asideLog, Root: i == 0, Role: "field", Name: m.Key, Body: compactJSON(m.Value), Type: typeJSON, At: at,
		})
	}
}
