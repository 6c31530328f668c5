package chat

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// message is a message being loaded.
type message struct {
	Message
	content place.Message
	// hasOriginal is set if content is the original, not made from the data, and originalAsked once that was asked for.
	hasOriginal, originalAsked bool
}

// version is a new version of a message.
type version struct {
	id     string
	parent Ref
	was    structure.SpanRef // the latest version in the store, zero for none
	// message is nil if the content is the same and only the parent differs.
	message *message
}

// derive sets the content that the message was derived from, unless its own content is equal.
func (m *message) derive(from content.ID) {
	u := &m.content.Usages[0]
	if from == u.Content {
		from = content.ID{}
	}
	u.Origin.ParentID = from
	if b := m.content.Contents[0].Block; b != nil {
		b.Origin.ParentID = from
	}
}

// asData returns a message to place, made from its data.
func asData(m *Message) (place.Message, error) {
	i, created := itemOf(m), time.UnixMilli(m.CreatedAt).UTC()
	origin := i.Origin.OfBlock()
	origin.Kind = content.OriginOfRole(i.Role)
	head := structure.Usage{
		Kind: structure.MessageUsage, Role: i.Role, Type: i.Type, By: i.Origin.Attribution(), Origin: &origin,
		SourceID: i.SourceID, Metadata: i.Metadata, CreatedAt: created,
	}
	out := place.Message{ID: m.ID}
	var err error
	out.Usages, err = write.Message(nil, head, i.Type, i.Body, out.Store)
	for _, c := range out.Contents {
		if c.Block != nil {
			c.Block.CreatedAt = created
		}
	}
	return out, err
}

// itemOf returns the content of a message, without its time and without what it was derived from.
func itemOf(m *Message) lineage.Item {
	i := lineage.Item{Role: m.Name, Body: m.Data, Type: content.TypeJSON, SourceID: m.ID}
	if m.Type != TypeMessage {
		i.Metadata = typeMetadata(m.Type)
	}
	i.Origin = lineage.Origin{UserID: m.Origin.UserID, ModelID: m.Origin.ModelID, SourceID: m.Origin.SourceID}
	return i
}
