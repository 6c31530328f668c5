package place

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Message is a message as its source states it.
type Message struct {
	// ID identifies the message in its thread. It is the source id of a usage, in most messages the first. If it is
	// empty, the message is identified by what it says.
	ID string
	// Usages are the content of the message, with their types and origins. A usage with a Lookup can be found by its
	// source id too, and is added under the next number of that id.
	Usages []structure.Usage
	// Contents are the contents that the usages refer to, in order; see [Message.Store].
	Contents []Content
	// Behind is set if the source is older than the store. If the store has another version of the message, its id
	// keeps leading to that version, and this one is added without being found by its id.
	Behind bool
	// Apart begins a new run even if the run of the previous span could be continued.
	Apart bool
	// Body is the message as the source has it. It is only needed with Rules.Copies.
	Body []byte
	// Record is set for a record of the source that is not a message: ids and times in its body belong to its line.
	Record bool
}

// Content is content that a message refers to.
type Content struct {
	ID content.ID
	// Block holds the content. It is nil for a body that is too large for a block; such a body is uploaded if it is
	// new.
	Block *structure.Block
	// Type and Kind describe Body.
	Type string
	Kind content.OriginKind
	Body []byte
}

// Contents are the contents in a batch, with their sizes.
type Contents map[content.ID]int64

// Store adds content to a message: see write.StoreFunc.
func (m *Message) Store(mediaType string, kind content.OriginKind, body []byte) (content.ID, error) {
	c := Content{Type: mediaType, Kind: kind}
	if len(body) > content.InlineLimit {
		c.ID, c.Body = content.Sum(body), body
	} else {
		c.Block = structure.NewBlock(mediaType, content.BlockOrigin{Kind: kind}, time.Time{}, body)
		c.ID = c.Block.ID
	}
	m.Contents = append(m.Contents, c)
	return c.ID, nil
}

// metadata returns the metadata of the message, or nil.
func (m *Message) metadata() []byte {
	u := &m.Usages[0]
	if u.MetadataContent.IsZero() {
		return u.Metadata
	}
	for i := range m.Contents {
		if c := &m.Contents[i]; c.ID == u.MetadataContent {
			if c.Block != nil {
				return c.Block.Body
			}
			return c.Body
		}
	}
	return nil
}
