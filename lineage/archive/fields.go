package archive

import (
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// LargeField is the minimum size of a field that is stored as content, once for all conversations, instead of in the
// metadata.
const LargeField = 2 << 10

// Fields collects the fields of a conversation that are not messages.
type Fields struct {
	small rawjson.Object
	large []rawjson.Member
}

// Add adds a field.
func (f *Fields) Add(m rawjson.Member) {
	if len(m.Value) >= LargeField {
		f.large = append(f.large, m)
		return
	}
	f.small.Add(m)
}

// Keep adds the fields to the conversation. Small ones go to its metadata. Each large one goes to its log, as a
// message with the role "field" and the name of the field. Their values are in the text of an item.
func (c *Conversation) Keep(f *Fields, item Item) {
	c.Metadata = f.small.Bytes()
	large := func(yield func(Node) bool) {
		for i, m := range f.large {
			n := Node{Aside: lineage.AsideLog, Root: i == 0, Role: "field", Name: m.Key, Body: rawjson.Compact(item.Keep(m.Value)), Type: content.TypeJSON, At: item.At}
			if !yield(n) {
				return
			}
		}
	}
	if c.Rest == nil && !item.isMapped() {
		c.Nodes = slices.AppendSeq(c.Nodes, large)
	} else if len(f.large) > 0 {
		size := int64(0)
		for _, m := range f.large {
			size += item.Memory(m.Value)
		}
		c.AddRest(size, large)
	}
}
