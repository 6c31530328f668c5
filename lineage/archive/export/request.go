package export

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// dialects are the dialects of the formats for programs.
var dialects = map[Format]message.Dialect{
	OpenAI: message.OpenAI, Responses: message.Responses, Anthropic: message.Anthropic, ShareGPT: message.OpenAI,
}

// ForPrograms reports whether the format is JSON for programs, not for people.
func (f Format) ForPrograms() bool { return dialects[f] != "" }

// request writes a history for the API of a format.
func (x *exporter) request(ctx context.Context, conv *conversation, entries history, format Format) (*lineage.Request, error) {
	r, err := x.store.Encode(ctx, dialects[format], x.o.MaxBody, iter.Seq2[*lineage.Entry, error](entries))
	if err != nil {
		return nil, err
	}
	for _, l := range r.Losses {
		x.o.Lost(Loss{Thread: conv.info.ID, Loss: l})
	}
	return r, nil
}
