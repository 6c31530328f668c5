package columns

import (
	"bytes"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

func (f *recordCoder) usage(u *structure.Usage) {
	u.Kind = structure.UsageKind(f.symbol(symbolUsage, int(u.Kind)))
	has := f.present(u)
	f.contentOf(namesContent)
	f.named(u, has)
	if !f.ofKind(u) {
		f.fail(layout.ErrForm)
		return
	}
	u.CreatedAt = f.when(symbolWhenUsage, fieldUsageWhen, u.CreatedAt)
	if has&structure.HasName != 0 {
		u.Name = f.str(textName, u.Name)
	}
	if has&structure.HasType != 0 {
		u.Type = f.str(textType, u.Type)
	}
	if has&structure.HasBy != 0 {
		f.attribution(&u.By)
	}
	if has&structure.HasOrigin != 0 {
		if u.Origin == nil {
			u.Origin = new(content.BlockOrigin)
		}
		f.origin(u.Origin)
	}
	if has&structure.HasSource != 0 {
		u.SourceID = f.str(textUsageSource, u.SourceID)
	}
	switch {
	case has&structure.HasVersion != 0:
		u.Lookup = f.num(fieldVersion, u.Lookup)
	case has&structure.HasUnique != 0:
		u.Lookup = 1
	}
	if has&structure.HasMetadata != 0 {
		u.Metadata = []byte(f.str(textUsageMetadata, string(u.Metadata)))
	}
	if has&structure.HasExtras != 0 {
		f.extras(u)
	}
	u.Opaque = has&structure.IsOpaque != 0
}

// present codes in groups of four which fields a usage has.
func (f *recordCoder) present(u *structure.Usage) structure.Present {
	p := u.Present()
	common := f.symbol(symbolUsageCommon, int(p&15))
	other := f.symbol(symbolUsageOther, int(p>>4&15))
	rare := f.symbol(symbolUsageRare, int(p>>8))
	p = structure.Present(common | other<<4 | rare<<8)
	if !p.Possible(u.Kind) {
		f.fail(layout.ErrForm)
	}
	return p
}

// ofKind codes the fields specific to the usage's kind. It returns false for an unknown kind
// or role.
func (f *recordCoder) ofKind(u *structure.Usage) bool {
	switch u.Kind {
	case structure.MessageUsage:
		u.Piece = structure.PieceKind(f.symbol(symbolPiece, int(u.Piece)))
		number := f.c.symbol(columnRole, structure.RoleNumber(u.Role))
		if number == 0 {
			u.Role = f.str(textRole, u.Role)
			return true
		}
		role, ok := structure.RoleOf(number)
		u.Role = role
		return ok
	case structure.DocumentUsage:
		u.Document = f.str(textDocument, u.Document)
		u.Revision = f.num(fieldRevision, u.Revision)
	case structure.AssetUsage:
		u.Filename = f.str(textFile, u.Filename)
	case structure.PartUsage:
		u.Piece = structure.PieceKind(f.symbol(symbolPiece, int(u.Piece)))
	default:
		return false
	}
	return true
}

// pending is the id of content that is not resolved yet.
var pending = content.ID{0: 0xff}

// named codes the other content that a usage names, after its own.
func (f *recordCoder) named(u *structure.Usage, has structure.Present) {
	for _, field := range [...]struct {
		bit  structure.Present
		kind int
		id   *content.ID
	}{{structure.HasForm, namesForm, &u.Form}, {structure.HasMetadataContent, namesMetadata, &u.MetadataContent}} {
		if has&field.bit == 0 {
			continue
		}
		f.contentOf(field.kind)
		if !f.c.writing {
			*field.id = pending
		}
	}
}

func (f *recordCoder) extras(u *structure.Usage) {
	n := f.count(fieldExtras, len(u.Extras), structure.MostExtras)
	for i := 0; i < n && f.err == nil && !f.c.spent(); i++ {
		if !f.c.writing {
			u.Extras = append(u.Extras, nil)
		}
		how := extraText
		if f.c.writing {
			how = spellingOf(u.Extras[i], u.CreatedAt)
		}
		if how = f.symbol(symbolExtra, how); how == extraText {
			u.Extras[i] = []byte(f.str(textExtra, string(u.Extras[i])))
		} else if u.Extras[i] = spelled(u.CreatedAt, how); u.Extras[i] == nil {
			f.fail(layout.ErrForm)
		}
	}
}

// An extra is a text, or the time of its usage as messages write it: in seconds or milliseconds since
// 1970, or as JavaScript writes it.
const (
	extraText = iota
	extraSeconds
	extraMillis
	extraISO
)

// spelled returns a time as messages spell it, nil for an unknown way.
func spelled(at time.Time, how int) []byte {
	switch how {
	case extraSeconds:
		return strconv.AppendInt(nil, at.Unix(), 10)
	case extraMillis:
		return strconv.AppendInt(nil, at.UnixMilli(), 10)
	case extraISO:
		return at.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`)
	}
	return nil
}

// spellingOf returns how an extra spells a time, and extraText if it does not.
func spellingOf(extra []byte, at time.Time) int {
	for how := extraSeconds; how <= extraISO; how++ {
		if len(extra) > 0 && (extra[0] == '"') == (how == extraISO) && bytes.Equal(extra, spelled(at, how)) {
			return how
		}
	}
	return extraText
}

// contentOf codes the next content that a usage of the commit names.
func (f *recordCoder) contentOf(kind int) {
	var r ContentRef
	how, recent := contentID, 0
	last := &f.at.names[kind]
	if f.c.writing {
		if r = f.commit.Content[f.used]; r.Back < 0 {
			how, recent = last.elsewhere(&r)
		} else {
			how, recent = last.back(r.Back, len(f.names))
		}
	}
	f.used++
	isBack := true
	switch how = f.symbol(symbolContent+kind, how); how {
	case contentLatest:
		r.Back = 0
	case contentBack:
		r.Back = f.count(fieldBack, r.Back, structure.NamesBack-1)
	case contentNextName:
		r.Back = len(f.names) - 1 - last.next.name
	case contentRecentName:
		r.Back = len(f.names) - 1 - last.recent[f.recent(kind, recent)].name
	default:
		isBack, r.Back = false, -1
		f.elsewhere(kind, how, recent, &r)
		f.names = append(f.names, r)
	}
	place := len(f.names) - 1
	if isBack {
		if r.Back < 0 || r.Back >= structure.NamesBack {
			f.fail(layout.ErrForm)
			return
		}
		place -= r.Back
		f.namedBack(kind, place, &r)
	}
	last.used(named{place, r.Body})
	if !f.c.writing {
		f.commit.Content = append(f.commit.Content, r)
	}
}

// elsewhere codes where content is that the commit did not name before: see recentContents.elsewhere for how.
func (f *recordCoder) elsewhere(kind, how, recent int, r *ContentRef) {
	last := &f.at.names[kind]
	switch how {
	case contentBody:
		r.Body = int64(f.at.nextBody - f.num(fieldBody, f.at.nextBody-uint64(r.Body)))
	case contentNextBody:
		r.Body = last.next.body
	case contentRecentBody:
		r.Body = last.recent[f.recent(kind, recent)].body
	case contentID:
		f.bytes(r.ID[:])
		r.Body = -1
		return
	default:
		f.fail(layout.ErrForm)
		return
	}
	if r.Body < 0 || uint64(r.Body) >= f.at.nextBody {
		f.fail(layout.ErrForm)
	}
}

// recent codes which of the recent names of a kind.
func (f *recordCoder) recent(kind, i int) int {
	if i = f.symbol(symbolRecent+kind, i); i >= recentNames {
		f.fail(layout.ErrForm)
		return 0
	}
	return i
}

// namedBack resolves a name that the commit used before, possibly in an earlier chapter.
func (f *recordCoder) namedBack(kind, place int, r *ContentRef) {
	switch {
	case place >= 0:
		r.Body, r.ID = f.names[place].Body, f.names[place].ID
	case f.commit.Rest == nil:
		f.fail(layout.ErrForm)
	default:
		how, recent := contentID, 0
		if f.c.writing {
			how, recent = f.at.names[kind].elsewhere(r)
		}
		f.elsewhere(kind, f.symbol(symbolContent+kind, how), recent, r)
	}
}
