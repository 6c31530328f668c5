package importer

import "github.com/lineage-store/lineage/lineage/archive"

// Progress is the progress of an import.
type Progress struct {
	// Read is the number of bytes read from the source, before decompression.
	Read int64
	// File is the input being read.
	File string

	Conversations, Messages, NewMessages int64
}

// Report is the result of an import.
type Report struct {
	// Formats are the formats found.
	Formats []string
	// Unchanged is the number of files that were not read because they have not changed since an earlier import.
	Unchanged int64
	// Conversations and Messages are the numbers in the archive.
	Conversations, Messages int64
	// NewConversations and NewMessages are the numbers added. SharedMessages counts messages that forked and resumed
	// conversations share with their original. After a failure, these and NewBytes describe what is in the store. A
	// conversation counts as soon as its beginning is stored.
	NewConversations, NewMessages, SharedMessages int64
	// Kept counts messages that the store already has with the same content in another serialization. The store keeps
	// its version.
	Kept int64
	// NewBytes is the size of new content.
	NewBytes int64
	// Converted counts messages whose bytes the store cannot return completely: see Node.Converted. Opaque counts
	// JSON messages that are stored whole instead of in pieces, because they have more than 16 MiB or 1,000 pieces.
	Converted, Opaque int64
	// Skipped are items that could not be used. Repaired are irregular items that were used. The counts include those
	// that are not listed.
	Skipped, Repaired           []*archive.Damage
	SkippedCount, RepairedCount int64
	// Ignored are files in no known format.
	Ignored      []string
	IgnoredCount int64
}

// damages adds the skipped and repaired items of a part of a conversation.
func (r *Report) damages(c *archive.Conversation) {
	for _, d := range c.Repairs {
		r.repair(d)
	}
	for _, d := range c.Skipped {
		r.skip(d)
	}
	r.RepairedCount += c.RepairsMore
	r.SkippedCount += c.SkippedMore
}

func (r *Report) skip(d *archive.Damage) {
	if r.SkippedCount++; r.SkippedCount <= archive.MaxReported {
		r.Skipped = append(r.Skipped, d)
	}
}

func (r *Report) repair(d *archive.Damage) {
	if r.RepairedCount++; r.RepairedCount <= archive.MaxReported {
		r.Repaired = append(r.Repaired, d)
	}
}
