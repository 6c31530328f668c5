package follow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/manifest"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/structure"
)

// Source is a session file as it is stored: how each of its lines follows from messages, and the lines that do not.
// It is a context outside of threads. Each of its spans is a line that is kept whole, or a block of the manifest,
// which follows the lines that it needs.
type Source struct {
	// Context is its context.
	Context lineage.ContextID
	About   SourceOf
	// Recorded describes what is recorded.
	Recorded Recorded

	store *lineage.Store
	tip   lineage.SpanRef
}

// SourceOf identifies the file of a source.
type SourceOf struct {
	Machine string `json:"machine"`
	Agent   string `json:"agent,omitempty"`
	// Path is the path of the file. For the rows of a session it is the path of the database, a slash and the
	// session.
	Path string `json:"path"`
	// Rows is set if the lines are rows of a session in a database. A later row replaces an earlier one with the same
	// table and key.
	Rows bool `json:"rows,omitempty"`
}

// Recorded states how much of a file is recorded. It is the metadata of each block of a manifest.
type Recorded struct {
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
	// Digest is the SHA-256 of these bytes.
	Digest string `json:"digest"`
	// Session is the id of the session, which is left out of blocks. Thread is the thread that the session is a branch
	// of. Without it the session is the thread with its id.
	Session string           `json:"sessionId,omitempty"`
	Thread  lineage.ThreadID `json:"thread,omitzero"`
	// Lost is the number of lines that were too large to be kept.
	Lost int64 `json:"lost,omitempty"`
	// Spans is the number of spans at the end of the source that belong to the current file, 0 for all. Those before
	// belong to the file before it was rewritten.
	Spans int64 `json:"spans,omitempty"`
	// Proof is a keyed hash of the block, of Recorded and of the proof before: see [Source.IsOf].
	Proof string `json:"signature,omitempty"`
}

// ErrNotExact is returned if a source cannot be restored byte for byte.
var ErrNotExact = errors.New("not the same bytes")

const (
	manifestType = "application/vnd.lineage.manifest"
	manifestName = "manifest"
	lineRole     = "line"
)

// sourceKey is the key of SourceOf in the metadata of a context.
const sourceKey = "source"

// Sources yields the sources of all machines, in no order. A damaged source comes with an error that matches
// ErrCorrupt, and is nil if nothing of it can be read; the next ones follow. Any other error ends the sequence.
func Sources(ctx context.Context, store *lineage.Store) iter.Seq2[*Source, error] {
	return func(yield func(*Source, error) bool) {
		for c, err := range store.Contexts(ctx) {
			var s *Source
			if err == nil {
				if s, err = sourceIn(ctx, store, c); errors.Is(err, lineage.ErrNotFound) || err == nil && s == nil {
					continue // deleted in the meantime, or not a source
				}
			}
			if !yield(s, err) || err != nil && !errors.Is(err, lineage.ErrCorrupt) {
				return
			}
		}
	}
}

// FindSource returns the source of a file, or ErrNotFound if nothing is recorded.
func FindSource(ctx context.Context, store *lineage.Store, machine string, path string) (*Source, error) {
	c, err := store.Context(ctx, lineage.SourceBranch(sourceID(machine, path)))
	if err != nil {
		return nil, err
	}
	s, err := sourceIn(ctx, store, c)
	if err == nil && s == nil {
		err = &lineage.SubjectError{Subject: "source", ID: path, Err: lineage.ErrNotFound}
	}
	return s, err
}

// IsOf reports whether a machine recorded all of the source: the context's id follows from the machine's id and the
// path, and the machine's secret proves each block. Others who can write to the store can read the machine's id, but
// cannot prove a block.
func (s *Source) IsOf(ctx context.Context, m Machine) (bool, error) {
	if m.ID == "" || m.Secret == "" || s.Context != lineage.SourceBranch(sourceID(m.ID, s.About.Path)) {
		return false, nil
	}
	before := ""
	for b, err := range s.blocks(ctx) {
		if err != nil {
			return false, err
		}
		if !hmac.Equal([]byte(b.recorded.Proof), []byte(b.recorded.proof(m.Secret, s.store.ID(), s.Context, b.content, before))) {
			return false, nil
		}
		before = b.recorded.Proof
	}
	return before != "", nil
}

// proof returns the proof that a machine recorded a block, given the proof of the block before.
func (r Recorded) proof(secret string, store structure.StoreID, source lineage.ContextID, block content.ID, before string) string {
	if secret == "" {
		return ""
	}
	r.Proof = ""
	recorded, _ := json.Marshal(r) // numbers and texts
	h := hmac.New(sha256.New, []byte(secret))
	for _, part := range [][]byte{[]byte("lineage source"), store[:], source[:], block[:], []byte(before), recorded} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sourceID returns the source id for a file of a machine.
func sourceID(machine string, path string) string { return "source " + machine + " " + path }

// sourceIn returns the source in a context, or nil if the context is not a source or nothing is recorded.
func sourceIn(ctx context.Context, store *lineage.Store, c *lineage.Context) (*Source, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	s := &Source{Context: c.ID(), store: store, tip: info.Tip}
	if lineage.AsideOf(info.Metadata) != lineage.AsideSource || json.Unmarshal(rawjson.Get(info.Metadata, sourceKey), &s.About) != nil {
		return nil, nil
	}
	if info.Tip.IsZero() {
		return nil, nil // nothing is recorded yet
	}
	last, err := store.Span(ctx, info.Tip)
	if err != nil {
		return nil, err
	}
	if !isManifest(last[0]) || json.Unmarshal(last[0].Metadata, &s.Recorded) != nil {
		return s, s.damaged("it does not end with a manifest")
	}
	return s, nil
}

func isManifest(e *lineage.Entry) bool {
	return e.Kind == structure.AssetUsage && e.Filename == manifestName && e.Type == manifestType
}

func (s *Source) damaged(format string, args ...any) error {
	return fmt.Errorf("source %s: %w: %s", s.About.Path, lineage.ErrCorrupt, fmt.Sprintf(format, args...))
}

// block is a block of a manifest with the lines that are kept whole for it.
type block struct {
	*manifest.Block
	recorded Recorded
	content  content.ID
	whole    []*lineage.Entry
}

// blocks yields the blocks in order.
func (s *Source) blocks(ctx context.Context) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		var whole []*lineage.Entry
		for e, err := range s.store.History(ctx, s.tip, lineage.Window{Last: uint64(s.Recorded.Spans)}) {
			if err != nil {
				yield(block{}, err)
				return
			}
			if !isManifest(e) {
				whole = append(whole, e)
				continue
			}
			body := e.Body
			if body == nil && !e.Erased {
				r, err := s.store.Body(ctx, e.Content)
				if err == nil {
					body, err = io.ReadAll(io.LimitReader(r, content.InlineLimit<<8))
				}
				if err != nil {
					yield(block{}, err)
					return
				}
			}
			if e.Erased {
				yield(block{}, fmt.Errorf("source %s: %w", s.About.Path, lineage.ErrErased))
				return
			}
			var recorded Recorded
			b, err := manifest.Read(body)
			if err = errors.Join(err, json.Unmarshal(e.Metadata, &recorded)); err != nil {
				yield(block{}, s.damaged("block %d: %v", e.Position, err))
				return
			}
			if !yield(block{b, recorded, e.Content, whole}, nil) {
				return
			}
			whole = nil
		}
	}
}

// Spans returns, for each line, the spans of its messages and records, in order.
func (s *Source) Spans(ctx context.Context) ([][]lineage.SpanRef, error) {
	var all [][]lineage.SpanRef
	for b, err := range s.blocks(ctx) {
		if err != nil {
			return nil, err
		}
		for i := range b.Lines() {
			all = append(all, b.Spans(i))
		}
	}
	return all, nil
}

// lookUp returns ErrNotFound if the thread of the file was deleted.
func (r *Recorded) lookUp(ctx context.Context, store *lineage.Store) (err error) {
	switch {
	case !r.Thread.IsZero():
		_, err = store.Thread(ctx, r.Thread)
	case r.Session != "":
		_, err = store.FindThread(ctx, r.Session)
	}
	return err
}

// SourceLine is a line of a session file.
type SourceLine struct {
	// Raw is the line with its line end. It is valid until the next line.
	Raw []byte
	// Spans are the spans of the messages and records that were read from it.
	Spans []lineage.SpanRef
}

// Lines yields the recorded lines of the file. The last error tells whether they are the bytes that were read:
// ErrNotExact means that they differ. If part of them was erased, the error is ErrErased; if their thread was
// deleted, ErrNotFound.
func (s *Source) Lines(ctx context.Context) iter.Seq2[SourceLine, error] {
	return func(yield func(SourceLine, error) bool) {
		if err := s.Recorded.lookUp(ctx, s.store); err != nil {
			yield(SourceLine{}, fmt.Errorf("source %s: %w", s.About.Path, err))
			return
		}
		sum := sha256.New()
		var bytes int64
		for b, err := range s.blocks(ctx) {
			if err != nil {
				yield(SourceLine{}, err)
				return
			}
			i := 0
			for line, err := range s.join(ctx, b) {
				if err != nil {
					yield(SourceLine{}, fmt.Errorf("source %s: after %d bytes: %w", s.About.Path, bytes, err))
					return
				}
				sum.Write(line)
				bytes += int64(len(line))
				if !yield(SourceLine{Raw: line, Spans: b.Spans(i)}, nil) {
					return
				}
				i++
			}
		}
		var err error
		switch {
		case s.Recorded.Lost > 0:
			err = fmt.Errorf("source %s: %w: %s too large to be kept", s.About.Path, ErrNotExact, amount.Plural(s.Recorded.Lost, "line"))
		case bytes != s.Recorded.Bytes || hex.EncodeToString(sum.Sum(nil)) != s.Recorded.Digest && s.Recorded.Bytes > 0:
			err = fmt.Errorf("source %s: %w: %d bytes of another checksum than the %d bytes that were read", s.About.Path, ErrNotExact, bytes, s.Recorded.Bytes)
		}
		if err != nil {
			yield(SourceLine{}, err)
		}
	}
}

// join yields the lines of a block.
func (s *Source) join(ctx context.Context, b block) iter.Seq2[[]byte, error] {
	whole := b.whole
	return b.Join(b.recorded.Session, func(at lineage.SpanRef) (*manifest.Message, error) {
		return s.message(ctx, at)
	}, func() ([]byte, error) {
		if len(whole) == 0 {
			return nil, s.damaged("a line that was kept whole is missing")
		}
		e := whole[0]
		whole = whole[1:]
		return s.store.Original(ctx, e)
	})
}

// Export writes the recorded file, byte for byte: see Lines. Of rows it writes the last state of each.
func (s *Source) Export(ctx context.Context, w io.Writer) error {
	if s.About.Rows {
		return s.exportRows(ctx, w)
	}
	for line, err := range s.Lines(ctx) {
		if err != nil {
			return err
		}
		if _, err := w.Write(line.Raw); err != nil {
			return err
		}
	}
	return nil
}

// message returns the data of a message that a line is joined from.
func (s *Source) message(ctx context.Context, at lineage.SpanRef) (*manifest.Message, error) {
	entries, err := s.store.Span(ctx, at)
	if err != nil {
		return nil, err
	}
	e := entries[0]
	m := &manifest.Message{ID: e.SourceID, Created: e.CreatedAt, Metadata: e.Metadata}
	if !e.MetadataContent.IsZero() && e.Metadata == nil {
		return nil, fmt.Errorf("metadata of message %s: %w", e.Span, lineage.ErrErased)
	}
	m.Body, err = s.store.Original(ctx, e)
	return m, err
}

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
		for i := range b.Lines() {
			if spans := b.Spans(i); len(spans) == 1 {
				m, err := was.message(ctx, spans[0])
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

func (r *recorder) line(l *importer.Line) {
	r.recorded.Lines++
	r.recorded.Bytes += int64(len(l.Raw))
	r.hash.Write(l.Raw)
	if l.Raw == nil {
		r.recorded.Lost++
	}
	var m *manifest.Message
	spans := make([]lineage.SpanRef, len(l.Nodes))
	for i := range l.Nodes {
		spans[i] = l.Nodes[i].Span
	}
	if len(l.Nodes) > 0 && !l.Nodes[0].Kept {
		n := l.Nodes[0]
		m = &manifest.Message{ID: n.ID, Created: n.Created, Body: n.Body, Metadata: n.Metadata}
	}
	if text, _ := manifest.CutEnd(l.Raw); len(spans) == 0 && r.kept != nil {
		if span, ok := r.kept[sha256.Sum256(text)]; ok {
			spans, m = []lineage.SpanRef{span}, &manifest.Message{Body: text}
		}
	}
	whole := r.builder.Add(l.Raw, spans, m, l.Valid)
	if whole == nil {
		return
	}
	kept := lineage.Item{Kind: lineage.Message, Role: lineRole, Type: content.TypeBinary, Body: whole}
	if l.Valid && manifest.IsObject(whole) || rawjson.Valid(whole) {
		kept.Type = content.TypeJSON
	}
	r.items = append(r.items, kept)
	r.size += len(whole)
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
			return err
		}
	}
	large := !all || r.size >= 2*flushSize // for one transaction
	if large && r.staged == nil && (r.whole || !r.was.IsZero()) {
		if err := r.stage(ctx); err != nil {
			return err
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
