package manifest

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// Builder builds blocks of a manifest.
type Builder struct {
	session []byte // in its quotes

	lines     int
	templates map[string]uint64
	table     []byte // the templates in order
	numbers   []byte // of the lines' templates
	runs      map[structure.RunID]uint64
	runTable  []byte
	next      []uint64 // the expected place of the next span of each run
	spans     []byte
	ids       map[string]int // of the block's lines, in their quotes, by their latest place in list
	list      []string
	back      []byte // how many ids back
	own       []byte
	uuids     []byte
	times     []byte
	lastTime  int64 // of times
	filling   holeFiller
}

// NewBuilder returns a builder for the lines of a session file.
func NewBuilder(session string) *Builder {
	b := &Builder{session: rawjson.Quote(session)}
	b.reset()
	return b
}

func (b *Builder) reset() {
	*b = Builder{session: b.session, filling: b.filling, templates: make(map[string]uint64), runs: make(map[structure.RunID]uint64), ids: make(map[string]int)}
}

// Lines is the number of lines in the current block.
func (b *Builder) Lines() int { return b.lines }

// Full reports whether the block must be ended before the next line.
func (b *Builder) Full() bool {
	return b.lines == maxLines || len(b.table)+len(b.own)+len(b.spans)+len(b.runTable) >= fullBlock
}

// Add adds a line with its line end. spans are the spans with its messages, and m is the first message, or nil. valid is set
// if the line is known to be JSON, but for a byte order mark and white space around it. Add returns the line if the caller has
// to keep it whole, or nil if it follows from the message.
func (b *Builder) Add(line []byte, spans []structure.SpanRef, m *Message, valid bool) (whole []byte) {
	text, end := CutEnd(line)
	b.filling.set(m)
	c := cutter{builder: b, holeFiller: &b.filling}
	c.out = binary.AppendUvarint(c.out, uint64(min(len(spans), maxSpans)))
	start := len(c.out)
	if !c.line(text, valid) || len(c.out)+len(end) > maxTemplate || !c.joinsTo(c.out[start:], text) {
		c = cutter{out: append(c.out[:start], holeWhole)}
		whole = text
	}
	c.out = append(c.out, end...)
	number, known := b.templates[string(c.out)]
	if !known {
		number = uint64(len(b.templates))
		b.templates[string(c.out)] = number
		b.table = appendBytes(b.table, c.out)
	}
	b.numbers = binary.AppendUvarint(b.numbers, number)
	for _, span := range spans[:min(len(spans), maxSpans)] {
		b.span(span)
	}
	for _, back := range c.back {
		b.back = binary.AppendUvarint(b.back, back)
	}
	for _, own := range c.own {
		b.own = appendBytes(b.own, own)
	}
	for _, id := range c.uuids {
		b.uuids = append(b.uuids, id[:]...)
	}
	for _, at := range c.times {
		b.times = binary.AppendVarint(b.times, at-b.lastTime)
		b.lastTime = at
	}
	for _, id := range c.ids {
		id := string(id) // not the memory of the line
		b.ids[id] = len(b.list)
		b.list = append(b.list, id)
	}
	b.lines++
	return whole
}

// CutEnd splits a line into its text and its line end.
func CutEnd(line []byte) (text, end []byte) {
	text = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	return text, line[len(text):]
}

// IsObject reports whether b begins and ends as a JSON object does. b is valid JSON, which may have white space around it.
func IsObject(b []byte) bool { return len(b) > 1 && b[0] == '{' && b[len(b)-1] == '}' }

func (b *Builder) span(span structure.SpanRef) {
	run, known := b.runs[span.Run]
	if !known {
		run = uint64(len(b.runs))
		b.runs[span.Run] = run
		b.runTable = append(b.runTable, span.Run[:]...)
		b.next = append(b.next, 0)
	}
	b.spans = binary.AppendUvarint(b.spans, run)
	b.spans = binary.AppendVarint(b.spans, int64(span.Seq-b.next[run]))
	b.next[run] = span.Seq + 1
}

// Block returns the finished block and begins the next one.
func (b *Builder) Block() []byte {
	var out []byte
	out = binary.AppendUvarint(out, uint64(b.lines))
	out = binary.AppendUvarint(out, uint64(len(b.templates)))
	out = append(out, b.table...)
	out = append(out, b.numbers...)
	out = binary.AppendUvarint(out, uint64(len(b.runs)))
	out = append(out, b.runTable...)
	out = append(out, b.spans...)
	out = append(out, b.back...)
	out = append(out, b.times...)
	out = append(out, b.uuids...)
	out = append(out, b.own...)
	b.reset()
	return encoder().EncodeAll(out, nil)
}

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false)) // the options are valid
	return e
})

func appendBytes(b, value []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// cutter splits a line into a template and the values of its holes.
type cutter struct {
	builder *Builder
	out     []byte
	back    []uint64
	own     [][]byte
	size    int // of own
	uuids   []uuid.UUID
	times   []int64
	ids     [][]byte // of the line, which later ones may name
	depth   int      // of the object that is being cut
	scratch [40]byte
	*holeFiller
}

// line cuts a line without its line end, and reports whether the rest says nothing.
func (c *cutter) line(text []byte, valid bool) bool {
	mark := len(text) - len(bytes.TrimPrefix(text, byteOrderMark))
	trimmed := bytes.Trim(text[mark:], " \t\r\n")
	before := bytes.Index(text[mark:], trimmed) + mark
	c.out = append(c.out, text[:before]...)
	switch {
	case len(trimmed) == 0:
	case isAround(trimmed):
		c.out = append(c.out, trimmed...)
	case !(valid && IsObject(trimmed)) && rawjson.Check(trimmed) != nil, !c.value("", trimmed):
		return false
	}
	c.out = append(c.out, text[before+len(trimmed):]...)
	return true
}

// isAround reports whether bytes are only what stands around values in JSON: white space, brackets, commas, and plain keys with
// their colons. A file that is one JSON value is recorded as its values, with such bytes between them.
func isAround(b []byte) bool {
	for i := 0; i < len(b); {
		switch b[i] {
		case ' ', '\t', '\r', '\n', '{', '}', '[', ']', ',':
			i++
		case '"':
			end := rawjson.StringEnd(b, i)
			if end < i+2 || !form.IsPlainKey(b[i:end]) { // shorter if it is cut off after its first quote
				return false
			}
			if i = rawjson.SkipSpace(b, end); i == len(b) || b[i] != ':' {
				return false
			}
			i++
		default:
			return false
		}
	}
	return true
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// value cuts a value under a key, and reports whether the rest says nothing.
func (c *cutter) value(key string, v []byte) bool {
	if c.known(key, v) {
		return true
	}
	switch v[0] {
	case '{':
		return c.object(v)
	case '[':
		end := 0
		for at, e := range rawjson.ElementsAt(v) {
			c.out = append(c.out, v[end:at]...)
			if !c.value("", e) {
				return false
			}
			end = at + len(e)
		}
		c.out = append(c.out, v[end:]...)
		return true
	case '"':
		switch {
		case form.IsKind(key, v):
			c.out = append(c.out, v...)
			return true
		case !form.IsQuiet(key, v):
			return false
		}
	case 't', 'f', 'n':
		c.out = append(c.out, v...)
		return true
	}
	if v[0] == '"' && c.ownIDOrTime(v) {
		return true
	}
	if c.size += len(v); len(v) > maxValue || c.size > maxOwn {
		return false
	}
	c.out = append(c.out, holeOwn)
	c.own = append(c.own, v)
	return true
}

// ownIDOrTime cuts an id or time that occurs only in this line.
func (c *cutter) ownIDOrTime(v []byte) bool {
	if id, ok := uuidIn(v); ok {
		c.out = append(c.out, holeUUID)
		c.uuids, c.ids = append(c.uuids, id), append(c.ids, v)
		return true
	}
	if at, ok := timeIn(v); ok {
		c.out = append(c.out, holeOwnTime)
		c.times = append(c.times, at)
		return true
	}
	return false
}

// uuidIn parses a JSON string that is a UUID exactly as appendUUID writes it.
func uuidIn(v []byte) (id uuid.UUID, ok bool) {
	if len(v) != 38 {
		return id, false
	}
	for i, c := range v[1:37] {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return id, false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return id, false
		}
	}
	id, err := uuid.ParseBytes(v[1:37])
	return id, err == nil
}

// timeIn parses a JSON string that is a time exactly as appendTime writes it, and returns it in milliseconds.
func timeIn(v []byte) (ms int64, ok bool) {
	if len(v) != len(timeForm) || v[5] != '-' || v[11] != 'T' {
		return 0, false
	}
	at, err := time.Parse(timeForm, string(v))
	var formatted [len(timeForm)]byte
	return at.UnixMilli(), err == nil && bytes.Equal(appendTime(formatted[:0], at), v)
}

func (c *cutter) object(v []byte) bool {
	c.depth++
	defer func() { c.depth-- }()
	end := 0
	for m := range rawjson.Members(v) {
		if !form.IsPlainKey(m.Quoted) {
			return false
		}
		c.out = append(c.out, v[end:m.At]...)
		if !c.value(m.Key, m.Value) {
			return false
		}
		end = m.At + len(m.Value)
	}
	c.out = append(c.out, v[end:]...)
	return true
}

// known replaces a value that follows from the message or the session by a hole. It returns false for other values.
func (c *cutter) known(key string, v []byte) bool {
	hole := byte(0)
	b := c.builder
	if m := c.message; m != nil {
		switch {
		case len(m.Body) > 0 && bytes.Equal(v, m.Body):
			hole = holeBody
		case v[0] == '"' && m.ID != "" && bytes.Equal(v, c.id):
			hole = holeID
		case v[0] == '"' && bytes.Equal(v, c.at):
			hole = holeTime
		case v[0] == '"' && len(v) >= len(m.Body)+2 && bytes.Equal(v, rawjson.Quote(string(m.Body))):
			hole = holeText
		}
	}
	if v[0] == '"' && hole == 0 && len(b.session) > 2 && bytes.Equal(v, b.session) {
		hole = holeSession
	}
	if hole == 0 && key != "" {
		switch {
		case bytes.Equal(v, c.meta.get(key)):
			hole = holeMeta
		case bytes.Equal(v, c.body.get(key)):
			hole = holeMember
		case c.depth > 1 && bytes.Equal(v, c.inner()[key]):
			hole = holeInner
		}
	}
	if v[0] == '"' && hole == 0 {
		if n, ok := b.ids[string(v)]; ok {
			hole = holeBack
			c.back = append(c.back, uint64(len(b.list)-n))
		}
	}
	if hole == 0 {
		return false
	}
	c.out = append(c.out, hole)
	if hole == holeID {
		c.ids = append(c.ids, v)
	}
	return true
}

// joinsTo reports whether the template can be joined to the text again: where a key repeats, a hole may be filled
// with the value of another member.
func (c *cutter) joinsTo(template, text []byte) bool {
	back, own, uuids, times := c.back, c.own, c.uuids, c.times
	j := joiner{holeFiller: *c.holeFiller, session: c.builder.session}
	for {
		at := holeIn(template)
		if at < 0 {
			return bytes.Equal(template, text)
		}
		rest, ok := bytes.CutPrefix(text, template[:at])
		if !ok {
			return false
		}
		var value []byte
		var err error
		switch hole := template[at]; hole {
		case holeBack:
			value, back = append(c.scratch[:0], c.builder.list[len(c.builder.list)-int(back[0])]...), back[1:]
		case holeOwn:
			value, own = own[0], own[1:]
		case holeUUID:
			value, uuids = appendUUID(c.scratch[:0], uuids[0]), uuids[1:]
		case holeOwnTime:
			value, times = appendTime(c.scratch[:0], time.UnixMilli(times[0])), times[1:]
		default:
			value, err = j.fills(hole, template[:at])
		}
		if text, ok = bytes.CutPrefix(rest, value); !ok || err != nil {
			return false
		}
		template = template[at+1:]
	}
}
