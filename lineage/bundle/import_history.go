package bundle

import (
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// history adds what is new of a commit of blocks, span sets and spans.
func (im *importer) history(c *structure.Commit) error {
	defer im.coming.reset()
	laid := make([][]structure.Record, len(c.Records))
	used := make(map[content.ID]bool) // by a span that is added, or only by others
	spans, err := im.newSpans(c, laid, used)
	if err != nil {
		return err
	}
	blocks, err := im.newBlocks(c, laid, used)
	if err != nil {
		return err
	}
	if err := im.needs(used); err != nil {
		return err
	}
	batch := im.batch()
	defer im.writer.Release(batch)
	for _, records := range laid {
		batch.Adopt(records...)
	}
	receipt, err := im.commitHistory(batch)
	if err != nil {
		return err
	}
	im.report.Spans += spans
	im.report.Blocks += blocks - uint64(len(receipt.Known))
	return nil
}

// newSpans lays out the spans and span sets of a commit that are new, and notes the content
// that spans use. It returns the number of spans.
func (im *importer) newSpans(c *structure.Commit, laid [][]structure.Record, used map[content.ID]bool) (spans uint64, err error) {
	for i, r := range c.Records {
		switch r := r.(type) {
		case *structure.Span:
			if laid[i], err = im.lay(r); err != nil {
				return 0, err
			}
			added := len(laid[i]) > 0
			if added {
				spans++
			}
			for k := range r.Usages {
				for _, id := range r.Usages[k].Named(nil) {
					used[*id] = used[*id] || added
				}
			}
		case *structure.SpanSet:
			if laid[i], err = im.spanSet(r); err != nil {
				return 0, err
			}
		}
	}
	return spans, nil
}

// newBlocks lays out the blocks of a commit that are to be stored, and takes them out of the
// content that is used. It returns their number.
func (im *importer) newBlocks(c *structure.Commit, laid [][]structure.Record, used map[content.ID]bool) (blocks uint64, err error) {
	for i, r := range c.Records {
		b, ok := r.(*structure.Block)
		if !ok {
			continue
		}
		// What only spans use that are here is here too, or was erased. Spans that are
		// added later may leave it to this block what it says.
		added, some := used[b.ID]
		if some && !added {
			if _, err := im.describe(b); err != nil && !errors.Is(err, backend.ErrNotFound) {
				return 0, err
			}
			continue
		}
		wanted, err := im.wants(b, added)
		if err != nil {
			return 0, err
		}
		if wanted {
			laid[i] = []structure.Record{b}
			blocks++
			delete(used, b.ID)
		}
	}
	return blocks, nil
}

// commitHistory commits a history. Source ids that lead to other messages here are left out.
func (im *importer) commitHistory(b *write.Batch) (backend.Receipt, error) {
	for _, r := range b.Records() {
		if s, ok := r.(*structure.Span); ok {
			im.fill(s)
		}
	}
	receipt, err := im.commit(b)
	before := make(map[string]bool)
	for refused, again := isSourceTaken(err); again; refused, again = isSourceTaken(err) {
		// Of a thread that is not here nothing is found, though it is taken.
		unseen := ""
		if before[refused] {
			unseen = refused
		}
		before[refused] = true
		if err := im.freeSources(b.Records(), unseen); err != nil {
			return receipt, err
		}
		receipt, err = im.commit(b)
	}
	return receipt, err
}

func (im *importer) spanSet(s *structure.SpanSet) ([]structure.Record, error) {
	if _, known := im.coming.sets[s.ID]; known {
		return nil, nil
	}
	_, err := im.engine.SpanSet(im.ctx, s.ID)
	if err == nil || !errors.Is(err, backend.ErrNotFound) {
		return nil, err
	}
	im.coming.sets[s.ID] = struct{}{}
	own := *s
	own.Parent = im.here(s.Parent)
	return []structure.Record{&own}, nil
}

// settled reports whether content need not be brought: it is here, or was erased.
func (im *importer) settled(id content.ID) (bool, error) {
	if im.fresh {
		return false, nil
	}
	if has, err := im.has(id); err != nil || has {
		return has, err
	}
	return im.isErased(id)
}

// isErased tells content that was erased from content that is not here.
func (im *importer) isErased(id content.ID) (bool, error) {
	_, err := im.engine.Blocks(im.ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrErased):
		return true, nil
	case errors.Is(err, backend.ErrNotFound):
		return false, nil
	}
	return false, err
}

// needs finds content that spans which are added use, and that was erased here. They
// bring it anew, and as it may have come by already it is fetched in the end.
func (im *importer) needs(used map[content.ID]bool) error {
	if im.fresh {
		return nil
	}
	var ids []content.ID
	for id, added := range used {
		if added {
			ids = append(ids, id)
		}
	}
	has, err := im.engine.Has(im.ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if has[i] {
			continue
		}
		erased, err := im.isErased(id)
		if err != nil {
			return err
		}
		if erased {
			im.revive[id] = struct{}{}
		}
	}
	return nil
}

// revived stores content that was erased here and is used anew.
func (im *importer) revived(tag byte, c *structure.Commit) error {
	switch tag {
	case entryBody:
		_, wanted := im.revive[c.Records[0].(*structure.Block).ID]
		im.known = !wanted
	case entryChunks:
		return im.chunks(c)
	case entryHistory:
		for _, r := range c.Records {
			b, ok := r.(*structure.Block)
			if !ok {
				continue
			}
			if _, wanted := im.revive[b.ID]; !wanted {
				continue
			}
			if err := im.checkTree(b); err != nil {
				return err
			}
			if err := im.put(func(batch *write.Batch) { batch.Adopt(b) }); err != nil {
				return err
			}
			delete(im.revive, b.ID)
			im.report.Blocks++
		}
	}
	return nil
}

// wants reports whether a block is to be stored, which a span that is added uses or
// not.
func (im *importer) wants(b *structure.Block, added bool) (bool, error) {
	settled, err := im.settled(b.ID)
	if err != nil {
		return false, err
	}
	if settled && added && b.Tree.Size == 0 {
		if settled, err = im.has(b.ID); err != nil {
			return false, err
		}
	}
	if settled {
		return false, im.keep(b)
	}
	return true, im.checkTree(b)
}

func (im *importer) has(id content.ID) (bool, error) {
	has, err := im.engine.Has(im.ctx, []content.ID{id})
	return err == nil && has[0], err
}

// checkTree reads a large block, whose id is what the bundle says.
func (im *importer) checkTree(b *structure.Block) error {
	if b.Tree.Size == 0 {
		return nil
	}
	body := content.VerifyReader(content.OpenTree(im.ctx, b.Tree, im.engine.Chunks), b.ID)
	if _, err := io.Copy(io.Discard, body); err != nil {
		if im.ctx.Err() != nil || errors.Is(err, backend.ErrNotFound) {
			return err
		}
		return im.corrupt("block %v: %v", b.ID, err)
	}
	return nil
}

// chunks stores chunks, unless the body that they are of is here.
func (im *importer) chunks(c *structure.Commit) error {
	if im.known {
		return nil
	}
	chunks := make([]*structure.Chunk, len(c.Records))
	for i, r := range c.Records {
		chunks[i] = r.(*structure.Chunk)
	}
	added, err := im.engine.Upload(im.ctx, chunks)
	im.report.Chunks += uint64(added)
	return err
}

// keep leaves content as it is here, and counts it if it was erased.
func (im *importer) keep(b *structure.Block) error {
	erased, err := im.describe(b)
	if erased {
		im.report.Kept++
	}
	return err
}

// describe remembers what the bundle says of content that is here, if the store says
// otherwise: usages there left it to the block. It reports whether it was erased here.
func (im *importer) describe(b *structure.Block) (erased bool, err error) {
	is, err := im.engine.Blocks(im.ctx, []content.ID{b.ID})
	if erased = errors.Is(err, backend.ErrErased); err != nil && !erased {
		return false, err
	}
	if erased || is[0].Type != b.Type || is[0].Origin != b.Origin {
		im.differ[b.ID] = b.Block
	}
	return erased, nil
}

// fill gives the usages of a span that is added what they left to their blocks.
func (im *importer) fill(s *structure.Span) {
	if len(im.differ) == 0 {
		return
	}
	for i := range s.Usages {
		if b, differs := im.differ[s.Usages[i].Content]; differs {
			s.Usages[i].Settle(&b)
		}
	}
}

// erased leaves a marker for content that was erased in the other store.
func (im *importer) erased(b *structure.Block) error {
	settled, err := im.settled(b.ID)
	if err != nil {
		return err
	}
	if settled {
		erased, err := im.isErased(b.ID)
		if err != nil || erased {
			return err
		}
		im.report.Kept++
		return im.keep(b)
	}
	if b.Size == 0 {
		b = structure.NewBlock(b.Type, b.Origin, b.CreatedAt, nil)
	}
	err = im.put(func(batch *write.Batch) {
		batch.Adopt(b)
		batch.Erase(b.ID)
	})
	if err == nil {
		im.report.Erased++
	}
	return err
}

func isSourceTaken(err error) (sourceID string, taken bool) {
	var subject *backend.SubjectError
	taken = errors.As(err, &subject) && subject.Subject == "source id" && errors.Is(err, backend.ErrExists)
	if taken {
		sourceID = subject.ID
	}
	return sourceID, taken
}

// freeSources takes from usages the source ids that lead to others here.
func (im *importer) freeSources(records []structure.Record, refused string) error {
	homes := make(map[structure.RunID]structure.Home)
	taken := make(map[lookup]struct{})
	for _, r := range records {
		switch r := r.(type) {
		case *structure.Run:
			homes[r.ID] = r.Home
		case *structure.Span:
			home, ok := homes[r.Ref.Run]
			if !ok {
				run, err := im.engine.Run(im.ctx, r.Ref.Run)
				if err != nil {
					return err
				}
				home = run.Home
				homes[r.Ref.Run] = home
			}
			for i := range r.Usages {
				u := &r.Usages[i]
				if u.Lookup == 0 {
					continue
				}
				l := lookup{home, u.SourceID, u.Lookup}
				_, twice := taken[l]
				if !twice {
					var err error
					if twice, err = im.isTaken(l); err != nil {
						return err
					}
				}
				if taken[l] = struct{}{}; twice || refused == fmt.Sprintf("%.80q", u.SourceID) {
					u.Lookup = 0
					im.report.Sources++
				}
			}
		}
	}
	return nil
}

// lookup is what a usage is found by.
type lookup struct {
	home   structure.Home
	source string
	number uint64
}

// isTaken reports whether something is found here by what a usage is to be found by.
func (im *importer) isTaken(l lookup) (bool, error) {
	for found, err := range im.engine.Find(im.ctx, l.source, l.home.Thread, backend.Found{}) {
		if err != nil || found.Home == l.home && found.Lookup == l.number {
			return err == nil, err
		}
	}
	return false, nil
}
