package pack

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// commit is a commit as a pack holds it: its records without the bodies.
type commit struct {
	number  uint64
	segment uint32
	start   int64 // of its frame
	end     int64 // of its frame when it was first written
	lag     int   // bytes that the durable lag took there
	millis  int64

	records []structure.Record
	// bodies has for each record the number of its body, or -1.
	bodies []int64
	// content has, for each usage in order, whose content it is.
	content []contentRef
	// offsets are where the records began when they were first written, if that
	// is not where they begin now.
	offsets []int
	// verbatim is set when the payload is kept as it is: body bodies[0].
	verbatim bool
	sizes    []int64 // of the bodies, parallel to bodies

	// rest says what comes before the records, where the commit began in a chapter
	// before this one. Where more follow in the next, open is set.
	rest *before
	open bool

	// Computed from the above, of a commit in several chapters when it is needed:
	begins  []int // where the records begin in the payload
	payload int64 // its size, if nothing follows in another chapter
	once    sync.Once
	err     error
}

// before is what the rest of a commit has before it.
type before struct {
	at   int // where the records begin in the payload
	last structure.SpanRef
}

// contentRef names the content of a usage: a body of the pack, a block of the
// commit that was cut into chunks, or an id.
type contentRef struct {
	body int64 // -1 when it is none of the pack's
	back int   // when it is a block of the commit: how many blocks back, else -1
	id   content.ID
}

var errForm = errors.New("not the form of a record")

// former codes the records of one chapter, in the direction of its coder.
type former struct {
	*state
	c *coder

	// bodies are those of a writer that are to come, one behind the other.
	bodies []byte
	// laid are bodies as they stand in the content, by their kinds: all so far of a writer,
	// those to come of a reader, which notes where each begins and its size.
	laid          [bodyKinds][]byte
	begins        [bodyKinds]int64 // of those to come, in the content
	places, sizes []int64
	// text is what the chapter's texts consist of: all so far of a writer, those to
	// come of a reader.
	text []byte
	// id finds an id by its number, and number the number of an id, which is the
	// next when it is new.
	id     func(number uint32) (newID, error)
	number func(id [16]byte) uint32
	// look finds the number of an id that has one, for a writer.
	look func(id [16]byte) uint32
	// derive notes the source that an id is derived from, for a writer. It returns false
	// where a reader would not find it.
	derive func(id [16]byte, source string) bool

	made made

	commit *commit
	used   int     // usages of the commit so far
	blocks []int64 // bodies of the blocks of the commit so far; -1 for one that was cut
	err    error
}

// made is memory for the records that a reader makes, several at a time: a chapter
// is kept as a whole.
type made struct {
	blocks []structure.Block
	spans  []structure.Span
	usages []structure.Usage
}

// mostMade is how many records are made at a time.
const mostMade = 32

// next returns the next of some memory, more of which it makes when needed.
func next[T any](of *[]T) *T {
	if len(*of) == cap(*of) {
		*of = make([]T, 0, min(2*cap(*of)+1, mostMade))
	}
	*of = (*of)[:len(*of)+1]
	return &(*of)[len(*of)-1]
}

// usage returns room for one usage.
func (m *made) usage() []structure.Usage {
	next(&m.usages)
	n := len(m.usages) - 1
	return m.usages[n:n:len(m.usages)]
}

func (f *former) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *former) num(field int, v uint64) uint64 { return f.c.number(field, v) }

func (f *former) signed(field int, v int64) int64 { return unzigzag(f.num(field, zigzag(v))) }

func (f *former) symbol(s, v int) int { return f.c.symbol(columnSymbols+s, v) }

// count codes how many there are of something, of which there can be no more
// than the limit.
func (f *former) count(field, v, limit int) int {
	n := f.num(field, uint64(v))
	if n > uint64(limit) {
		f.fail(errForm)
		return 0
	}
	return int(n)
}

func (f *former) flag(b bool, s int) bool {
	v := 0
	if b {
		v = 1
	}
	return f.symbol(s, v) != 0
}

// str codes a text of a kind: one that was used lately, or by its length and
// the chapter's text.
func (f *former) str(kind int, s string) string {
	recent := &f.texts[kind]
	at := recentTexts
	if f.c.writing {
		if i := recent.find(s); i >= 0 {
			at = i
		}
	}
	at = f.symbol(symbolTexts+kind, at)
	if at < recentTexts {
		recent.front(at)
		return recent[0]
	}
	n := f.num(fieldLength+kind, uint64(len(s)))
	if f.c.writing {
		f.text = append(f.text, s...)
	} else if n > uint64(len(f.text)) {
		f.fail(errForm)
		return ""
	} else {
		s, f.text = string(f.text[:n]), f.text[n:]
	}
	recent.push(s)
	return s
}

// Bodies of a kind stand together: texts, and anything else.
const (
	bodyText = iota
	bodyOther
	bodyKinds
)

// body codes the next body and returns its size. A zero byte ends it; the size is coded,
// and 1, where it has one itself.
func (f *former) body(kind int, size int64) int64 {
	laid := &f.laid[kind]
	if f.c.writing {
		b := f.bodies[:size]
		f.bodies = f.bodies[size:]
		*laid = append(*laid, b...)
		if bytes.IndexByte(b, 0) >= 0 {
			f.num(fieldSize, uint64(size)+1)
		} else {
			f.num(fieldSize, 0)
			*laid = append(*laid, 0)
		}
		return size
	}
	var taken int64
	if v := f.num(fieldSize, 0); v > 0 {
		size = int64(min(v-1, mostBody+1))
		taken = size
	} else {
		size = int64(bytes.IndexByte(*laid, 0))
		taken = size + 1
	}
	if size < 0 || taken > int64(len(*laid)) {
		f.fail(errForm)
		return 0
	}
	f.places, f.sizes = append(f.places, f.begins[kind]), append(f.sizes, size)
	*laid = (*laid)[taken:]
	f.begins[kind] += taken
	return size
}

func (f *former) optional(kind int, b []byte) []byte {
	if !f.flag(b != nil, symbolPresent) {
		return nil
	}
	return []byte(f.str(kind, string(b)))
}

func (f *former) optionalString(kind int, s *string) *string {
	if !f.flag(s != nil, symbolPresent) {
		return nil
	}
	if s == nil {
		s = new(string)
	}
	out := f.str(kind, *s)
	return &out
}

// bytes codes bytes that nothing foretells.
func (f *former) bytes(b []byte) {
	f.c.raw(columnBytes, b)
}

func (f *former) byte(v uint8) uint8 {
	b := [1]byte{v}
	f.bytes(b[:])
	return b[0]
}

// Times are that of the commit, that which was stated last, or differ from it.
const (
	whenCommit = iota
	whenAgain
	whenOther
)

func (f *former) when(symbol, field int, t time.Time) time.Time {
	v, how := int64(0), whenOther
	if f.c.writing {
		switch v = t.UnixMilli(); v {
		case f.at.millis:
			how = whenCommit
		case f.at.when:
			how = whenAgain
		}
	}
	switch f.symbol(symbol, how) {
	case whenCommit:
		v = f.at.millis
	case whenAgain:
		v = f.at.when
	case whenOther:
		v = f.at.when + f.signed(field, v-f.at.when)
	default:
		f.fail(errForm)
	}
	f.at.when = v
	return time.UnixMilli(v).UTC()
}

// Ids are one used lately, the next that is new, zero, or any other.
const (
	idNew = recentIDs + iota
	idZero
	idFar
)

// anID codes an id and returns its number.
func (f *former) anID(kind int, id *[16]byte) uint32 {
	recent := &f.at.ids[kind]
	n, how := uint32(0), idFar
	if f.c.writing {
		if *id == ([16]byte{}) {
			how = idZero
		} else if n = f.number(*id); n == f.at.nextID {
			how = idNew
		} else if i := slices.Index(recent[:], n); i >= 0 {
			how = i
		}
	}
	switch how = f.symbol(symbolIDs+kind, how); {
	case how < recentIDs:
		n = recent[how]
		copy(recent[1:how+1], recent[:how])
		recent[0] = n
	case how == idZero:
		*id = [16]byte{}
		return 0
	case how == idNew:
		n = f.at.nextID
		f.at.nextID++
	case how == idFar:
		back := f.num(fieldIDs, uint64(f.at.nextID-n))
		if back > uint64(f.at.nextID) {
			f.fail(errForm)
			return 0
		}
		n = f.at.nextID - uint32(back)
	default:
		f.fail(errForm)
		return 0
	}
	if how >= recentIDs {
		copy(recent[1:], recent[:recentIDs-1])
		recent[0] = n
	}
	if !f.c.writing {
		known, err := f.id(n)
		if err != nil {
			f.fail(err)
		}
		*id = known.id
	}
	return n
}

func code[T ~[16]byte](f *former, kind int, id T) T {
	b := [16]byte(id)
	f.anID(kind, &b)
	return T(b)
}

// Positions are none, the span stated last, or any other.
const (
	refNone = iota
	refLast
	refOther
)

func (f *former) ref(r structure.SpanRef) structure.SpanRef {
	how, n := refOther, uint32(0)
	if f.c.writing {
		if r.IsZero() {
			how = refNone
		} else if r.Seq == f.at.seq && f.number(r.Run) == f.at.run {
			how = refLast
		}
	}
	switch f.symbol(symbolRef, how) {
	case refNone:
		return structure.SpanRef{}
	case refLast:
		if f.c.writing {
			return r
		}
		run, err := f.id(f.at.run)
		if err != nil {
			f.fail(err)
		}
		return structure.SpanRef{Run: run.id, Seq: f.at.seq}
	case refOther:
		run := [16]byte(r.Run)
		n = f.anID(idRun, &run)
		last := f.at.seqs[n]
		seq := uint64(int64(last) + f.signed(fieldSeq, int64(r.Seq-last)))
		return structure.SpanRef{Run: run, Seq: seq}
	}
	f.fail(errForm)
	return structure.SpanRef{}
}

func (f *former) origin(o *content.BlockOrigin) {
	const other = 15
	kind := f.symbol(symbolOrigin, min(int(o.Kind), other))
	if kind == other {
		kind = int(f.byte(uint8(o.Kind)))
	}
	o.Kind = content.OriginKind(kind)
	if f.flag(!o.ParentID.IsZero(), symbolOriginHas) {
		f.bytes(o.ParentID[:])
	}
}

func (f *former) attribution(by *content.Attribution) {
	has := 0
	for i, s := range [...]string{by.UserID, by.ModelID, by.SourceID} {
		if s != "" {
			has |= 1 << i
		}
	}
	has = f.symbol(symbolBy, has)
	if has&1 != 0 {
		by.UserID = f.str(textUser, by.UserID)
	}
	if has&2 != 0 {
		by.ModelID = f.str(textModel, by.ModelID)
	}
	if has&4 != 0 {
		by.SourceID = f.str(textSource, by.SourceID)
	}
}

// record codes a record; that of a reader is none. It returns the size of its
// body, or -1 when it has none in the pack; a writer passes the same.
func (f *former) record(kind structure.Kind, r structure.Record, size int64) (structure.Record, int64) {
	switch kind {
	case structure.KindBlock:
		b, _ := r.(*structure.Block)
		if b == nil {
			b = next(&f.made.blocks)
		}
		return b, f.block(b, size)
	case structure.KindChunk:
		if r == nil {
			r = new(structure.Chunk)
		}
		return r, f.body(bodyOther, size)
	case structure.KindSpan:
		s, _ := r.(*structure.Span)
		if s == nil {
			s = next(&f.made.spans)
		}
		f.span(s)
		return s, -1
	case structure.KindTip:
		t, _ := r.(*structure.Tip)
		if t == nil {
			t = new(structure.Tip)
		}
		t = &structure.Tip{Context: code(f, idContext, t.Context), Span: f.ref(t.Span)}
		return t, -1
	}
	return f.plain(kind, r), -1
}

// Bodies are kept whole, cut into chunks, or gone.
const (
	formWhole = iota
	formTree
	formGone
)

func (f *former) block(b *structure.Block, size int64) int64 {
	b.Type = f.str(textType, b.Type)
	f.origin(&b.Origin)
	b.CreatedAt = f.when(symbolWhenBlock, fieldBlockWhen, b.CreatedAt)
	form := formWhole
	switch {
	case b.Tree.Size != 0:
		form = formTree
	case f.c.writing && size < 0:
		form = formGone
	}
	switch f.symbol(symbolForm, form) {
	case formWhole:
		kind := bodyOther
		if b.Type == content.TypeText {
			kind = bodyText
		}
		size = f.body(kind, size)
		b.Size = size
		return size
	case formTree:
		f.bytes(b.ID[:])
		f.bytes(b.Tree.Key[:])
		b.Tree.Height = f.byte(b.Tree.Height)
		b.Tree.Size = int64(f.num(fieldTreeSize, uint64(b.Tree.Size)))
		if b.Tree.Size <= 0 {
			f.fail(errForm)
		}
		b.Size = b.Tree.Size
	case formGone:
		f.bytes(b.ID[:])
		b.Size = int64(f.num(fieldTreeSize, uint64(b.Size)))
		if b.Size <= 0 {
			f.fail(errForm)
		}
	default:
		f.fail(errForm)
	}
	return -1
}

// Spans go on in the run of the span before, or say where they stand.
const (
	spanNext = 1 << iota
	spanInSet
	spanAlone // has one usage
)

func (f *former) span(s *structure.Span) {
	how := 0
	if f.c.writing {
		if f.number(s.Ref.Run) == f.at.run && s.Ref.Seq == f.at.seq+1 {
			how |= spanNext
		}
		if !s.Set.IsZero() {
			how |= spanInSet
		}
		if len(s.Usages) == 1 {
			how |= spanAlone
		}
	}
	how = f.symbol(symbolSpan, how)
	run := [16]byte(s.Ref.Run)
	switch {
	case how&spanNext == 0:
		f.at.run = f.anID(idRun, &run)
		last := f.at.seqs[f.at.run] + 1
		s.Ref.Seq = uint64(int64(last) + f.signed(fieldSeq, int64(s.Ref.Seq-last)))
	case !f.c.writing:
		known, err := f.id(f.at.run)
		if err != nil {
			f.fail(err)
		}
		run = known.id
		s.Ref.Seq = f.at.seq + 1
	}
	s.Ref.Run = run
	f.at.seq = s.Ref.Seq
	f.at.seqs[f.at.run] = s.Ref.Seq
	if how&spanInSet != 0 {
		s.Set = code(f, idSet, s.Set)
	}
	n := 1
	if how&spanAlone == 0 {
		n = f.count(fieldUsages, len(s.Usages), mostRecords)
	}
	if !f.c.writing {
		if n > mostRecords || f.c.spent() {
			f.fail(errForm)
			return
		}
		if s.Usages = nil; n == 1 {
			s.Usages = f.made.usage()
		}
	}
	for i := range n {
		if f.err != nil || f.c.spent() {
			f.fail(errForm)
			return
		}
		if !f.c.writing {
			s.Usages = append(s.Usages, structure.Usage{})
		}
		f.usage(&s.Usages[i])
	}
}

// mostRecords is how many records or usages one commit may claim to have.
const mostRecords = 1 << 26
