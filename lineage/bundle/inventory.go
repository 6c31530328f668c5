package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// prefix is the start of a content id or of the key of a chunk. No two have the same prefix.
type prefix [16]byte

func prefixOf(id content.ID) prefix { return prefix(id[:len(prefix{})]) }

// runEnd is the last place of a run and the digest of the history up to it.
type runEnd struct {
	last   uint64
	digest structure.Digest
}

// Inventory lists what a store has: the ends of its runs, and the content that their spans use.
type Inventory struct {
	runs     map[structure.RunID]runEnd
	contents map[prefix]struct{}
	chunks   map[prefix]struct{}
}

// NewInventory returns the inventory of an empty store.
func NewInventory() *Inventory {
	return &Inventory{runs: make(map[structure.RunID]runEnd), contents: make(map[prefix]struct{}), chunks: make(map[prefix]struct{})}
}

// Take returns the inventory of a store. It reads every history once.
func Take(ctx context.Context, store *lineage.Store) (*Inventory, error) {
	return backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (*Inventory, error) { return take(ctx, s) })
}

func take(ctx context.Context, s backend.Reader) (*Inventory, error) {
	inv := NewInventory()
	after := []structure.RunID{{}}
	for len(after) > 0 {
		id := after[len(after)-1]
		after = after[:len(after)-1]
		for r, err := range s.Forks(ctx, id) {
			if err != nil {
				return nil, err
			}
			if err := inv.run(ctx, s, r); err != nil {
				return nil, err
			}
			after = append(after, r.ID)
		}
	}
	for c, err := range s.Contexts(ctx, structure.ThreadID{}, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		for sum, err := range s.Summaries(ctx, c.ID) {
			if err != nil {
				return nil, err
			}
			blocks, err := s.Blocks(ctx, []content.ID{sum.Content})
			if errors.Is(err, backend.ErrErased) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if err := inv.block(ctx, s, blocks[0]); err != nil {
				return nil, err
			}
		}
	}
	return inv, nil
}

func (inv *Inventory) run(ctx context.Context, s backend.Reader, r structure.RunInfo) error {
	last, err := s.Last(ctx, r.ID)
	if err != nil || last.IsZero() {
		return err
	}
	end := runEnd{last: last.Seq}
	if end.digest, err = s.Digest(ctx, last); err != nil {
		return err
	}
	inv.runs[r.ID] = end
	for step, err := range s.Path(ctx, last, structure.Window{From: r.Position(1)}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return err
		}
		for _, b := range step.Blocks {
			if err := inv.block(ctx, s, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// block adds a block that was not erased, and the chunks of a large one.
func (inv *Inventory) block(ctx context.Context, s backend.Reader, b *structure.Block) error {
	p := prefixOf(b.ID)
	if _, known := inv.contents[p]; known || b.Gone() {
		return nil
	}
	if b.Size == 0 {
		if has, err := s.Has(ctx, []content.ID{b.ID}); err != nil || !has[0] {
			return err
		}
	}
	inv.contents[p] = struct{}{}
	if b.Tree.Size == 0 {
		return nil
	}
	return content.Walk(ctx, b.Tree, s.Chunks, func(key content.Key, _ bool) error {
		inv.chunks[prefixOf(content.ID(key))] = struct{}{}
		return nil
	})
}

const (
	inventoryMagic   = "LINEAGEI"
	inventoryVersion = 1
)

// WriteTo writes the inventory. The same content gives the same bytes.
func (inv *Inventory) WriteTo(w io.Writer) (int64, error) {
	sum := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	var n int64
	put := func(p []byte) {
		m, _ := b.Write(p) // an error stays until Flush
		n += int64(m)
	}
	put(binary.LittleEndian.AppendUint32([]byte(inventoryMagic), inventoryVersion))
	for _, count := range []int{len(inv.runs), len(inv.contents), len(inv.chunks)} {
		put(binary.LittleEndian.AppendUint64(nil, uint64(count)))
	}
	for _, id := range slices.SortedFunc(maps.Keys(inv.runs), structure.RunID.Compare) {
		end := inv.runs[id]
		put(id[:])
		put(binary.LittleEndian.AppendUint64(nil, end.last))
		put(end.digest[:])
	}
	for _, set := range []map[prefix]struct{}{inv.contents, inv.chunks} {
		for _, p := range slices.SortedFunc(maps.Keys(set), func(a, b prefix) int { return bytes.Compare(a[:], b[:]) }) {
			put(p[:])
		}
	}
	if err := b.Flush(); err != nil {
		return n, fmt.Errorf("write inventory: %w", err)
	}
	m, err := w.Write(sum.Sum(nil))
	return n + int64(m), err
}

// ReadFrom replaces the inventory by one that WriteTo wrote. It changes nothing if that is damaged,
// and returns ErrNoInventory if the input is not an inventory.
func (inv *Inventory) ReadFrom(from io.Reader) (int64, error) {
	r := inventoryReader{r: bufio.NewReaderSize(from, 1<<16), sum: sha256.New()}
	got := NewInventory()
	err := r.inventory(got)
	if err == nil {
		*inv = *got
	}
	return r.n, err
}

type inventoryReader struct {
	r   *bufio.Reader
	sum hash.Hash
	n   int64
}

func (r *inventoryReader) corrupt(what string) error {
	return &backend.CorruptError{File: "inventory", Offset: r.n, What: what}
}

func (r *inventoryReader) take(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.n += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.corrupt("cut short")
	}
	r.sum.Write(b)
	return err
}

// begins returns ErrNoInventory if the file is not an inventory.
func (r *inventoryReader) begins() error {
	b, err := r.r.Peek(len(inventoryMagic))
	switch {
	case string(b) == inventoryMagic:
		return nil
	case err == nil, errors.Is(err, io.EOF):
		return ErrNoInventory
	}
	return err
}

func (r *inventoryReader) inventory(inv *Inventory) error {
	if err := r.begins(); err != nil {
		return err
	}
	var h [36]byte
	if err := r.take(h[:12]); err != nil {
		return err
	}
	if v := binary.LittleEndian.Uint32(h[8:]); v > inventoryVersion {
		return fmt.Errorf("inventory format %d, this program reads up to %d: %w", v, inventoryVersion, backend.ErrNewerFormat)
	}
	if err := r.take(h[12:]); err != nil {
		return err
	}
	var before structure.RunID
	for range binary.LittleEndian.Uint64(h[12:]) {
		var b [56]byte
		if err := r.take(b[:]); err != nil {
			return err
		}
		id := structure.RunID(b[:16])
		if id.Compare(before) <= 0 {
			return r.corrupt("runs are not in order")
		}
		before = id
		inv.runs[id] = runEnd{last: binary.LittleEndian.Uint64(b[16:]), digest: structure.Digest(b[24:])}
	}
	for i, set := range []map[prefix]struct{}{inv.contents, inv.chunks} {
		var before prefix
		for n := range binary.LittleEndian.Uint64(h[20+8*i:]) {
			var p prefix
			if err := r.take(p[:]); err != nil {
				return err
			}
			if n > 0 && bytes.Compare(p[:], before[:]) <= 0 {
				return r.corrupt("content is not in order")
			}
			before = p
			set[p] = struct{}{}
		}
	}
	want := r.sum.Sum(nil)
	var sum [sha256.Size]byte
	if err := r.take(sum[:]); err != nil {
		return err
	}
	if !bytes.Equal(sum[:], want) || binary.LittleEndian.Uint32(h[8:]) != inventoryVersion {
		return r.corrupt("checksum does not match")
	}
	return nil
}
