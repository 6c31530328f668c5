package search

import (
	"bytes"
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/structure"
)

// Limits for the indexed part of a text, in bytes and words.
const (
	maxText  = form.MaxMessage
	maxWords = query.PieceWords - 1
)

// name is the reading for names of documents and files, distinct from those of content.
const name form.Reading = 0xff

// readings are the readings of content.
var readings = [...]form.Reading{form.Plain, form.Values, form.Call, form.Data}

// textID identifies a text: the first 15 bytes of its content id, and the reading.
type textID [16]byte

func textOf(id content.ID, r form.Reading) (t textID) {
	copy(t[:15], id[:])
	t[15] = byte(r)
	return t
}

func (t textID) reading() form.Reading { return form.Reading(t[15]) }

// indexedText is a text in the index: its number, and how many words it has.
type indexedText struct{ number, words int64 }

// role is the kind of a usage; for messages with the role.
type role struct {
	kind structure.UsageKind
	name string
}

// summary is the kind for summaries.
const summary structure.UsageKind = 0

// writer applies a window in a transaction.
type writer struct {
	*derivedfile.Writer
	words query.Terms

	spans, text int64 // the number of steps, and the highest number of a text
	model       string
	erased      bool // table erased is not empty

	roles    map[role]int64
	contents map[textID]indexedText
}

// addSpan indexes a step. blocks are those of its commit.
func (f *writer) addSpan(ctx context.Context, s *structure.Span, blocks map[content.ID]*structure.Block) error {
	run, err := f.RunNumber(ctx, s.Ref.Run)
	if err != nil {
		return err
	}
	f.spans++
	if err := f.Exec(ctx, `UPDATE runs SET last = ? WHERE number = ?`, int64(s.Ref.Seq), run); err != nil {
		return err
	}
	return f.addUsages(ctx, run, s, blocks)
}

// addUsages indexes the usages of a step that are not indexed yet.
func (f *writer) addUsages(ctx context.Context, run int64, s *structure.Span, blocks map[content.ID]*structure.Block) (err error) {
	at := usage{run: run, seq: s.Ref.Seq}
	for i := range s.Usages {
		u := &s.Usages[i]
		if u.Kind != structure.PartUsage {
			at.head = i
			if at.role, err = f.roleNumber(ctx, role{u.Kind, u.Role}); err != nil {
				return err
			}
		}
		if named := nameOf(u); named != "" {
			text := indexedText{}
			text, err = f.indexed(ctx, textOf(content.Sum([]byte(named)), name), func() (string, error) { return named, nil })
			if err == nil {
				err = f.use(ctx, at, text)
			}
			if err != nil {
				return err
			}
		}
		if err := f.addContent(ctx, at, u, blocks); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the name of a document or file.
func nameOf(u *structure.Usage) string {
	if u.Kind == structure.DocumentUsage {
		return u.Document
	}
	return u.Filename
}

// usage is the place of a usage.
type usage struct {
	run  int64
	seq  uint64
	head int
	role int64
}

func (f *writer) addContent(ctx context.Context, at usage, u *structure.Usage, blocks map[content.ID]*structure.Block) error {
	b := blocks[u.Content]
	if b == nil || b.Body == nil && b.Tree.Size == 0 {
		var err error
		if b, err = derivedfile.BlockIn(ctx, f.Snapshot, u.Content); b == nil {
			return err
		}
		blocks[u.Content] = b
	}
	r := readingOf(u, b)
	if r == form.Unread {
		return nil
	}
	text, err := f.indexed(ctx, textOf(u.Content, r), func() (string, error) { return readText(ctx, f.Snapshot, u.Kind, b, r) })
	if err != nil {
		return err
	}
	return f.use(ctx, at, text)
}

// readingOf returns how to read the content of a usage.
func readingOf(u *structure.Usage, b *structure.Block) form.Reading {
	if u.Kind != structure.MessageUsage && u.Kind != structure.PartUsage || u.Opaque {
		return form.Plain
	}
	mediaType := u.Type
	if mediaType == "" {
		mediaType = b.Type
	}
	return form.ReadingOf(u.Piece, mediaType == content.TypeJSON)
}

// readText returns the searched text of a block. It is empty for documents, files and messages that
// are not text.
func readText(ctx context.Context, from form.Blocks, kind structure.UsageKind, b *structure.Block, r form.Reading) (string, error) {
	body := b.Body
	if b.Tree.Size > 0 {
		var err error
		if body, err = io.ReadAll(io.LimitReader(content.OpenTree(ctx, b.Tree, from.Chunks), maxText)); err != nil {
			return "", err
		}
		for range utf8.UTFMax - 1 { // an incomplete character at the end
			if last, size := utf8.DecodeLastRune(body); last != utf8.RuneError || size != 1 {
				break
			}
			body = body[:len(body)-1]
		}
	}
	switch kind {
	case structure.DocumentUsage, structure.AssetUsage:
		if bytes.IndexByte(body, 0) >= 0 || !utf8.Valid(body) {
			return "", nil
		}
	case structure.MessageUsage:
		if r == form.Plain && !utf8.Valid(body) {
			return "", nil
		}
	}
	return r.Text(body), nil
}

// indexed returns an indexed text. If it is not indexed, it is loaded with load and added.
func (f *writer) indexed(ctx context.Context, id textID, load func() (string, error)) (indexedText, error) {
	if k, ok := f.contents[id]; ok {
		return k, nil
	}
	var k indexedText
	found, err := f.Get(ctx, `SELECT number, words FROM texts WHERE id = ?`, []any{id[:]}, &k.number, &k.words)
	if err == nil && !found {
		var text string
		if text, err = load(); err == nil {
			k, err = f.addText(ctx, id, text)
		}
	}
	if err == nil {
		f.contents[id] = k
	}
	return k, err
}

func (f *writer) addText(ctx context.Context, id textID, text string) (indexedText, error) {
	terms, words := f.terms(text)
	if words == 0 {
		return indexedText{}, nil
	}
	f.text++
	if err := f.Exec(ctx, `INSERT INTO texts VALUES (?, ?, ?)`, id[:], f.text, words); err != nil {
		return indexedText{}, err
	}
	if err := f.Exec(ctx, `INSERT INTO terms (rowid, words) VALUES (?, ?)`, f.text, terms); err != nil {
		return indexedText{}, err
	}
	return indexedText{f.text, words}, f.pend(ctx, id, f.text)
}

// noTerm replaces a word without a term, to keep the positions of the others.
const noTerm = "\ufffd"

// terms returns the terms of a text, separated by spaces, and their number.
func (f *writer) terms(text string) (string, int64) {
	var b strings.Builder
	b.Grow(len(text))
	words := int64(0)
	query.EachWord(text, func(start, end int) {
		if words == maxWords {
			return
		}
		words++
		if term := f.words.Of(text[start:end]); term != "" {
			b.WriteString(term)
		} else {
			b.WriteString(noTerm)
		}
		b.WriteByte(' ')
	})
	return b.String(), words
}

// use records a usage of a text.
func (f *writer) use(ctx context.Context, at usage, text indexedText) error {
	if text.number == 0 {
		return nil
	}
	return f.Exec(ctx, `INSERT OR IGNORE INTO usages VALUES (?, ?, ?, ?, ?, ?)`, text.number, at.run, int64(at.seq), at.head, at.role, text.words)
}

func (f *writer) roleNumber(ctx context.Context, r role) (n int64, err error) {
	if n, known := f.roles[r]; known {
		return n, nil
	}
	if err = f.Exec(ctx, `INSERT OR IGNORE INTO roles (kind, name) VALUES (?, ?)`, int(r.kind), r.name); err == nil {
		_, err = f.Get(ctx, `SELECT number FROM roles WHERE kind = ? AND name = ?`, []any{int(r.kind), r.name}, &n)
	}
	f.roles[r] = n
	return n, err
}

// pend makes a text pending if the index has embeddings. Names are not embedded.
func (f *writer) pend(ctx context.Context, id textID, text int64) error {
	if f.model == "" || id.reading() == name {
		return nil
	}
	return f.Exec(ctx, `INSERT INTO pending VALUES (?, ?)`, text, id[:])
}

// forget removes the embedding of a text.
func (f *writer) forget(ctx context.Context, text int64) error {
	if err := f.Exec(ctx, `DELETE FROM vectors WHERE text = ?`, text); err != nil {
		return err
	}
	return f.Exec(ctx, `DELETE FROM pending WHERE text = ?`, text)
}
