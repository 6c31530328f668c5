package manifest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/internal/zframe"
	"github.com/lineage-store/lineage/structure"
)

// Block is a block of a manifest.
type Block struct {
	lines []lineTemplate
	// Back, times, uuids and own fill holes.
	back, times, uuids, own []byte
}

type lineTemplate struct {
	template []byte
	spans    []structure.SpanRef
}

// Read reads a block.
func Read(block []byte) (*Block, error) {
	raw, err := zframe.ExpandStated(decoder(), block, maxBlock)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	r := read(raw)
	b := &Block{}
	spans, err := b.readLines(&r)
	if err != nil {
		return nil, err
	}
	if err := b.readSpans(&r, spans); err != nil {
		return nil, err
	}
	back, times, uuids := 0, 0, 0
	for _, l := range b.lines {
		back += bytes.Count(l.template, []byte{holeBack})
		times += bytes.Count(l.template, []byte{holeOwnTime})
		uuids += bytes.Count(l.template, []byte{holeUUID})
	}
	b.back = r.varints(back)
	b.times = r.varints(times)
	if r.Bad || len(r.Rest)/len(uuid.UUID{}) < uuids {
		return nil, errShort
	}
	b.uuids, b.own = r.Rest[:uuids*len(uuid.UUID{})], r.Rest[uuids*len(uuid.UUID{}):]
	return b, nil
}

// readLines reads the templates of the lines. It returns the number of spans of each line.
func (b *Block) readLines(r *reader) (spans []uint64, err error) {
	lines, count := r.Next(), r.Next()
	if lines > maxLines || count > lines {
		return nil, fmt.Errorf("%w: %d lines of %d templates", ErrMalformed, lines, count)
	}
	templates := make([][]byte, count)
	for i := range templates {
		templates[i] = r.bytes(maxTemplate)
	}
	b.lines = make([]lineTemplate, lines)
	spans = make([]uint64, lines)
	for i := range b.lines {
		number := r.Next()
		if number >= count {
			return nil, fmt.Errorf("%w: template %d of %d", ErrMalformed, number, count)
		}
		t := read(templates[number])
		if spans[i] = t.Next(); spans[i] > maxSpans || t.Bad {
			return nil, fmt.Errorf("%w: a line of %d spans", ErrMalformed, spans[i])
		}
		b.lines[i].template = t.Rest
	}
	return spans, nil
}

// readSpans reads the addresses of the spans of each line, given their numbers.
func (b *Block) readSpans(r *reader, spans []uint64) error {
	var runs []structure.RunID
	if n := r.Next(); n > uint64(len(r.Rest)/len(structure.RunID{})) {
		return errShort
	} else {
		runs = make([]structure.RunID, n)
	}
	for i := range runs {
		r.Rest = r.Rest[copy(runs[i][:], r.Rest):]
	}
	next := make([]uint64, len(runs))
	for i := range b.lines {
		for range spans[i] {
			run := r.Next()
			seq := r.signed()
			if r.Bad || run >= uint64(len(runs)) {
				return errShort
			}
			ref := structure.SpanRef{Run: runs[run], Seq: next[run] + uint64(seq)}
			next[run] = ref.Seq + 1
			b.lines[i].spans = append(b.lines[i].spans, ref)
		}
	}
	if r.Bad {
		return errShort
	}
	return nil
}

var decoder = sync.OnceValue(func() *zstd.Decoder {
	return zframe.NewDecoder(maxBlock, zstd.WithDecoderConcurrency(0))
})

// Lines is the number of lines.
func (b *Block) Lines() int { return len(b.lines) }

// Spans returns the spans of a line.
func (b *Block) Spans(i int) []structure.SpanRef { return b.lines[i].spans }

// Join yields the lines. message returns the message of the first span of a line, and whole the next line that was
// kept whole. A line is valid until the next one.
func (b *Block) Join(session string, message func(structure.SpanRef) (*Message, error), whole func() ([]byte, error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		back, own, times, uuids := read(b.back), read(b.own), read(b.times), b.uuids
		var ids, new [][]byte // of earlier lines, and of the current one
		var at int64
		j := joiner{session: rawjson.Quote(session), whole: whole, back: func() ([]byte, error) {
			n := back.Next()
			if back.Bad || n == 0 || n > uint64(len(ids)) {
				return nil, fmt.Errorf("%w: id %d back of %d", ErrMalformed, n, len(ids))
			}
			return ids[uint64(len(ids))-n], nil
		}, own: func() ([]byte, error) {
			v := own.bytes(maxValue)
			if own.Bad {
				return nil, errShort
			}
			return v, nil
		}, time: func() (int64, error) {
			at += times.signed()
			return at, nil
		}, uuid: func() (id uuid.UUID, err error) {
			uuids = uuids[copy(id[:], uuids):]
			return id, nil
		}, named: func(id []byte) { new = append(new, id) }}
		var out []byte
		for _, l := range b.lines {
			var m *Message
			var err error
			if len(l.spans) > 0 && needsMessage(l.template) {
				m, err = message(l.spans[0])
			}
			j.set(m)
			if err == nil {
				out, err = j.join(out[:0], l.template)
			}
			ids, new = append(ids, new...), new[:0]
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// holeFiller is the message that holes are filled from.
type holeFiller struct {
	message    *Message
	id, at     []byte
	body, meta members
	inside     map[string][]byte // nil before it is needed: see inner
}

// set prepares for a message, or for nil. It reuses memory.
func (f *holeFiller) set(m *Message) {
	*f = holeFiller{message: m, at: f.at[:0], body: f.body, meta: f.meta}
	f.body.read(nil)
	f.meta.read(nil)
	if m == nil {
		return
	}
	f.id = rawjson.Quote(m.ID)
	f.body.read(m.Body)
	f.meta.read(m.Metadata)
	if !m.Created.IsZero() {
		f.at = appendTime(f.at, m.Created)
	}
}

// members are the members of an object. If a key repeats, its last value counts.
type members struct {
	list  []rawjson.Member
	index map[string][]byte // of many
}

// fewMembers is up to how many members are searched linearly.
const fewMembers = 24

// read replaces the members by those of a value.
func (m *members) read(raw []byte) {
	clear(m.list)
	m.list, m.index = m.list[:0], nil
	if !rawjson.IsObject(raw) {
		return
	}
	for member := range rawjson.Members(raw) {
		m.list = append(m.list, member)
	}
	if len(m.list) > fewMembers {
		m.index = make(map[string][]byte, len(m.list))
		for i := range m.list {
			m.index[m.list[i].Key] = m.list[i].Value
		}
	}
}

// get returns the value of a key, or nil.
func (m *members) get(key string) []byte {
	if m.index != nil {
		return m.index[key]
	}
	for i := len(m.list) - 1; i >= 0; i-- {
		if m.list[i].Key == key {
			return m.list[i].Value
		}
	}
	return nil
}

// inner returns the members of the values of the body. Of each key, the first value counts.
func (f *holeFiller) inner() map[string][]byte {
	if f.inside != nil || f.message == nil || !rawjson.IsObject(f.message.Body) {
		return f.inside
	}
	f.inside = make(map[string][]byte)
	for m := range rawjson.Members(f.message.Body) {
		addInner(f.inside, m.Value, 0)
	}
	return f.inside
}

// Limits of inner. They decide what blocks mean: they must not change.
const (
	maxInner      = 1 << 12
	maxInnerDepth = 16
)

func addInner(members map[string][]byte, v []byte, depth int) {
	switch {
	case depth == maxInnerDepth:
	case rawjson.IsObject(v):
		for m := range rawjson.Members(v) {
			if _, known := members[m.Key]; !known && len(members) < maxInner {
				members[m.Key] = m.Value
			}
			addInner(members, m.Value, depth+1)
		}
	case rawjson.IsArray(v):
		for e := range rawjson.Elements(v) {
			addInner(members, e, depth+1)
		}
	}
}

// joiner fills the holes of templates.
type joiner struct {
	holeFiller
	session          []byte
	back, own, whole func() ([]byte, error)
	uuid             func() (uuid.UUID, error)
	time             func() (int64, error)
	named            func(id []byte) // is told the ids of lines, if it is not nil
}

// join appends a template with its holes filled.
func (j *joiner) join(out, template []byte) ([]byte, error) {
	for {
		at := holeIn(template)
		if at < 0 {
			return append(out, template...), nil
		}
		out = append(out, template[:at]...)
		value, err := j.fills(template[at], template[:at])
		if err != nil {
			return out, err
		}
		out, template = append(out, value...), template[at+1:]
	}
}

// fills returns the content of a hole, given the text before it.
func (j *joiner) fills(hole byte, before []byte) ([]byte, error) {
	switch {
	case hole == holeSession:
		return j.session, nil
	case hole == holeBack:
		return j.back()
	case hole == holeOwn:
		return j.own()
	case hole == holeUUID:
		id, err := j.uuid()
		return j.name(appendUUID(nil, id)), err
	case hole == holeOwnTime:
		ms, err := j.time()
		return appendTime(nil, time.UnixMilli(ms)), err
	case hole == holeWhole && j.whole != nil:
		return j.whole()
	case j.message == nil:
		return nil, fmt.Errorf("%w: a hole for a message that the line does not have", ErrMalformed)
	}
	switch hole {
	case holeBody:
		return j.message.Body, nil
	case holeText:
		return rawjson.Quote(string(j.message.Body)), nil
	case holeID:
		return j.name(j.id), nil
	case holeTime:
		return j.at, nil
	case holeMember:
		return j.body.get(keyAt(before)), nil
	case holeInner:
		return j.inner()[keyAt(before)], nil
	case holeMeta:
		return j.meta.get(keyAt(before)), nil
	}
	return nil, fmt.Errorf("%w: hole %#x", ErrMalformed, hole)
}

// name reports the id of a line, and returns it.
func (j *joiner) name(id []byte) []byte {
	if j.named != nil {
		j.named(id)
	}
	return id
}

// holeIn returns the index of the first hole, or -1.
func holeIn(template []byte) int {
	for i, c := range template {
		if isHole(c) {
			return i
		}
	}
	return -1
}

// needsMessage reports whether a template has a hole for a part of a message.
func needsMessage(template []byte) bool {
	return bytes.IndexFunc(template, func(r rune) bool {
		return r < ' ' && isHole(byte(r)) && r != holeSession && r != holeBack && r != holeOwn && r != holeWhole && r != holeUUID && r != holeOwnTime
	}) >= 0
}

// keyAt returns the key at the end of the text before a value. It has no escapes.
func keyAt(before []byte) string {
	before = bytes.TrimRight(before, " \t\r\n")
	before = bytes.TrimRight(bytes.TrimSuffix(before, []byte(":")), " \t\r\n")
	before = bytes.TrimSuffix(before, []byte(`"`))
	return string(before[bytes.LastIndexByte(before, '"')+1:])
}

var errShort = fmt.Errorf("%w: it ends early", ErrMalformed)

// reader reads the fields of a block.
type reader struct{ varint.Reader }

func read(b []byte) reader { return reader{varint.Reader{Rest: b}} }

// varints returns the bytes of n varints.
func (r *reader) varints(n int) []byte {
	rest := r.Rest
	for range n {
		r.Next()
	}
	return rest[:len(rest)-len(r.Rest)]
}

// signed returns the next signed varint.
func (r *reader) signed() int64 {
	v := r.Next()
	return int64(v>>1) ^ -int64(v&1)
}

// bytes returns a length-prefixed byte string of at most most bytes.
func (r *reader) bytes(most uint64) []byte { return r.Take(r.AtMost(most)) }

// appendUUID appends a UUID as a JSON string in lower case.
func appendUUID(b []byte, id uuid.UUID) []byte {
	var text [38]byte
	hex.Encode(text[1:], id[:4])
	hex.Encode(text[10:], id[4:6])
	hex.Encode(text[15:], id[6:8])
	hex.Encode(text[20:], id[8:10])
	hex.Encode(text[25:], id[10:])
	text[0], text[9], text[14], text[19], text[24], text[37] = '"', '-', '-', '-', '-', '"'
	return append(b, text[:]...)
}

func appendTime(b []byte, at time.Time) []byte { return at.UTC().AppendFormat(b, timeForm) }
