package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// prefix is the start of a content id or of a chunk's key. It is long enough to be unique.
type prefix [16]byte

func prefixOf(id content.ID) prefix { return prefix(id[:len(prefix{})]) }

func (p prefix) compare(q prefix) int { return bytes.Compare(p[:], q[:]) }

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
	for r, err := range backend.AllRuns(ctx, s) {
		if err == nil {
			err = inv.run(ctx, s, r)
		}
		if err != nil {
			return nil, err
		}
	}
	for sum, err := range s.Summaries(ctx, structure.ContextID{}) {
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

// WriteTo writes the inventory. Equal inventories give equal bytes.
func (inv *Inventory) WriteTo(w io.Writer) (int64, error) {
	b := binary.LittleEndian.AppendUint32([]byte(inventoryMagic), inventoryVersion)
	for _, count := range []int{len(inv.runs), len(inv.contents), len(inv.chunks)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(count))
	}
	for _, id := range slices.SortedFunc(maps.Keys(inv.runs), structure.RunID.Compare) {
		end := inv.runs[id]
		b = binary.LittleEndian.AppendUint64(append(b, id[:]...), end.last)
		b = append(b, end.digest[:]...)
	}
	for _, set := range []map[prefix]struct{}{inv.contents, inv.chunks} {
		for _, p := range slices.SortedFunc(maps.Keys(set), prefix.compare) {
			b = append(b, p[:]...)
		}
	}
	sum := sha256.Sum256(b)
	n, err := w.Write(append(b, sum[:]...))
	if err != nil {
		err = fmt.Errorf("write inventory: %w", err)
	}
	return int64(n), err
}

// ReadFrom replaces the inventory by one that WriteTo wrote. If the input is damaged, the inventory is unchanged.
// ReadFrom returns ErrNoInventory if the input is not an inventory.
func (inv *Inventory) ReadFrom(from io.Reader) (int64, error) {
	begin := make([]byte, len(inventoryMagic))
	n, err := io.ReadFull(from, begin)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && string(begin) != inventoryMagic {
		return int64(n), ErrNoInventory
	}
	if err != nil {
		return int64(n), err
	}
	b, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(begin), from), int64(maxInventory)+1))
	if err != nil {
		return int64(len(b)), err
	}
	if len(b) > maxInventory {
		return int64(len(b)), fmt.Errorf("inventory of more than %d bytes: %w", maxInventory, lineage.ErrTooLarge)
	}
	read, err := decodeInventory(b)
	if err == nil {
		*inv = *read
	}
	return int64(len(b)), err
}

// maxInventory limits the memory for reading an inventory. Only a store with more than 50 million texts can reach it.
var maxInventory = 1 << 30

// inventoryHeader is the size of everything before the runs.
const inventoryHeader = len(inventoryMagic) + 4 + 3*8

// decodeInventory decodes bytes that begin with the magic of an inventory.
func decodeInventory(b []byte) (*Inventory, error) {
	end := len(b) - sha256.Size
	if end < inventoryHeader {
		return nil, corruptInventory(len(b), "cut short")
	}
	if v := binary.LittleEndian.Uint32(b[len(inventoryMagic):]); v > inventoryVersion {
		return nil, fmt.Errorf("inventory format %d, this program reads up to %d: %w", v, inventoryVersion, backend.ErrNewerFormat)
	} else if sha256.Sum256(b[:end]) != [sha256.Size]byte(b[end:]) || v != inventoryVersion {
		return nil, corruptInventory(end, "checksum does not match")
	}
	inv := NewInventory()
	count := func(i int) uint64 { return binary.LittleEndian.Uint64(b[inventoryHeader-(3-i)*8:]) }
	left := varint.Reader{Rest: b[inventoryHeader:end]}
	var before structure.RunID
	for range count(0) {
		r := left.Take(16 + 8 + 32)
		if left.Bad || structure.RunID(r[:16]).Compare(before) <= 0 {
			return nil, corruptInventory(end-len(left.Rest), "runs are not in order")
		}
		before = structure.RunID(r[:16])
		inv.runs[before] = runEnd{last: binary.LittleEndian.Uint64(r[16:]), digest: structure.Digest(r[24:])}
	}
	for i, set := range []map[prefix]struct{}{inv.contents, inv.chunks} {
		var before prefix
		for n := range count(i + 1) {
			p := left.Take(uint64(len(before)))
			if left.Bad || n > 0 && prefix(p).compare(before) <= 0 {
				return nil, corruptInventory(end-len(left.Rest), "content is not in order")
			}
			before = prefix(p)
			set[before] = struct{}{}
		}
	}
	if len(left.Rest) > 0 {
		return nil, corruptInventory(end-len(left.Rest), "there are bytes after the content")
	}
	return inv, nil
}

func corruptInventory(offset int, what string) error {
	return &backend.CorruptError{File: "inventory", Offset: int64(offset), What: what}
}
