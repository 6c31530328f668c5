package importer

import (
	"context"
	"reflect"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// maxStated limits the size of a message, in bytes, that is searched for the usage that it states.
const maxStated = 1 << 20

// sameUsage returns a rule for a placer. A message with the same texts as a version in the store is a new version if
// it states other tokens or costs. Some programs write an answer before its usage is known.
func sameUsage(ctx context.Context, from form.Blocks) func(*place.Message, *structure.Span) (bool, error) {
	forms := form.NewReader(from)
	return func(m *place.Message, version *structure.Span) (bool, error) {
		blocks := make(map[content.ID]*structure.Block, len(m.Contents))
		for i := range m.Contents {
			if c := &m.Contents[i]; c.Block != nil {
				blocks[c.ID] = c.Block
			}
		}
		now, err := answers(ctx, forms, m.Usages, blocks)
		if err != nil {
			return false, err
		}
		was, err := answers(ctx, forms, version.Usages, blocks)
		return reflect.DeepEqual(now, was), err
	}
}

// answers returns the answers whose usage the message of a span states.
func answers(ctx context.Context, forms *form.Reader, usages []structure.Usage, blocks map[content.ID]*structure.Block) (all []message.Answer, err error) {
	for i := 0; i < len(usages); i = form.End(usages, i) {
		u := &usages[i]
		if u.Kind != structure.MessageUsage || !message.MayStateUsage(u.Role) || u.Opaque {
			continue
		}
		r := message.Record{Role: u.Role}
		if r.Body, r.Metadata, err = forms.Stated(ctx, usages, i, blocks, maxStated); err != nil {
			return nil, err
		}
		if message.MentionsUsage(r.Body) || message.MentionsUsage(r.Metadata) {
			all = append(all, message.Usage(r)...)
		}
	}
	return all, nil
}
