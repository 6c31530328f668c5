package bundle

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// history adds the new records in a commit of blocks, span sets and spans.
func (im *importer) history(c *structure.Commit) error {
	im.pending = newPending()
	placed := make([][]structure.Record, len(c.Records))
	used := make(map[content.ID]bool) // by content id; true if a new span uses it
	spans, err := im.newSpans(c, placed, used)
	if err != nil {
		return err
	}
	blocks, err := im.newBlocks(c, placed, used)
	if err != nil {
		return err
	}
	if err := im.noteErased(used); err != nil {
		return err
	}
	batch := im.batch()
	defer im.writer.Release(batch)
	for _, records := range placed {
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

// newSpans places the new spans and span sets of a commit, and records the content that they use. It returns the
// number of new spans.
func (im *importer) newSpans(c *structure.Commit, placed [][]structure.Record, used map[content.ID]bool) (spans uint64, err error) {
	for i, r := range c.Records {
		switch r := r.(type) {
		case *structure.Span:
			if placed[i], err = im.place(r); err != nil {
				return 0, err
			}
			added := len(placed[i]) > 0
			if added {
				spans++
			}
			for k := range r.Usages {
				for _, id := range r.Usages[k].Named(nil) {
					used[*id] = used[*id] || added
				}
			}
		case *structure.SpanSet:
			if placed[i], err = im.spanSet(r); err != nil {
				return 0, err
			}
		}
	}
	return spans, nil
}

// newBlocks places the blocks of a commit that must be stored, and deletes them from used. It returns their number.
func (im *importer) newBlocks(c *structure.Commit, placed [][]structure.Record, used map[content.ID]bool) (blocks uint64, err error) {
	for i, r := range c.Records {
		b, ok := r.(*structure.Block)
		if !ok {
			continue
		}
		ours, erased, err := im.find(b.ID)
		if err != nil {
			return 0, err
		}
		// If only known spans use the block, the store has it or has erased it. An erased large block is stored again
		// at the end, because its chunks are in earlier entries.
		byNew, isUsed := used[b.ID]
		onlyByKnown := isUsed && !byNew
		if onlyByKnown || ours != nil || erased && (!byNew || b.Tree.Size > 0) {
			im.keep(b, ours, erased)
			continue
		}
		if err := im.checkTree(b); err != nil {
			return 0, err
		}
		placed[i] = []structure.Record{b}
		blocks++
		delete(used, b.ID)
	}
	return blocks, nil
}

// commitHistory commits a history. A new message whose source id belongs to another message in the store is added
// without its source id.
func (im *importer) commitHistory(b *write.Batch) (backend.Receipt, error) {
	for _, r := range b.Records() {
		if s, ok := r.(*structure.Span); ok {
			im.fill(s)
		}
	}
	receipt, err := im.commit(b)
	before := make(map[string]bool)
	for refused, again := isSourceTaken(err); again; refused, again = isSourceTaken(err) {
		// The source id may be taken in a thread that the import has not created yet, so that it cannot be looked up.
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
	if err == nil {
		err = im.rememberSources(b.Records())
	}
	return receipt, err
}

// rememberSources records the source ids of messages that were added to threads that the store does not have yet.
func (im *importer) rememberSources(records []structure.Record) error {
	missing := make(map[structure.ThreadID]bool)
	return im.eachSource(records, func(l sourceKey, _ *structure.Usage) error {
		unseen, known := missing[l.home.Thread]
		if !known {
			_, err := im.engine.Thread(im.ctx, l.home.Thread)
			if unseen = errors.Is(err, backend.ErrNotFound); err != nil && !unseen {
				return err
			}
			missing[l.home.Thread] = unseen
		}
		if unseen {
			im.sources.add(l)
		}
		return nil
	})
}

func (im *importer) spanSet(s *structure.SpanSet) ([]structure.Record, error) {
	if im.pending.sets[s.ID] {
		return nil, nil
	}
	_, err := im.engine.SpanSet(im.ctx, s.ID)
	if err == nil || !errors.Is(err, backend.ErrNotFound) {
		return nil, err
	}
	im.pending.sets[s.ID] = true
	local := *s
	local.Parent = im.local(s.Parent)
	return []structure.Record{&local}, nil
}

// bodyEntry stores the chunks of bodies that the store does not have, and checks the bodies.
func (im *importer) bodyEntry(e *decodedEntry) error {
	switch e.tag {
	case entryBody:
		return im.description(e.tag, e.block())
	case entryChunks:
		return im.chunks(e.commit)
	case entryHistory:
		for _, r := range e.commit.Records {
			b, ok := r.(*structure.Block)
			if !ok || b.Tree.Size == 0 {
				continue
			}
			ours, erased, err := im.find(b.ID)
			if err == nil && ours == nil && !erased {
				err = im.checkTree(b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// reviveEntry stores content that was erased in the store and is used again.
func (im *importer) reviveEntry(e *decodedEntry) error {
	switch e.tag {
	case entryBody:
		im.skipChunks = !im.revive[e.block().ID]
	case entryChunks:
		return im.chunks(e.commit)
	case entryHistory:
		for _, r := range e.commit.Records {
			b, ok := r.(*structure.Block)
			if !ok || !im.revive[b.ID] {
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

// checkTree compares the hash of a large block's body with the id in the bundle.
func (im *importer) checkTree(b *structure.Block) error {
	if b.Tree.Size == 0 || im.checked[b.ID] {
		return nil
	}
	body := content.VerifyReader(content.OpenTree(im.ctx, b.Tree, im.engine.Chunks), b.ID)
	if _, err := io.Copy(io.Discard, body); err != nil {
		if im.ctx.Err() != nil || errors.Is(err, backend.ErrNotFound) {
			return err
		}
		return im.in.corrupt("block %v: %v", b.ID, err)
	}
	im.checked[b.ID] = true
	return nil
}

// chunks stores chunks, unless the store has their body.
func (im *importer) chunks(c *structure.Commit) error {
	if im.skipChunks {
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

// keep counts content that stays erased. It also records the bundle's description of content that the store has or
// has erased.
func (im *importer) keep(b, ours *structure.Block, erased bool) {
	if erased {
		im.report.Kept++
	}
	if erased || ours != nil && (ours.Type != b.Type || ours.Origin != b.Origin) {
		im.descriptions[b.ID] = b.Block // usages may depend on its defaults
	}
}

// fill sets the values of a new span's usages explicitly where their block has other defaults in the store.
func (im *importer) fill(s *structure.Span) {
	for i := range s.Usages {
		if b, differs := im.descriptions[s.Usages[i].Content]; differs {
			s.Usages[i].Settle(&b)
		}
	}
}

// description records a large block whose chunks follow, or an omitted block. Content that was erased in the other
// store and is unknown in this one is marked as erased.
func (im *importer) description(tag byte, b *structure.Block) error {
	ours, erased, err := im.find(b.ID)
	switch {
	case err != nil:
		return err
	case tag == entryBody:
		im.skipChunks = ours != nil || erased
		return nil
	case tag == entryLeft:
		im.keep(b, ours, erased)
		return nil
	case erased: // erased in both stores
		return nil
	case ours != nil:
		im.report.Kept++
		im.keep(b, ours, false)
		return nil
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

// freeSources removes the source ids of usages if other messages in the store have them.
func (im *importer) freeSources(records []structure.Record, refused string) error {
	taken := make(map[sourceKey]bool)
	return im.eachSource(records, func(key sourceKey, u *structure.Usage) error {
		duplicate := taken[key] || im.sources.has(key)
		if !duplicate {
			var err error
			if duplicate, err = im.isTaken(key); err != nil {
				return err
			}
		}
		taken[key] = true
		if duplicate || refused == fmt.Sprintf("%.80q", u.SourceID) {
			u.Lookup = 0
			im.report.Sources++
		}
		return nil
	})
}

// eachSource visits the usages of new spans that are found by a source id.
func (im *importer) eachSource(records []structure.Record, visit func(l sourceKey, u *structure.Usage) error) error {
	homes := make(map[structure.RunID]structure.Home)
	for _, r := range records {
		switch r := r.(type) {
		case *structure.Run:
			homes[r.ID] = r.Home
		case *structure.Span:
			if !slices.ContainsFunc(r.Usages, func(u structure.Usage) bool { return u.Lookup > 0 }) {
				continue
			}
			home, known := homes[r.Ref.Run]
			if !known {
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
				if err := visit(sourceKey{home, u.SourceID, u.Lookup}, u); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isTaken reports whether a message in the store has a source key.
func (im *importer) isTaken(l sourceKey) (bool, error) {
	for found, err := range im.engine.Find(im.ctx, l.source, l.home.Thread, backend.Found{}) {
		if err != nil || found.Home == l.home && found.Lookup == l.number {
			return err == nil, err
		}
	}
	return false, nil
}
