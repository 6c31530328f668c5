package search

import (
	"cmp"
	"context"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/structure"
)

// indexedText is a text in the index: its number, and how many words it has.
type indexedText struct{ number, words int64 }

// role is the kind of a usage and, for a message, its role.
type role struct {
	kind structure.UsageKind
	name string
}

// writer applies a window in a transaction.
type writer struct {
	*derivedfile.Writer
	words query.Terms

	spans, text int64 // the number of steps, and the highest number of a text
	model       string
	erased      bool // table erased is not empty

	roles    map[role]int64
	contents map[searched.TextID]indexedText
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
func (f *writer) addUsages(ctx context.Context, run int64, s *structure.Span, blocks map[content.ID]*structure.Block) error {
	at := usage{run: run, seq: s.Ref.Seq}
	return searched.Mentions(s, func(m searched.Mention) (err error) {
		at.head = m.Head
		if at.role, err = f.roleNumber(ctx, role{m.Kind, m.Role}); err != nil {
			return err
		}
		if m.Name == "" {
			return f.addContent(ctx, at, m.Usage, blocks)
		}
		text, err := f.indexed(ctx, searched.TextOfName(m.Name), func() (string, error) { return m.Name, nil })
		if err != nil {
			return err
		}
		return f.use(ctx, at, text)
	})
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
	if !searched.HasBody(b) {
		var err error
		if b, err = searched.BlockIn(ctx, f.Snapshot, u.Content); b == nil {
			return err
		}
		blocks[u.Content] = b
	}
	r := searched.ReadingOf(u, b)
	if r == form.Unread {
		return nil
	}
	text, err := f.indexed(ctx, searched.TextOf(u.Content, r), func() (string, error) { return searched.ReadText(ctx, f.Snapshot, u.Kind, b, r) })
	if err != nil {
		return err
	}
	return f.use(ctx, at, text)
}

// indexed returns an indexed text. If it is not indexed, it is loaded with load and added.
func (f *writer) indexed(ctx context.Context, id searched.TextID, load func() (string, error)) (indexedText, error) {
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

func (f *writer) addText(ctx context.Context, id searched.TextID, text string) (indexedText, error) {
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
	searched.EachTerm(f.words, text, func(term string) {
		words++
		b.WriteString(cmp.Or(term, noTerm))
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
func (f *writer) pend(ctx context.Context, id searched.TextID, text int64) error {
	if f.model == "" || id.Reading() == searched.Name {
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
