package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/manifest"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/structure"
)

// recorder records the lines of a file.
type recorder struct {
	store    *lineage.Store
	machine  Machine
	about    SourceOf
	recorded Recorded // including what is not committed yet
	context  *lineage.Context
	tip      lineage.SpanRef
	// was is the tip of the source that is replaced, zero if nothing was recorded. Unless seen is set, it is looked
	// up when the first lines are committed.
	was  lineage.SpanRef
	seen bool
	// whole is set if a part of the recording is of no use: the source changes only when all of it is committed.
	whole bool
	// staged is the context for the new content of a source, if that is too large for one commit: the source does not
	// change until all of it is committed. Otherwise nil.
	staged *lineage.Context

	builder *manifest.Builder
	hash    hash.Hash
	items   []lineage.Item                        // lines to keep whole, and whole blocks
	kept    map[[sha256.Size]byte]lineage.SpanRef // lines of the file before it was rewritten; nil unless it was
	rewrote bool                                  // the source continues after the content before the rewrite
	size    int                                   // of items
	spans   int64                                 // committed spans of the current file
	err     error
}

// flushSize is the size of the lines and blocks in a commit.
const flushSize = 4 << 20

// record returns a recorder for a file. If known is not nil, it continues that source, and sum has hashed the bytes
// so far. Otherwise it replaces what was recorded before.
func record(store *lineage.Store, machine Machine, about SourceOf, known *Source, sum hash.Hash) *recorder {
	r := &recorder{store: store, machine: machine, about: about, hash: sum}
	if known != nil {
		r.recorded, r.tip, r.spans, r.rewrote = known.Recorded, known.tip, known.Recorded.Spans, known.Recorded.Spans > 0
	}
	return r
}

// recordAgain returns a recorder for a file that was rewritten: the new content follows the old one, whose lines are
// not stored again. If part of the old content was erased, the error is ErrErased, because recording the file would
// bring that back.
func recordAgain(ctx context.Context, store *lineage.Store, machine Machine, about SourceOf, was *Source) (*recorder, error) {
	r := record(store, machine, about, nil, sha256.New())
	r.tip, r.rewrote, r.kept = was.tip, true, make(map[[sha256.Size]byte]lineage.SpanRef)
	for b, err := range was.blocks(ctx) {
		if err != nil {
			return nil, err
		}
		for _, e := range b.whole {
			if text, err := store.Original(ctx, e); err == nil {
				r.kept[sha256.Sum256(text)] = e.Span
			} else if !errors.Is(err, lineage.ErrNotFound) {
				return nil, err
			}
		}
		messages := was.messagesOf(b)
		for i := range b.Lines() {
			if spans := b.Spans(i); len(spans) == 1 {
				m, err := messages.at(ctx, spans[0])
				if err == nil {
					r.kept[sha256.Sum256(m.Body)] = spans[0]
				} else if !errors.Is(err, lineage.ErrNotFound) {
					return nil, err
				}
			}
		}
	}
	return r, nil
}

// add records lines. session is the id of their session, and thread the one that it is a branch of, zero if it is its own.
func (r *recorder) add(ctx context.Context, session string, thread lineage.ThreadID, lines []importer.Line) {
	if r.builder == nil || session != r.recorded.Session || thread != r.recorded.Thread {
		r.cut()
		r.builder, r.recorded.Session, r.recorded.Thread = manifest.NewBuilder(session), session, thread
	}
	for i := range lines {
		if r.err != nil {
			return
		}
		r.line(&lines[i])
		if r.builder.Full() {
			r.cut()
		}
		if r.size >= flushSize {
			r.err = r.commit(ctx, false)
		}
	}
}

// line adds a line to the block. A line that the block does not describe by its message becomes an item of its own.
func (r *recorder) line(l *importer.Line) {
	r.recorded.Lines++
	r.recorded.Bytes += int64(len(l.Raw))
	r.hash.Write(l.Raw)
	if l.Raw == nil {
		r.recorded.Lost++
	}
	spans, m := r.messagesOf(l)
	unexplained := r.builder.Add(l.Raw, spans, m, l.Valid)
	if unexplained == nil {
		return
	}
	item := lineage.Item{Kind: lineage.Message, Role: lineRole, Type: content.TypeBinary, Body: unexplained}
	if l.Valid && manifest.IsObject(unexplained) || rawjson.Valid(unexplained) {
		item.Type = content.TypeJSON
	}
	r.items = append(r.items, item)
	r.size += len(unexplained)
}

// messagesOf returns the spans of the messages in a line, and the first message, nil if the store has it in another
// serialization. A line without a message may be that of a file that was rewritten: see recordAgain.
func (r *recorder) messagesOf(l *importer.Line) ([]lineage.SpanRef, *manifest.Message) {
	if len(l.Nodes) == 0 {
		text, _ := manifest.CutEnd(l.Raw)
		if span, stored := r.kept[sha256.Sum256(text)]; stored {
			return []lineage.SpanRef{span}, &manifest.Message{Body: text}
		}
		return nil, nil
	}
	spans := make([]lineage.SpanRef, len(l.Nodes))
	for i := range l.Nodes {
		spans[i] = l.Nodes[i].Span
	}
	first := &l.Nodes[0]
	if first.Kept {
		return spans, nil
	}
	return spans, &manifest.Message{ID: first.ID, Created: first.Created, Body: first.Body, Metadata: first.Metadata}
}

// cut ends the current block.
func (r *recorder) cut() {
	if r.builder == nil || r.builder.Lines() == 0 {
		return
	}
	block := r.builder.Block()
	if r.rewrote {
		r.recorded.Spans = r.spans + int64(len(r.items)) + 1
	}
	r.recorded.Digest = hex.EncodeToString(r.hash.Sum(nil))
	r.recorded.Proof = r.recorded.proof(r.machine.Secret, r.store.ID(), lineage.SourceBranch(sourceID(r.machine.ID, r.about.Path)), content.Sum(block), r.recorded.Proof)
	metadata, _ := json.Marshal(r.recorded) // numbers and texts
	r.items = append(r.items, lineage.Item{Kind: structure.AssetUsage, Filename: manifestName, Type: manifestType, Body: block, Metadata: metadata})
	r.size += len(block)
}

// flush commits everything recorded, which must be everything that was read. ErrTipMoved means that another process
// recorded the file meanwhile.
func (r *recorder) flush(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	r.cut()
	return r.commit(ctx, true)
}

// commit commits items. all is set if they are the last ones that were read.
func (r *recorder) commit(ctx context.Context, all bool) error {
	if len(r.items) == 0 && r.staged == nil {
		return nil
	}
	if r.context == nil {
		if err := r.open(ctx); err != nil {
			return &importer.StoreError{Err: err}
		}
	}
	large := !all || r.size >= 2*flushSize // for one transaction
	if large && r.staged == nil && (r.whole || !r.was.IsZero()) {
		if err := r.stage(ctx); err != nil {
			return &importer.StoreError{Err: err}
		}
	}
	var spans []lineage.SpanRef
	var err error
	switch {
	case r.staged != nil:
		if len(r.items) > 0 {
			spans, err = r.staged.ExtendFrom(ctx, r.tip, r.items...)
		}
		if err == nil && all {
			if len(spans) > 0 {
				r.tip = spans[len(spans)-1]
			}
			if err = r.replace(ctx, func(ctx context.Context, c *lineage.Context) error { return c.MoveTo(ctx, r.tip, rewritten) }); err == nil {
				err = r.staged.Delete(ctx)
				r.staged, r.was = nil, lineage.SpanRef{}
			}
		}
	case !r.was.IsZero():
		err = r.replace(ctx, func(ctx context.Context, c *lineage.Context) error {
			err := c.MoveTo(ctx, lineage.SpanRef{}, rewritten)
			if err == nil {
				spans, err = c.ExtendFrom(ctx, lineage.SpanRef{}, r.items...)
			}
			return err
		})
		r.was = lineage.SpanRef{}
	default:
		spans, err = r.context.ExtendFrom(ctx, r.tip, r.items...)
	}
	if err != nil {
		return &importer.StoreError{Err: err}
	}
	if len(spans) > 0 {
		r.tip = spans[len(spans)-1]
	}
	r.spans += int64(len(r.items))
	r.items, r.size = nil, 0
	return nil
}

// rewritten is the reason for moving the tip of a source.
const rewritten = "the file was rewritten"

// replace changes the source, unless another process has changed it.
func (r *recorder) replace(ctx context.Context, change func(context.Context, *lineage.Context) error) error {
	return r.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		c, err := tx.Context(ctx, r.context.ID())
		if err != nil {
			return err
		}
		switch tip, err := c.Tip(ctx); {
		case err != nil:
			return err
		case tip != r.was:
			return fmt.Errorf("source %s: %w", r.about.Path, lineage.ErrTipMoved)
		}
		return change(ctx, c)
	})
}

// stage creates the context for the new content of the source, or takes over the one of a process that was killed.
func (r *recorder) stage(ctx context.Context) error {
	if r.was.IsZero() {
		r.was = r.tip
	}
	id := sourceID(r.machine.ID, r.about.Path) + " staged"
	c, err := r.store.Context(ctx, lineage.SourceBranch(id))
	switch {
	case errors.Is(err, lineage.ErrNotFound):
		metadata, _ := json.Marshal(map[string]any{"aside": lineage.AsideSource})
		c, err = r.store.NewContext(ctx, lineage.ContextOptions{SourceID: id, Metadata: metadata})
		if err == nil && !r.tip.IsZero() {
			err = c.MoveTo(ctx, r.tip, rewritten)
		}
	case err == nil:
		err = c.MoveTo(ctx, r.tip, rewritten)
	}
	r.staged = c
	return err
}

// open opens the context of the source, or creates it.
func (r *recorder) open(ctx context.Context) error {
	id := sourceID(r.machine.ID, r.about.Path)
	c, err := r.store.Context(ctx, lineage.SourceBranch(id))
	if errors.Is(err, lineage.ErrNotFound) && r.tip.IsZero() {
		about := r.about
		about.Path = strings.ToValidUTF8(about.Path, "\uFFFD")
		metadata, _ := json.Marshal(map[string]any{"aside": lineage.AsideSource, sourceKey: about})
		c, err = r.store.NewContext(ctx, lineage.ContextOptions{SourceID: id, Metadata: metadata})
	}
	if err != nil {
		return err
	}
	if r.tip.IsZero() && !r.seen {
		if r.was, err = c.Tip(ctx); err != nil {
			return err
		}
	}
	r.context = c
	return nil
}

// pending reports whether something is not committed yet.
func (r *recorder) pending() bool {
	return len(r.items) > 0 || r.staged != nil || r.builder != nil && r.builder.Lines() > 0
}

// isOvertaken reports whether an error means that another process recorded the file.
func isOvertaken(err error) bool {
	return errors.Is(err, lineage.ErrConflict) || errors.Is(err, lineage.ErrExists) || errors.Is(err, lineage.ErrNotFound)
}
