package judge

import (
	"context"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

func (j *judging) block(i int, r *structure.Block) error {
	if err := j.requireTree(r); err != nil {
		return err
	}
	j.effects.Blocks.set(r.ID, Block{Record: i, Size: r.Size})
	j.effects.Counts.Blocks++
	j.effects.Counts.UniqueBytes += r.Size
	return j.revive(r.ID)
}

func (k *keys) block(r *structure.Block) {
	k.add(Key{Kind: KeyBlock, Hash: r.ID})
	k.add(Key{Kind: KeyErased, Hash: r.ID})
	if r.Tree.Size == 0 {
		return
	}
	k.add(Key{Kind: KeyChunk, Hash: r.Tree.Key})
	if k.wholeTrees {
		k.add(Key{Kind: KeyTree, Hash: r.Tree.Key})
	}
}

func (j *judging) chunk(i int, r *structure.Chunk) error {
	j.effects.Chunks.set(r.Key, Chunk{Record: i, Bytes: r.Bytes})
	j.effects.Counts.Chunks++
	return nil
}

func (k *keys) chunk(r *structure.Chunk) { k.add(Key{Kind: KeyChunk, Hash: r.Key}) }

// requireTree refuses a chunked block unless the root of its tree is stored or earlier in
// the commit, or with WholeTrees the whole tree.
func (j *judging) requireTree(r *structure.Block) error {
	if j.Replay || r.Tree.Size == 0 {
		return nil
	}
	requireChunk := func(k content.Key) error {
		if _, ok := j.effects.Chunks.Get(k); ok {
			return nil
		}
		ok, err := j.View.HasChunk(k)
		return required(ok, err, "chunk", k)
	}
	if err := requireChunk(r.Tree.Key); err != nil || !j.WholeTrees {
		return err
	}
	get := func(ctx context.Context, keys []content.Key) ([][]byte, error) {
		bodies := make([][]byte, len(keys))
		var stored []content.Key
		for i, k := range keys {
			if own, ok := j.effects.Chunks.Get(k); ok {
				bodies[i] = own.Bytes
			} else {
				stored = append(stored, k)
			}
		}
		read, err := j.View.Chunks(ctx, stored)
		if err != nil {
			return nil, err
		}
		for i, k := range keys {
			if _, own := j.effects.Chunks.Get(k); !own {
				bodies[i], read = read[0], read[1:]
			}
		}
		return bodies, nil
	}
	return content.Walk(context.Background(), r.Tree, get, func(k content.Key, _ bool) error { return requireChunk(k) })
}

// erase marks content as erased. Its record is not changed.
func (j *judging) erase(id content.ID) error {
	size, known, err := j.size(id)
	if err == nil && !known && j.Replay {
		return nil // collected
	}
	if err := required(known, err, "block", id); err != nil {
		return err
	}
	if erased, err := j.erased(id); err != nil || erased {
		return err
	}
	j.effects.Erased.set(id, true)
	j.effects.Counts.Erased++
	j.effects.Counts.Blocks--
	j.effects.Counts.UniqueBytes -= size
	return nil
}

func (k *keys) erase(id content.ID) {
	k.add(Key{Kind: KeyBlock, Hash: id})
	k.add(Key{Kind: KeyErased, Hash: id})
}

// revive ends the erasure of content that is stored again.
func (j *judging) revive(id content.ID) error {
	if erased, err := j.erased(id); err != nil || !erased {
		return err
	}
	j.effects.Erased.set(id, false)
	j.effects.Revived = append(j.effects.Revived, id)
	j.effects.Counts.Erased--
	return nil
}
