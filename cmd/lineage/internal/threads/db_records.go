package threads

import (
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
)

func millis(t int64) time.Time { return time.UnixMilli(t).UTC() }

// refID returns the id of a message for programs, nil for none.
func refID(r chat.Ref) *string {
	if r == "" {
		return nil
	}
	id := string(r)
	return &id
}

// newChatMessageRecord returns the record of a message that a database keeps.
func newChatMessageRecord(m *chat.Message, position uint64) *show.ReadMessage {
	r := &show.ReadMessage{Said: m.Transcribe(), Message: records.Message{
		ID: m.ID, Position: position, Kind: "message", Role: m.Name, ContentID: content.Sum(m.Data).String(),
		MediaType: content.TypeJSON, Size: int64(len(m.Data)), Parent: refID(m.ParentID), Text: form.Text(m.Data, m.Name),
		Data: records.JSON(m.Data), SourceID: m.ID, CreatedAt: millis(m.CreatedAt),
	}}
	if o := m.Origin; o != (chat.Origin{}) {
		r.Origin = &records.Origin{
			Kind: content.OriginOfRole(m.Name).String(), User: o.UserID, Model: o.ModelID, Source: o.SourceID, DerivedFrom: o.DerivedFrom,
		}
	}
	if string(m.Data) == "null" {
		r.Text, r.Data, r.Erased = "", nil, true
	}
	r.Said.Position = position
	return r
}
