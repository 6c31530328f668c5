package agents

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// CopilotDocuments reads sessions of the first versions of Copilot CLI: a file with one object per session, written whole at each save.
func CopilotDocuments() archive.Format {
	return archive.Format{
		Name: "copilot-json",
		Detect: func(h archive.Head) bool {
			first := h.Object()
			return rawjson.Has(first, "sessionId", "startTime", "chatMessages") || rawjson.Has(first, "sessionId", "startTime", "timeline")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := newCopilotSession(in, yield)
				s.readObjects(ctx, s.document)
			}
		},
	}
}

// document reads a whole session.
func (s *copilotSession) document(raw []byte, at archive.Position) {
	if s.id != "" {
		s.log("", "", "", raw, time.Time{}, at)
		return
	}
	s.chat(raw, at)
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "sessionId", "startTime", "selectedModel", "chatMessages":
		case "timeline": // what was shown to the user
			for entry := range rawjson.Elements(m.Value) {
				created := archive.ParseTime(rawjson.Get(entry, "timestamp"))
				s.log(rawjson.Str(rawjson.Get(entry, "type")), "", "", entry, created, at)
				s.at(created)
			}
		default:
			s.field(m, at)
		}
	}
}
