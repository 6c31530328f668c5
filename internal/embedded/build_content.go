package embedded

import (
	"context"
	"encoding/binary"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// requireTree refuses a block that was cut unless the root of its tree is stored,
// or came before it in the commit. Whoever stored the root stored what is below it
// first; but a collection may have come in between, so from the first one on all of
// the tree has to be there.
func (b *builder) requireTree(i int, r *structure.Block) error {
	if b.replay || r.Tree.Size == 0 {
		return nil
	}
	own := make(map[content.Key][]byte)
	for i--; i >= 0; i-- {
		if c, ok := b.commit.Records[i].(*structure.Chunk); ok {
			own[c.Key] = c.Bytes
		}
	}
	there := func(k content.Key) error {
		if _, ok := own[k]; ok {
			return nil
		}
		return b.require(b.scratch(tableChunk, k[:hashPrefix]), "chunk", k)
	}
	if err := there(r.Tree.Key); err != nil || !b.engine.collected.Load() {
		return err
	}
	v := b.engine.now()
	defer v.release()
	reader := v.newReader()
	get := func(_ context.Context, keys []content.Key) (all [][]byte, err error) {
		for _, k := range keys {
			chunk, ok := own[k]
			if !ok {
				if chunk, err = v.chunk(reader, k); err != nil {
					return nil, err
				}
			}
			all = append(all, chunk)
		}
		return all, nil
	}
	return content.Walk(context.Background(), r.Tree, get, func(k content.Key, _ bool) error { return there(k) })
}

// erase marks content as erased. Its record stays where it is.
func (b *builder) erase(id content.ID) error {
	size, ok := b.blocks.get(id)
	if !ok {
		v, found, err := b.get(b.scratch(tableBlock, id[:hashPrefix]))
		if err != nil {
			return err
		}
		if !found && b.replay {
			return nil // collected
		}
		if !found {
			return &backend.SubjectError{Subject: "block", ID: id.String(), Err: backend.ErrNotFound}
		}
		p, err := readPlace(v)
		if err != nil {
			return err
		}
		size = p.size
	}
	k := b.slab.key(tableErased, id[:])
	if known, err := b.has(k); err != nil || known {
		return err
	}
	b.counts.erased++
	b.counts.blocks--
	b.counts.unique -= uint64(size)
	b.put(k, present)
	return nil
}

// revive takes back the erasure of content that is stored anew.
func (b *builder) revive(id content.ID) error {
	if b.counts.erased == 0 {
		return nil
	}
	k := b.slab.key(tableErased, id[:])
	if erased, err := b.has(k); err != nil || !erased {
		return err
	}
	b.put(k, nil)
	b.counts.erased--
	return b.leave(id)
}

// leave gives entries to the usages of a block in the commit that it was stored
// with: they were found there as long as that was its place.
func (b *builder) leave(id content.ID) error {
	own, err := view{engine: b.engine}.ownUsages(b, id, b.engine.barrier.Load())
	for _, u := range own {
		b.usage(id, u.commit, u.place, u.UsageID)
	}
	return err
}

// usage adds the entry of a usage, by the commit that it came with and its place
// among the usages there.
func (b *builder) usage(id content.ID, commit uint64, place uint32, u structure.UsageID) {
	k := b.slab.key(tableUsage, id[:hashPrefix], be64(commit), binary.BigEndian.AppendUint32(nil, place))
	start := b.slab.begin()
	b.slab.buf = binary.AppendUvarint(appendRef(b.slab.buf, u.Span), uint64(u.Index))
	b.put(k, b.slab.end(start))
}

// cut closes a run. Only a collection writes it, in place of spans.
func (b *builder) cut(r *structure.Cut) error {
	if !b.replay {
		return invalid("cut", r.Run, "no commit brings it")
	}
	b.put(b.slab.key(tableCut, r.Run[:]), present)
	b.cuts = append(b.cuts, r.Run)
	return nil
}
