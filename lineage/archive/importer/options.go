package importer

import (
	"fmt"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/structure"
)

// Options configure an import. The zero value of each field is its default.
type Options struct {
	// Format is the name of the archive's format. Default: detected for each file.
	Format string
	// Formats are the formats to detect. Default Formats().
	Formats []archive.Format
	// UserID is the user of conversations for which the archive names none.
	UserID string
	// Prefix is put before source ids, to separate archives with colliding ids.
	Prefix string
	// Limits protect against hostile archives.
	Limits archive.Limits
	// Unsynced leaves it to the caller to make what was imported durable, with Store.Sync.
	Unsynced bool
	// Progress, when not nil, is called from time to time, by one goroutine at a time.
	Progress func(Progress)
	// Metadata is a JSON object whose members are added to the metadata of each conversation.
	Metadata []byte
	// Rows asks formats that read databases for Conversation.Rows.
	Rows bool
	// Path is the path on disk of a [Growing] input, for what is beside it.
	Path string
	// Files, when not nil, are files that are not read again if they have not changed.
	Files *Files
	// Placed, when not nil, gets the lines of a [Growing] input with the spans of their nodes, each line once
	// and in order, after the commits that have them.
	Placed func([]Line)
}

// reading returns the options of reading. It is an error if options are invalid.
func (o Options) reading() (archive.ReadOptions, error) {
	r := archive.ReadOptions{Format: o.Format, Formats: o.Formats, Limits: o.Limits, Rows: o.Rows, Path: o.Path}
	if o.Metadata != nil && (!rawjson.Valid(o.Metadata) || !rawjson.IsObject(o.Metadata)) {
		return r, fmt.Errorf("metadata of conversations: %w", archive.Malformed("not a JSON object"))
	}
	if r.Formats == nil {
		r.Formats = formats.All()
	}
	if o.Files != nil {
		o.Files.setOptions(&o, r.Formats)
		r.Unchanged = o.Files.unchanged
	}
	return r, nil
}

// Line is a line of a growing input.
type Line struct {
	archive.RawLine
	// Nodes are the messages and records that were read from the line, in order; none for a line that is blank
	// or cannot be read.
	Nodes []PlacedNode
}

// PlacedNode is a node with its span in the store.
type PlacedNode struct {
	*archive.Node
	Span structure.SpanRef
	// Kept is set if the store has the message in another serialization.
	Kept bool
	// Copied is set if the span belongs to another conversation, in which the message has another id or time: then
	// the node has the body and metadata of that one, and no id and time.
	Copied bool
}
