package agents

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Pi reads sessions of pi: a file of JSON lines per session, with entries that form a tree.
func Pi() archive.Format {
	return archive.Format{
		Name: "pi", Grows: true,
		Tried: "sessions that pi 0.73.1 wrote",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				kind := rawjson.Str(rawjson.Get(line, "type"))
				switch {
				case kind == "session" && rawjson.Has(line, "id", "timestamp", "cwd"),
					kind == "message" && rawjson.Has(line, "id", "timestamp", "message") && rawjson.Has(rawjson.Get(line, "message"), "role"):
					return !isOpenClaw(h)
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := newPiSession("pi", in, yield)
				s.readLines(ctx, s.line)
			}
		},
	}
}
