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

// BlockOptions describe content that is stored by itself.
type BlockOptions struct {
	// Type is the media type. Default application/octet-stream.
	Type   string
	Origin content.BlockOrigin
}

// Put stores a body and returns its block. known reports that the store had the
// same bytes: then nothing was stored, and the block is the one first recorded.
// The body is streamed: its size is bounded by the disk, not by memory.
func (s *Store) Put(ctx context.Context, body io.Reader, o BlockOptions) (block content.Block, known bool, err error) {
	if s.inTransaction() {
		return content.Block{}, false, errReaderInside
	}
	if o.Type == "" {
		o.Type = content.TypeBinary
	}
	var is structure.Block
	receipt, err := s.writer.Make(ctx, func(b *write.Batch, t write.Try) error {
		if write.Gone(t.Err) {
			return t.Err // the body was read
		}
		item := Item{Type: o.Type, Origin: o.Origin.By(content.Attribution{}), Reader: body, CreatedAt: b.Time()}
		if err := s.block(ctx, &item, &is); err != nil {
			return err
		}
		b.Adopt(&is)
		return nil
	})
	if err != nil {
		return content.Block{}, false, err
	}
	if len(receipt.Known) > 0 {
		blocks, err := s.engine.Blocks(ctx, []ContentID{is.ID})
		if err != nil {
			return content.Block{}, false, err
		}
		return blocks[0].Block, true, nil
	}
	return is.Block, false, nil
}

// block makes b the record of an item's body. The chunks of a body that is too
// large to be kept whole are stored on the way.
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
	is, err := s.writer.Upload(ctx, content.Block{Type: i.Type, Origin: i.Origin.OfBlock(), CreatedAt: i.CreatedAt}, r)
	if err != nil {
		return fmt.Errorf("store body: %w", err)
	}
	*b = *is
	return nil
}

// Body opens a body for reading, which checks what it returns. Pieces are checked as they are
// read, and what is read from the start to the end also as a whole: a body that is not what its
// id says fails at its end at the latest. Large bodies are streamed.
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

// largeBody reads a body that is kept in pieces.
type largeBody struct {
	io.Reader // checks the whole as long as it is read from the start
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

// Original returns what was given for an entry, byte for byte and whatever its size. If some
// of it was erased, the error matches ErrErased.
func (s *Store) Original(ctx context.Context, e *Entry) ([]byte, error) {
	if e.Body != nil {
		return e.Body, nil
	}
	said := e.said
	if said == nil {
		said = form.Whole(e.Content, e.Size)
	}
	body, err := form.NewReader(s.engine).Original(ctx, said)
	if err != nil {
		return nil, fmt.Errorf("span %v: %w", e.Span, err)
	}
	return body, nil
}

// Text returns what an entry says, as Entry.Text does, whatever its size. If some of it was
// erased, the error matches ErrErased.
func (s *Store) Text(ctx context.Context, e *Entry) (string, error) {
	if e.said == nil {
		body, err := s.Original(ctx, e)
		return string(body), err
	}
	pieces := slices.Clone(e.said.Pieces)
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

// Erase takes a content block's bytes out of everything that reads the store.
// Histories that use it still read, with a marker in its place. The bytes leave
// the store's files with the next Collect. Storing the same bytes again takes the
// erasure back. What was made of it is other content and stays: summaries that
// cover it (see Context.Summaries), edits, answers that quote it.
func (s *Store) Erase(ctx context.Context, id ContentID) error {
	return s.change(ctx, func(b *write.Batch, _ write.Try) error {
		b.Erase(id)
		return nil
	})
}
