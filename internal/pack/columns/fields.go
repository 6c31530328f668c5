package columns

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

func (f *recordCoder) num(field int, v uint64) uint64 { return f.c.number(field, v) }

func (f *recordCoder) signed(field int, v int64) int64 {
	return varint.Unzigzag(f.num(field, varint.Zigzag(v)))
}

func (f *recordCoder) symbol(s, v int) int { return f.c.symbol(columnSymbols+s, v) }

// count codes a count of at most limit.
func (f *recordCoder) count(field, v, limit int) int {
	n := f.num(field, uint64(v))
	if n > uint64(limit) {
		f.fail(layout.ErrForm)
		return 0
	}
	return int(n)
}

func (f *recordCoder) flag(b bool, s int) bool {
	v := 0
	if b {
		v = 1
	}
	return f.symbol(s, v) != 0
}

// str codes a text of a kind: as one of the recent ones, or by its length and
// its bytes in the chapter's text.
func (f *recordCoder) str(kind int, s string) string {
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
		f.fail(layout.ErrForm)
		return ""
	} else {
		s, f.text = string(f.text[:n]), f.text[n:]
	}
	recent.push(s)
	return s
}

func (f *recordCoder) optional(kind int, b []byte) []byte {
	if !f.flag(b != nil, symbolPresent) {
		return nil
	}
	return []byte(f.str(kind, string(b)))
}

func (f *recordCoder) optionalString(kind int, s *string) *string {
	if !f.flag(s != nil, symbolPresent) {
		return nil
	}
	if s == nil {
		s = new(string)
	}
	out := f.str(kind, *s)
	return &out
}

// bytes codes incompressible bytes.
func (f *recordCoder) bytes(b []byte) {
	f.c.raw(columnBytes, b)
}

func (f *recordCoder) byte(v uint8) uint8 {
	b := [1]byte{v}
	f.bytes(b[:])
	return b[0]
}

// A time is that of the commit, the last one coded, or a difference to the
// latter.
const (
	whenCommit = iota
	whenAgain
	whenOther
)

func (f *recordCoder) when(symbol, field int, t time.Time) time.Time {
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
		f.fail(layout.ErrForm)
	}
	f.at.when = v
	return time.UnixMilli(v).UTC()
}

// An id is a recent one, the next new one, zero, or any other.
const (
	idNew = recentIDs + iota
	idZero
	idFar
)

// anID codes an id and returns its number.
func (f *recordCoder) anID(kind int, id *[16]byte) uint32 {
	recent := &f.at.ids[kind]
	n, how := uint32(0), idFar
	if f.c.writing {
		if *id == ([16]byte{}) {
			how = idZero
		} else if n = f.ids.number(*id); n == f.at.nextID {
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
			f.fail(layout.ErrForm)
			return 0
		}
		n = f.at.nextID - uint32(back)
	default:
		f.fail(layout.ErrForm)
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

func code[T ~[16]byte](f *recordCoder, kind int, id T) T {
	b := [16]byte(id)
	f.anID(kind, &b)
	return T(b)
}

// A position is none, the last span coded, or any other.
const (
	refNone = iota
	refLast
	refOther
)

func (f *recordCoder) ref(r structure.SpanRef) structure.SpanRef {
	how, n := refOther, uint32(0)
	if f.c.writing {
		if r.IsZero() {
			how = refNone
		} else if r.Seq == f.at.seq && f.ids.number(r.Run) == f.at.run {
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
	f.fail(layout.ErrForm)
	return structure.SpanRef{}
}

func (f *recordCoder) origin(o *content.BlockOrigin) {
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

func (f *recordCoder) attribution(by *content.Attribution) {
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

// known returns the number of an id that occurred before in this pack, or 0.
func (f *recordCoder) known(id [16]byte) uint32 {
	if n := f.ids.numbers[id]; n < f.at.nextID {
		return n
	}
	return 0
}
