package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// messageKey identifies a message by everything visible in it and in the messages before it:
// content and form, role, names, id, times, model, user and metadata. Messages with the same key
// are the same message. It is a 128-bit hash; some are stored in threads' metadata, so its input
// must not change.
type messageKey [16]byte

func (k messageKey) String() string { return hex.EncodeToString(k[:]) }

// keyHash hashes fields with their lengths.
type keyHash struct{ buf []byte }

func (h *keyHash) text(s string) {
	h.number(int64(len(s)))
	h.buf = append(h.buf, s...)
}

func (h *keyHash) bytes(b []byte) {
	h.number(int64(len(b)))
	h.buf = append(h.buf, b...)
}

func (h *keyHash) number(n int64) { h.buf = binary.AppendVarint(h.buf, n) }

// time hashes a time with the stored precision. The zero time differs from all others.
func (h *keyHash) time(t time.Time) {
	if t.IsZero() {
		h.number(-1 << 62)
		return
	}
	h.number(t.UnixMilli())
}

// originKind is the kind of origin of a message that states no other.
func originKind(usages []structure.Usage) content.OriginKind {
	return content.OriginOfRole(usages[0].Role)
}

// nextKey returns the key of a message with these usages after the parent. A message without a user
// or time equals one with those of the thread. A usage without type and origin is text with the
// origin of its role, so the loader omits these.
func (h *keyHash) nextKey(parent messageKey, usages []structure.Usage, of *structure.Thread) messageKey {
	h.buf = append(h.buf[:0], parent[:]...)
	for i := range usages {
		u := &usages[i]
		h.number(int64(u.Kind) | int64(u.Piece)<<8)
		h.bytes(u.Content[:])
		h.bytes(u.Form[:])
		h.bytes(u.MetadataContent[:])
		h.number(int64(len(u.Extras)))
		for _, extra := range u.Extras {
			h.bytes(extra)
		}
		if u.Kind == structure.PartUsage {
			h.text(u.Name)
			continue // the message states the rest
		}
		mediaType := u.Type
		if mediaType == typeText || !u.Form.IsZero() {
			mediaType = ""
		}
		for _, s := range [...]string{u.Role, u.Name, u.Document, u.Filename, mediaType, u.SourceID} {
			h.text(s)
		}
		h.number(int64(u.Revision))
		o := u.OriginWith(content.BlockOrigin{})
		if o.UserID == of.UserID {
			o.UserID = ""
		}
		created := u.CreatedAt
		if created.Equal(of.CreatedAt) {
			created = time.Time{}
		}
		if o.Kind == originKind(usages) {
			o.Kind = content.OriginUnknown
		}
		h.number(int64(o.Kind))
		h.text(o.UserID)
		h.text(o.ModelID)
		h.text(o.SourceID)
		h.bytes(o.ParentID[:])
		h.time(created)
		h.bytes(u.Metadata)
	}
	sum := sha256.Sum256(h.buf)
	return messageKey(sum[:16])
}

// saidKey returns a key of a message by its id, content and metadata only. Another export may
// serialise the object of the same message differently or with further members.
func (h *keyHash) saidKey(parent messageKey, usages []structure.Usage) messageKey {
	h.buf = append(h.buf[:0], parent[:]...)
	for i := range usages {
		u := &usages[i]
		if u.Kind == structure.PartUsage && u.Piece == structure.DataPiece {
			continue
		}
		h.number(int64(u.Kind) | int64(u.Piece)<<8)
		h.bytes(u.Content[:])
		for _, s := range [...]string{u.Role, u.Name, u.Document, u.Filename, u.SourceID} {
			h.text(s)
		}
		h.number(int64(u.Revision))
		h.bytes(u.Metadata)
		h.bytes(u.MetadataContent[:])
	}
	sum := sha256.Sum256(h.buf)
	return messageKey(sum[:16])
}

// place is the place of a message in the store.
type place struct {
	ref structure.SpanRef
	// inner is set if a history of the thread continues it.
	inner bool
}

// histories adds the history that ends at a tip to places, and to says if that is not nil. It does
// not read spans that are in keys.
func (l *loader) histories(places map[messageKey]place, says map[messageKey]messageKey, keys map[structure.SpanRef]messageKey, of *structure.Thread, tip structure.SpanRef) error {
	if tip.IsZero() {
		return nil
	}
	if _, known := keys[tip]; known {
		return nil
	}
	// Go back to the last known span.
	var from uint64 = 1
	var key messageKey
	var before structure.SpanRef
	runs := backend.Runs(l.ctx, l.engine)
	for at := tip; !at.IsZero() && before.IsZero(); {
		run, err := runs(at.Run)
		if err != nil {
			return err
		}
		for ; at.Seq > 0; at.Seq-- {
			if k, known := keys[at]; known {
				from, key, before = run.Position(at.Seq)+1, k, at
				break
			}
		}
		at = run.Parent
	}
	for step, err := range l.engine.Path(l.ctx, tip, structure.Window{From: from}, backend.PathOptions{}) {
		if err != nil {
			return err
		}
		if !before.IsZero() {
			at := places[key]
			at.inner = true
			places[key] = at
		}
		parent := key
		key = l.hash.nextKey(parent, step.Span.Usages, of)
		if says != nil {
			if said := l.hash.saidKey(parent, step.Span.Usages); says[said] == (messageKey{}) {
				says[said] = key
			}
		}
		before = step.Span.Ref
		if _, twice := places[key]; !twice {
			places[key] = place{ref: before}
		}
		keys[before] = key
	}
	return nil
}

// keyAt returns the key of a stored message.
func (l *loader) keyAt(ref structure.SpanRef, of *structure.Thread) (messageKey, error) {
	var key messageKey
	for step, err := range l.engine.Path(l.ctx, ref, structure.Window{}, backend.PathOptions{}) {
		if err != nil {
			return key, err
		}
		key = l.hash.nextKey(key, step.Span.Usages, of)
	}
	return key, nil
}

// usable reports whether a stored span has the key of a message and the same parent, and nothing of
// it was erased.
func (l *loader) usable(ref, parent structure.SpanRef, before, key messageKey, of *structure.Thread) (bool, error) {
	above := structure.SpanRef{Run: ref.Run, Seq: ref.Seq - 1}
	if ref.Seq == 1 {
		run, err := l.engine.Run(l.ctx, ref.Run)
		if err != nil {
			return false, err
		}
		above = run.Parent
	}
	if above != parent {
		return false, nil
	}
	for step, err := range l.engine.Path(l.ctx, ref, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil || l.hash.nextKey(before, step.Span.Usages, of) != key {
			return false, err
		}
		for i := range step.Span.Usages {
			for _, id := range step.Span.Usages[i].Named(nil) {
				has, err := l.engine.Has(l.ctx, []content.ID{*id})
				if err != nil || !has[0] {
					return false, err
				}
			}
		}
	}
	return true, nil
}

// base loads the messages that a new thread may share with the thread it was forked from according
// to the archive. It returns that thread, nil if there is none of the same user.
func (l *loader) base(t *threadState, sourceID string) (*structure.Thread, error) {
	id := write.SourceThread(l.options.Prefix + sourceID)
	if id == t.record.ID {
		return nil, nil
	}
	if l.touched[id] {
		if err := l.settle(); err != nil {
			return nil, err
		}
	}
	from, err := l.engine.Thread(l.ctx, id)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && from.UserID != t.record.UserID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.base = make(map[messageKey]place)
	keys := make(map[structure.SpanRef]messageKey)
	for c, err := range l.engine.Contexts(l.ctx, id, structure.ContextID{}) {
		if err == nil {
			err = l.histories(t.base, nil, keys, &t.record, c.Tip)
		}
		if err != nil {
			return nil, err
		}
	}
	return from, nil
}
