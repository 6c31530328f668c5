package follow

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/manifest"
	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
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
		for page, err := range pages.Of(store.View().ContextsAlone(ctx, lineage.ContextID{}), readAtOnce) {
			if err != nil {
				yield(nil, err)
				return
			}
			var sources []*Source
			var tips []lineage.SpanRef
			for i := range page {
				if s := sourceOf(store, &page[i]); s != nil {
					sources, tips = append(sources, s), append(tips, s.tip)
				}
			}
			lasts, failed := store.Spans(ctx, tips)
			for i, s := range sources {
				if failed != nil { // because of one of them: each is read by itself
					s, err = sourceIn(ctx, store, s.Context)
				} else {
					err = s.endsWith(lasts[i][0])
				}
				if errors.Is(err, lineage.ErrNotFound) || err == nil && s == nil {
					continue // deleted in the meantime
				}
				if !yield(s, err) || err != nil && !errors.Is(err, lineage.ErrCorrupt) {
					return
				}
			}
		}
	}
}

// readAtOnce is the number of sources, and of messages of lines, that are read together.
const readAtOnce = 64

// FindSource returns the source of a file, or ErrNotFound if nothing is recorded.
func FindSource(ctx context.Context, store *lineage.Store, machine string, path string) (*Source, error) {
	c, err := store.Context(ctx, lineage.SourceBranch(sourceID(machine, path)))
	if err != nil {
		return nil, err
	}
	s, err := sourceIn(ctx, store, c.ID())
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
func sourceIn(ctx context.Context, store *lineage.Store, id lineage.ContextID) (*Source, error) {
	c, err := store.View().Context(ctx, id)
	if err != nil {
		return nil, err
	}
	s := sourceOf(store, &c)
	if s == nil {
		return nil, nil
	}
	last, err := store.Span(ctx, s.tip)
	if err != nil {
		return nil, err
	}
	return s, s.endsWith(last[0])
}

// sourceOf returns the source in a context without what it records, or nil if the context is not a source or nothing is recorded.
func sourceOf(store *lineage.Store, c *backend.Context) *Source {
	s := &Source{Context: c.ID, store: store, tip: c.Tip}
	if lineage.AsideOf(c.Metadata) != lineage.AsideSource || json.Unmarshal(rawjson.Get(c.Metadata, sourceKey), &s.About) != nil || c.Tip.IsZero() {
		return nil
	}
	return s
}

// endsWith reads what the last entry of the source records.
func (s *Source) endsWith(last *lineage.Entry) error {
	if !isManifest(last) || json.Unmarshal(last.Metadata, &s.Recorded) != nil {
		return s.damaged("it does not end with a manifest")
	}
	return nil
}

func isManifest(e *lineage.Entry) bool {
	return e.Kind == structure.AssetUsage && e.Filename == manifestName && e.Type == manifestType
}

func (s *Source) damaged(format string, args ...any) error {
	return fmt.Errorf("source %s: %w: %s", s.About.Path, lineage.ErrCorrupt, fmt.Sprintf(format, args...))
}

// manifestBlock is a block of a manifest with the lines that are kept whole for it.
type manifestBlock struct {
	*manifest.Block
	recorded Recorded
	content  content.ID
	whole    []*lineage.Entry
}

// blocks yields the blocks in order.
func (s *Source) blocks(ctx context.Context) iter.Seq2[manifestBlock, error] {
	return func(yield func(manifestBlock, error) bool) {
		var whole []*lineage.Entry
		for e, err := range s.store.History(ctx, s.tip, lineage.Window{Last: uint64(s.Recorded.Spans)}) {
			if err != nil {
				yield(manifestBlock{}, err)
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
					yield(manifestBlock{}, err)
					return
				}
			}
			if e.Erased {
				yield(manifestBlock{}, fmt.Errorf("source %s: %w", s.About.Path, lineage.ErrErased))
				return
			}
			var recorded Recorded
			b, err := manifest.Read(body)
			if err = errors.Join(err, json.Unmarshal(e.Metadata, &recorded)); err != nil {
				yield(manifestBlock{}, s.damaged("block %d: %v", e.Position, err))
				return
			}
			if !yield(manifestBlock{b, recorded, e.Content, whole}, nil) {
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
func (s *Source) join(ctx context.Context, b manifestBlock) iter.Seq2[[]byte, error] {
	whole, messages := b.whole, s.messagesOf(b)
	return b.Join(b.recorded.Session, func(at lineage.SpanRef) (*manifest.Message, error) {
		return messages.at(ctx, at)
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

// lineMessages are the messages that lines are joined from. They are read together.
type lineMessages struct {
	source *Source
	next   []lineage.SpanRef // of lines that were not read, in their order
	read   map[lineage.SpanRef]*lineage.Entry
}

// messagesOf returns the messages of a block.
func (s *Source) messagesOf(b manifestBlock) *lineMessages {
	m := &lineMessages{source: s}
	for i := range b.Lines() {
		if spans := b.Spans(i); len(spans) > 0 {
			m.next = append(m.next, spans[0])
		}
	}
	return m
}

// at returns what a line is joined from.
func (m *lineMessages) at(ctx context.Context, at lineage.SpanRef) (*manifest.Message, error) {
	e := m.read[at]
	if e == nil {
		var err error
		if e, err = m.readFrom(ctx, at); err != nil {
			return nil, err
		}
	}
	message := &manifest.Message{ID: e.SourceID, Created: e.CreatedAt, Metadata: e.Metadata}
	if !e.MetadataContent.IsZero() && e.Metadata == nil {
		return nil, fmt.Errorf("metadata of message %s: %w", e.Span, lineage.ErrErased)
	}
	var err error
	message.Body, err = m.source.store.Original(ctx, e)
	return message, err
}

// readFrom reads a message, with those of the lines after it.
func (m *lineMessages) readFrom(ctx context.Context, at lineage.SpanRef) (*lineage.Entry, error) {
	m.read = make(map[lineage.SpanRef]*lineage.Entry)
	if i := slices.Index(m.next, at); i >= 0 {
		page := m.next[i:min(i+readAtOnce, len(m.next))]
		m.next = m.next[i+len(page):]
		if all, err := m.source.store.Spans(ctx, page); err == nil { // else one of them is gone, perhaps a later one
			for n, ref := range page {
				m.read[ref] = all[n][0]
			}
			return m.read[at], nil
		}
	}
	entries, err := m.source.store.Span(ctx, at)
	if err != nil {
		return nil, err
	}
	return entries[0], nil
}

// Database returns the path of the database that the rows came from, or "" for a file.
func (s *Source) Database() string {
	if !s.About.Rows {
		return ""
	}
	return strings.TrimSuffix(s.About.Path, "/"+s.Recorded.Session)
}

type rowHash [16]byte

func hashOf(b []byte) (h rowHash) {
	sum := sha256.Sum256(b)
	copy(h[:], sum[:])
	return h
}

// rowKey returns the key of a recorded row: see archive.Row.
func rowKey(row []byte) string {
	return rawjson.Str(rawjson.Get(row, "table")) + " " + rawjson.Str(rawjson.Get(row, "key"))
}

// rows yields the recorded rows of a source with their line ends, in order. A row is valid until the next one.
func (s *Source) rows(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var row []byte
		for part, err := range s.Lines(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if row = append(row, part.Raw...); !bytes.HasSuffix(row, []byte("\n")) {
				continue
			}
			if !yield(row, nil) {
				return
			}
			row = row[:0]
		}
	}
}

// exportRows writes the last state of each row, in the order in which these states were first recorded.
func (s *Source) exportRows(ctx context.Context, w io.Writer) error {
	last := make(map[rowHash]int)
	n := 0
	for row, err := range s.rows(ctx) {
		if err != nil {
			return err
		}
		last[hashOf([]byte(rowKey(row)))] = n
		n++
	}
	n = 0
	for row, err := range s.rows(ctx) {
		if err != nil {
			return err
		}
		if last[hashOf([]byte(rowKey(row)))] == n {
			if _, err := w.Write(row); err != nil {
				return err
			}
		}
		n++
	}
	return nil
}

// ForgetDeleted deletes the recorded session files of deleted threads, so that a collection can remove them. It
// returns their number.
func ForgetDeleted(ctx context.Context, store *lineage.Store) (n int, err error) {
	var gone []*Source
	for s, err := range Sources(ctx, store) {
		if err != nil && !errors.Is(err, lineage.ErrCorrupt) {
			return 0, err
		}
		if s == nil {
			continue // damaged sources stay
		}
		switch err := s.Recorded.lookUp(ctx, store); {
		case errors.Is(err, lineage.ErrNotFound):
			gone = append(gone, s)
		case err != nil:
			return 0, err
		}
	}
	for _, s := range gone {
		deleted := false
		err := store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
			deleted = false
			// Another process may have stored the session and its file again.
			if err := s.Recorded.lookUp(ctx, tx.Store); !errors.Is(err, lineage.ErrNotFound) {
				return err
			}
			c, err := tx.Context(ctx, s.Context)
			if err != nil {
				return err
			}
			if tip, err := c.Tip(ctx); err != nil || tip != s.tip {
				return err
			}
			deleted = true
			return c.Delete(ctx)
		})
		switch {
		case err == nil && deleted:
			n++
		case err != nil && !errors.Is(err, lineage.ErrNotFound):
			return n, err
		}
	}
	return n, nil
}
