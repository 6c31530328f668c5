package agents

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// CodexDocuments reads sessions of Codex as it was before it was written in Rust: a file with one object per session.
func CodexDocuments() archive.Format {
	return archive.Format{
		Name: "codex-json",
		Detect: func(h archive.Head) bool {
			first := h.Object()
			return rawjson.Has(rawjson.Get(first, "session"), "timestamp", "id") && (rawjson.Has(first, "items") || len(h.Bytes) == archive.HeadSize)
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				r := rollout{sessionReader: newSessionReader(in, yield)}
				r.about.agent = "codex"
				r.readObjects(ctx, r.document)
			}
		},
	}
}

// document reads a whole session. Its items have no time, and its time is that of the last save.
func (r *rollout) document(raw []byte, at archive.Position) {
	session := rawjson.Get(raw, "session")
	if r.id != "" || !rawjson.IsObject(session) {
		r.log("", "", "", raw, time.Time{}, at)
		return
	}
	r.meta(session, at)
	r.part.Updated = r.part.Created
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "session":
		case "items":
			for item := range rawjson.Elements(m.Value) {
				if !rawjson.IsObject(item) {
					r.part.Skip(at, archive.Malformed("an item that is not an object"))
					continue
				}
				r.bareItem(item, at)
			}
		default:
			r.field(m, at)
		}
	}
}
