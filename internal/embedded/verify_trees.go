package embedded

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// trees reads every chunked body and compares it with its id.
func (v *verifier) trees(state view) error {
	for e, err := range state.Index.Scan(keys.Of(keys.TableBlock), keys.PrefixEnd(keys.Of(keys.TableBlock))) {
		if err != nil {
			return err
		}
		p, err := keys.ReadLocation(e.Value)
		if err != nil {
			return err
		}
		if p.Size <= content.InlineLimit {
			continue
		}
		object, _, err := read.ReadObject(state.Commits.NewReader(), e.Value)
		b, ok := object.(*structure.Block)
		if err == nil && ok && b.Tree.Size > 0 {
			err = v.tree(state, b)
		}
		if err := v.progress(0); err != nil {
			return err
		}
		if err != nil {
			if err := v.found(backend.Finding{
				Subject: "block", ID: fmt.Sprintf("%x…", e.Key[1:]), File: v.engine.journal.SegmentName(p.Frame.Segment), Offset: p.Record, Problem: err.Error(),
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) tree(state view, b *structure.Block) error {
	if ok, err := state.NotErased(b.ID); err != nil || !ok {
		return err
	}
	h := content.NewHasher()
	if _, err := content.OpenTree(v.ctx, b.Tree, state.Chunks).WriteTo(h); err != nil {
		return err
	}
	if h.ID() != b.ID {
		return errors.New("body does not match its id")
	}
	return nil
}
