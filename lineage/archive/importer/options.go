package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/structure"
)

// Options configure an import. A zero field means its default.
type Options struct {
	// Format is the name of the archive's format. Default: detected for each file.
	Format string
	// Formats are the formats to detect. Default formats.All().
	Formats []archive.Format
	// UserID is the user of conversations for which the archive names none.
	UserID string
	// Prefix is prepended to source ids, to separate archives whose ids collide. It has at most 1024 bytes.
	Prefix string
	// Limits protect against hostile archives.
	Limits archive.Limits
	// Unsynced leaves it to the caller to make the import durable with Store.Sync.
	Unsynced bool
	// Progress, when not nil, is called from time to time, never by two goroutines at once.
	Progress func(Progress)
	// Metadata is a JSON object whose members are added to the metadata of each conversation.
	Metadata []byte
	// Rows asks formats that read databases to fill Conversation.Rows.
	Rows bool
	// Hold is archive.ReadOptions.Hold. Messages that are left out have to be imported later.
	Hold func(changed time.Time, complete bool) bool
	// Path is the path on disk of a [Growing] input. It is needed to read files beside it.
	Path string
	// Files, when not nil, records files, so that unchanged ones are not read again.
	Files *Files
	// Outlines, when not nil, is what earlier imports into the store have read of threads.
	Outlines *Outlines
	// Placed, when not nil, gets the lines of a [Growing] input with the spans of their nodes. It gets each line
	// once, in order, after the commits that contain the spans.
	Placed func([]Line)
}

// maxPrefix limits Options.Prefix, so that source ids with a prefix are not too long.
const maxPrefix = 1 << 10

// reading returns the options for reading the archive, or an error if an option is invalid.
func (o Options) reading() (archive.ReadOptions, error) {
	r := archive.ReadOptions{Format: o.Format, Formats: o.Formats, Limits: o.Limits, Rows: o.Rows, Hold: o.Hold, Path: o.Path}
	if o.Metadata != nil && (!rawjson.Valid(o.Metadata) || !rawjson.IsObject(o.Metadata)) {
		return r, fmt.Errorf("metadata of conversations: %w", archive.Malformed("not a JSON object"))
	}
	if len(o.Prefix) > maxPrefix {
		return r, fmt.Errorf("prefix of source ids: %d bytes, at most %d: %w", len(o.Prefix), maxPrefix, lineage.ErrInvalid)
	}
	if r.Formats == nil {
		r.Formats = formats.All()
	}
	if o.Files != nil {
		o.Files.setOptions(o.sum(r.Formats))
		r.Unchanged = o.Files.unchanged
	}
	return r, nil
}

// sum returns a checksum of the options that decide how files are read, the formats, and the version of this program.
func (o *Options) sum(formats []archive.Format) string {
	var b place.Fields
	for _, text := range []string{o.Format, o.UserID, o.Prefix, string(o.Metadata), buildOf()} {
		b.Text(text)
	}
	for i := range formats {
		b.Text(formats[i].Name)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// buildOf returns a string that identifies this version of the program.
func buildOf() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	version := info.Main.Version + info.Main.Sum
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			version += " " + s.Value
		}
	}
	return version
}

// Line is a line of a growing input.
type Line struct {
	archive.RawLine
	// Nodes are the messages and records read from the line, in order. There are none for a line that is blank or
	// damaged.
	Nodes []PlacedNode
}

// PlacedNode is a node with its span in the store.
type PlacedNode struct {
	*archive.Node
	Span structure.SpanRef
	// Kept is set if the store has the message in another serialization.
	Kept bool
	// Copied is set if the span belongs to another conversation, in which the message has another id or time. The
	// node then has the body and metadata of that message, and no id or time.
	Copied bool
}
