package lineage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// BlockOptions configure content that is stored without a usage.
type BlockOptions struct {
	// Type is the media type. Default application/octet-stream.
	Type   string
	Origin content.BlockOrigin
}

// Put stores a body and returns its block. If the store has the same bytes already, nothing is stored, known is true,
// and the block is the existing one. The body is streamed, so its size is limited by the disk, not by memory.
func (s *Store) Put(ctx context.Context, body io.Reader, o BlockOptions) (block content.Block, known bool, err error) {
	if s.inTransaction() {
		return content.Block{}, false, errReaderInside
	}
	if o.Type == "" {
		o.Type = content.TypeBinary
	}
	var stored structure.Block
	receipt, err := s.writer.Make(ctx, func(b *write.Batch, t write.Try) error {
		if write.Gone(t.Err) {
			return t.Err // the body cannot be read twice
		}
		item := Item{Type: o.Type, Origin: o.Origin.By(content.Attribution{}), Reader: body, CreatedAt: b.Time()}
		if err := s.block(ctx, &item, &stored); err != nil {
			return err
		}
		b.Adopt(&stored)
		return nil
	})
	if err != nil {
		return content.Block{}, false, err
	}
	if len(receipt.Known) > 0 {
		blocks, err := s.engine.Blocks(ctx, []ContentID{stored.ID})
		if err != nil {
			return content.Block{}, false, err
		}
		return blocks[0].Block, true, nil
	}
	return stored.Block, false, nil
}

// block fills b with the record of an item's body, and stores the chunks of a large one.
func (s *Store) block(ctx context.Context, i *Item, b *structure.Block) error {
	body, r := i.Body, i.Reader
	if r != nil {
		head := make([]byte, content.InlineLimit+1)
		n, err := io.ReadFull(r, head)
		switch err {
		case nil:
			r = io.MultiReader(bytes.NewReader(head), r)
		case io.EOF, io.ErrUnexpectedEOF:
			body, r = head[:n:n], nil
		default:
			return fmt.Errorf("read body: %w", err)
		}
	} else if len(i.Body) > content.InlineLimit {
		r = bytes.NewReader(i.Body)
	}
	if r == nil {
		b.Hold(i.Type, i.Origin.OfBlock(), i.CreatedAt, body)
		return nil
	}
	stored, err := s.writer.Upload(ctx, content.Block{Type: i.Type, Origin: i.Origin.OfBlock(), CreatedAt: i.CreatedAt}, r)
	if err != nil {
		return fmt.Errorf("store body: %w", err)
	}
	*b = *stored
	return nil
}

// Body opens a body for reading. Large bodies are streamed. Chunks are verified as they are read. A body that is read
// from start to end is also verified as a whole, so that a mismatch is reported at its end at the latest.
func (s *Store) Body(ctx context.Context, id ContentID) (io.ReadSeeker, error) {
	blocks, err := s.engine.Blocks(ctx, []content.ID{id})
	if err != nil {
		return nil, err
	}
	if blocks[0].Tree.Size == 0 {
		return bytes.NewReader(blocks[0].Body), nil // checked by the engine
	}
	tree := content.OpenTree(ctx, blocks[0].Tree, s.engine.Chunks)
	return &largeBody{id: id, tree: tree, Reader: content.VerifyReader(tree, id)}, nil
}

// largeBody reads a body that is stored in chunks.
type largeBody struct {
	io.Reader // verifies the whole when read from the start
	tree      *content.TreeReader
	id        ContentID
}

// Seek implements io.Seeker.
func (b *largeBody) Seek(offset int64, whence int) (int64, error) {
	at, err := b.tree.Seek(offset, whence)
	if err != nil {
		return at, err
	}
	if b.Reader = b.tree; at == 0 {
		b.Reader = content.VerifyReader(b.tree, b.id)
	}
	return at, nil
}

// Original returns the body of an entry as it was given, of any size. If part of it was erased, the
// error matches ErrErased.
func (s *Store) Original(ctx context.Context, e *Entry) ([]byte, error) {
	if e.Body != nil {
		return e.Body, nil
	}
	m := e.message
	if m == nil {
		m = form.Whole(e.Content, e.Size)
	}
	body, err := form.NewReader(s.engine).Original(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("span %v: %w", e.Span, err)
	}
	return body, nil
}

// Text returns the text of an entry for people and models, whatever its size. For a message given as JSON it consists
// of its texts, a line for each tool call and each result, and a note for each file. If a part of the body was
// erased, the error matches ErrErased. Store.Transcript yields what people read.
func (s *Store) Text(ctx context.Context, e *Entry) (string, error) {
	if e.message == nil {
		body, err := s.Original(ctx, e)
		return string(body), err
	}
	pieces := slices.Clone(e.message.Pieces)
	r := form.NewReader(s.engine)
	for i := range pieces {
		if p := &pieces[i]; p.Kind != FilePiece {
			var err error
			if p.Body, err = r.Body(ctx, p); err != nil {
				return "", fmt.Errorf("span %v: %w", e.Span, err)
			}
		}
	}
	return form.Tell(pieces), nil
}

// Erase makes a content block unreadable. Histories that use it remain readable, with a marker in
// its place. The next Collect removes the bytes from the files. Storing the same bytes again
// reverts the erasure. Derived content stays: summaries that cover it (see Context.Summaries),
// edits, answers that quote it.
func (s *Store) Erase(ctx context.Context, id ContentID) error {
	return s.change(ctx, func(b *write.Batch, _ write.Try) error {
		b.Erase(id)
		return nil
	})
}

var errReaderInside = fmt.Errorf("body from a Reader inside a transaction, which may be retried: %w", ErrInvalid)
