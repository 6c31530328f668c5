package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MaxEmbedded is the maximum number of bytes of a text that are embedded, from its start.
const MaxEmbedded = 32 << 10

// Limits of one call of an Embedder. A single text may be larger than the second one.
const (
	embedTexts = 128
	embedBytes = 256 << 10
)

// Embed implements Index.Embed.
func (x *fileIndex) Embed(ctx context.Context) error {
	if x.options.Embedder.Embed == nil {
		return fmt.Errorf("the search index has no embedder: %w", lineage.ErrInvalid)
	}
	if err := x.file.Acquire(ctx, x.embedding); err != nil {
		return err
	}
	defer x.embedding.Release()
	others, err := x.lockEmbedding(ctx)
	if err != nil {
		return x.file.Ended(ctx, fmt.Errorf("search index: %w", err))
	}
	defer others.Close()
	return x.file.Repaired(ctx, func() error { return x.embedAll(ctx) })
}

// lockFile is the suffix of a file that is locked by the process that embeds texts.
const lockFile = "-embedding"

// embedPatience is how long another process may take to embed one batch. After that, texts are embedded without the
// lock. That is harmless, because both processes store the same vectors.
const embedPatience = 2 * time.Minute

// lockEmbedding waits for other processes that embed texts, so that no text is embedded twice. Closing the
// file releases the lock.
func (x *fileIndex) lockEmbedding(ctx context.Context) (*os.File, error) {
	f, err := derivedfile.OpenOrCreate(x.file.Path() + lockFile)
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; {
		err := vfs.TryLock(f, false)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, vfs.ErrBusy) {
			var info os.FileInfo
			if info, err = f.Stat(); err == nil && time.Since(begun) > embedPatience && time.Since(info.ModTime()) > embedPatience {
				return f, nil
			}
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// embedAll embeds the texts that are pending after an update. It starts again if a collection removes the index in
// the meantime.
func (x *fileIndex) embedAll(ctx context.Context) error {
	var in, was *sql.DB
	for {
		if err := x.update(ctx, time.Time{}); err != nil {
			return err
		}
		if err := x.file.With(func(db *sql.DB) error { in = db; return nil }); err != nil || in == was {
			return err
		}
		if err := x.embedPending(ctx); err != nil {
			return fmt.Errorf("embed texts: %w", err)
		}
		was = in
	}
}

// embedPending embeds the texts that are pending now.
func (x *fileIndex) embedPending(ctx context.Context) error {
	var upto int64
	if err := x.file.With(func(db *sql.DB) (err error) { upto, err = x.useModel(ctx, db); return err }); err != nil {
		return err
	}
	for after := int64(0); after < upto; {
		var batch []unembedded
		err := x.file.With(func(db *sql.DB) (err error) { batch, after, err = x.nextPending(ctx, db, after, upto); return err })
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			continue
		}
		texts := make([]string, len(batch))
		for i, p := range batch {
			texts[i] = p.text
		}
		vectors, err := x.options.Embedder.Embed(ctx, texts)
		if err == nil && len(vectors) != len(texts) {
			err = fmt.Errorf("%d vectors for %d texts: %w", len(vectors), len(texts), lineage.ErrInvalid)
		}
		if err != nil {
			return derivedfile.NewOutside(err)
		}
		err = derivedfile.Patiently(ctx, func() error { // a retry does not call the embedder again
			return x.file.With(func(db *sql.DB) error { return x.keep(ctx, db, batch, vectors) })
		})
		if err != nil {
			return err
		}
		_ = os.Chtimes(x.file.Path()+lockFile, time.Time{}, time.Now()) // for processes that wait
	}
	return nil
}

// useModel makes all texts pending if their vectors are from another model. It returns the highest number of a
// pending text.
func (x *fileIndex) useModel(ctx context.Context, db *sql.DB) (upto int64, err error) {
	var model string
	err = db.QueryRowContext(ctx, `SELECT model FROM meta`).Scan(&model)
	if err == nil && model != x.options.Embedder.Model {
		err = changeModel(ctx, db, x.options.Embedder.Model)
	}
	if err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT IFNULL(MAX(text), 0) FROM pending`).Scan(&upto)
	return upto, err
}

func changeModel(ctx context.Context, db *sql.DB, model string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	changed, err := tx.ExecContext(ctx, `UPDATE meta SET model = ?1 WHERE model <> ?1`, model)
	if err != nil {
		return err
	}
	if n, err := changed.RowsAffected(); n == 0 || err != nil { // another process has done it
		return err
	}
	// Erased texts have no terms.
	_, err = tx.ExecContext(ctx, `DELETE FROM vectors; DELETE FROM pending;
		INSERT INTO pending SELECT number, id FROM texts WHERE substr(id, 16) <> ? AND number IN (SELECT rowid FROM terms)`, []byte{byte(searched.Name)})
	if err != nil {
		return err
	}
	return tx.Commit()
}

// unembedded is a text to embed, and one of its usages.
type unembedded struct {
	number  int64
	id      searched.TextID
	run     structure.RunID // or the summary
	seq     uint64
	kind    structure.UsageKind
	context structure.ContextID // of a summary
	text    string
}

// nextPending returns pending texts with numbers greater than after, and the number to continue after. It leaves out
// texts that nothing sees and texts that were erased since the last update.
func (x *fileIndex) nextPending(ctx context.Context, db *sql.DB, after, upto int64) (batch []unembedded, last int64, err error) {
	pending, err := pendingTexts(ctx, db, after, upto)
	if err != nil {
		return nil, 0, err
	}
	size := 0
	for _, p := range pending {
		if size >= embedBytes {
			return batch, after, nil
		}
		after = p.number
		if p.text, err = x.textToEmbed(ctx, &p); err != nil {
			return nil, 0, err
		}
		if p.text != "" {
			size += len(p.text)
			batch = append(batch, p)
		}
	}
	if len(pending) < embedTexts {
		after = upto
	}
	return batch, after, nil
}

// pendingTexts returns at most embedTexts pending texts that something sees, in order, without the texts themselves.
func pendingTexts(ctx context.Context, db *sql.DB, after, upto int64) (pending []unembedded, err error) {
	err = derivedfile.Each(ctx, db, func(scan func(...any) error) error {
		var p unembedded
		var id, key []byte
		var seq int64
		err := scan(&p.number, &id, &key, &seq, &p.kind)
		if err == nil && len(id) != len(p.id) {
			err = fmt.Errorf("text %d: %w", p.number, derivedfile.ErrUseless)
		}
		if err == nil {
			p.run, p.context, err = runOf(key, p.kind)
		}
		if err != nil {
			return err
		}
		p.id, p.seq = searched.TextID(id), uint64(seq)
		pending = append(pending, p)
		return nil
	}, `SELECT p.text, p.id, r.id, u.seq, o.kind
		FROM pending p CROSS JOIN usages u ON u.text = p.text
		CROSS JOIN runs r ON r.number = u.run AND u.seq <= r.reached CROSS JOIN roles o ON o.number = u.role
		WHERE p.text > ? AND p.text <= ? GROUP BY p.text ORDER BY p.text LIMIT ?`, after, upto, embedTexts)
	return pending, err
}

// textToEmbed returns the start of a text, "" if the store no longer has it.
func (x *fileIndex) textToEmbed(ctx context.Context, p *unembedded) (string, error) {
	id, err := x.contentOf(ctx, p)
	var b *structure.Block
	if err == nil {
		b, err = searched.BlockIn(ctx, x.store.View(), id)
	}
	if b == nil || err != nil {
		if errors.Is(err, backend.ErrNotFound) {
			err = nil
		}
		return "", err
	}
	text, err := searched.ReadText(ctx, x.store.View(), p.kind, b, p.id.Reading())
	if len(text) > MaxEmbedded {
		end := MaxEmbedded
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return text, err
}

// contentOf returns the id of the content of a text.
func (x *fileIndex) contentOf(ctx context.Context, p *unembedded) (content.ID, error) {
	if p.kind == searched.Summary {
		r, err := summaryIn(ctx, x.store, p.context, structure.SummaryID(p.run))
		if err != nil {
			return content.ID{}, err
		}
		return r.Content, nil
	}
	at := structure.SpanRef{Run: p.run, Seq: p.seq}
	for step, err := range x.store.View().Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil {
			return content.ID{}, err
		}
		for _, u := range step.Span.Usages {
			if searched.TextOf(u.Content, p.id.Reading()) == p.id {
				return u.Content, nil
			}
		}
	}
	return content.ID{}, fmt.Errorf("text %d in %v: %w", p.number, at, derivedfile.ErrUseless)
}

// keep stores vectors of texts that are still pending. In the meantime, a text may have been erased, or the index
// rebuilt or used with another model.
func (x *fileIndex) keep(ctx context.Context, db *sql.DB, batch []unembedded, vectors [][]float32) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	const those = ` FROM pending WHERE text = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM meta WHERE model = ?3)`
	add, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO vectors SELECT text, id, ?4`+those)
	if err != nil {
		return err
	}
	done, err := tx.PrepareContext(ctx, `DELETE`+those)
	if err != nil {
		return err
	}
	for i, p := range batch {
		if vector.HasDirection(vectors[i]) {
			if _, err := add.ExecContext(ctx, p.number, p.id[:], x.options.Embedder.Model, vector.Encode(vectors[i])); err != nil {
				return err
			}
		}
		if _, err := done.ExecContext(ctx, p.number, p.id[:], x.options.Embedder.Model); err != nil {
			return err
		}
	}
	return tx.Commit()
}
