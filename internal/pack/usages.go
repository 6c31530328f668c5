package pack

import (
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

const (
	usageName = 1 << iota
	usageType
	usageOrigin
	usageSource
)

const (
	usageMetadata = 1 << iota
	usageUnique
	usageVersion
	usageMore // what is rare follows
)

const (
	usageForm = 1 << iota
	usageExtras
	usageOpaque
	usageAside // metadata that is content
)

var roles = [...]string{"", "user", "assistant", "system", "tool", "developer", "function"}

func (f *former) usage(u *structure.Usage) {
	u.Kind = structure.UsageKind(f.symbol(symbolUsage, int(u.Kind)))
	has, more, rare := usageHas(u)
	has, more = f.symbol(symbolUsageHas, has), f.symbol(symbolUsageMore, more)
	f.contentOf()
	if more&usageMore != 0 {
		f.rare(u, rare)
	}
	if !f.ofKind(u) {
		f.fail(errForm)
		return
	}
	u.CreatedAt = f.when(symbolWhenUsage, fieldUsageWhen, u.CreatedAt)
	if has&usageName != 0 {
		u.Name = f.str(textName, u.Name)
	}
	if has&usageType != 0 {
		u.Type = f.str(textType, u.Type)
	}
	f.attribution(&u.By)
	if has&usageOrigin != 0 {
		if u.Origin == nil {
			u.Origin = new(content.BlockOrigin)
		}
		f.origin(u.Origin)
	}
	if has&usageSource != 0 {
		u.SourceID = f.str(textUsageSource, u.SourceID)
	}
	switch {
	case more&usageVersion != 0:
		u.Lookup = f.num(fieldVersion, u.Lookup)
	case more&usageUnique != 0:
		u.Lookup = 1
	}
	if more&usageMetadata != 0 {
		u.Metadata = []byte(f.str(textUsageMetadata, string(u.Metadata)))
	}
}

// usageHas returns which optional fields a usage has.
func usageHas(u *structure.Usage) (has, more, rare int) {
	if u.Name != "" {
		has |= usageName
	}
	if u.Type != "" {
		has |= usageType
	}
	if u.Origin != nil {
		has |= usageOrigin
	}
	if u.SourceID != "" {
		has |= usageSource
	}
	if u.Metadata != nil {
		more |= usageMetadata
	}
	switch u.Lookup {
	case 0:
	case 1:
		more |= usageUnique
	default:
		more |= usageVersion
	}
	if !u.Form.IsZero() {
		rare |= usageForm
	}
	if len(u.Extras) > 0 {
		rare |= usageExtras
	}
	if u.Opaque {
		rare |= usageOpaque
	}
	if !u.MetadataContent.IsZero() {
		rare |= usageAside
	}
	if rare != 0 {
		more |= usageMore
	}
	return has, more, rare
}

// ofKind codes the fields that usages of this kind have. It returns false for an unknown
// kind or role.
func (f *former) ofKind(u *structure.Usage) bool {
	switch u.Kind {
	case structure.MessageUsage:
		u.Piece = structure.Piece(f.symbol(symbolPiece, int(u.Piece)))
		role := f.c.symbol(columnRole, max(slices.Index(roles[1:], u.Role)+1, 0))
		if role >= len(roles) {
			return false
		}
		if role > 0 {
			u.Role = roles[role]
		} else {
			u.Role = f.str(textRole, u.Role)
		}
	case structure.DocumentUsage:
		u.Document = f.str(textDocument, u.Document)
		u.Revision = f.num(fieldRevision, u.Revision)
	case structure.AssetUsage:
		u.Filename = f.str(textFile, u.Filename)
	case structure.PartUsage:
		u.Piece = structure.Piece(f.symbol(symbolPiece, int(u.Piece)))
	default:
		return false
	}
	return true
}

// named stands for content that a usage names until it is known.
var named = content.ID{0: 0xff}

// rare codes what few usages have. Content that is named is coded behind that of the usage.
func (f *former) rare(u *structure.Usage, rare int) {
	if rare = f.symbol(symbolRare, rare); rare&usageForm != 0 {
		f.contentOf()
	}
	if rare&usageAside != 0 {
		f.contentOf()
	}
	u.Opaque = rare&usageOpaque != 0
	if !f.c.writing {
		if rare&usageForm != 0 {
			u.Form = named
		}
		if rare&usageAside != 0 {
			u.MetadataContent = named
		}
	}
	if rare&usageExtras == 0 {
		return
	}
	n := f.count(fieldExtras, len(u.Extras), structure.MostExtras)
	for i := 0; i < n && f.err == nil && !f.c.spent(); i++ {
		if !f.c.writing {
			u.Extras = append(u.Extras, nil)
		}
		u.Extras[i] = []byte(f.str(textExtra, string(u.Extras[i])))
	}
}

// Content is that of the latest block of the commit, of one before, of a body of
// the pack, or of any id.
const (
	contentLatest = iota
	contentBack
	contentBody
	contentID
)

// contentOf codes whose content the next usage of the commit has.
func (f *former) contentOf() {
	var r contentRef
	how := contentID
	if f.c.writing {
		switch r = f.commit.content[f.used]; {
		case r.back == 0:
			how = contentLatest
		case r.back > 0:
			how = contentBack
		default:
			how = r.named()
		}
	}
	f.used++
	switch how = f.symbol(symbolContent, how); how {
	case contentLatest:
		r.back = 0
		f.blockBack(&r)
	case contentBack:
		r.back = f.count(fieldBack, r.back, mostRecords)
		f.blockBack(&r)
	default:
		r.back = -1
		f.named(how, &r)
	}
	if !f.c.writing {
		f.commit.content = append(f.commit.content, r)
	}
}

// named is how content is coded that is none of the commit's.
func (r *contentRef) named() int {
	if r.body >= 0 {
		return contentBody
	}
	return contentID
}

func (f *former) named(how int, r *contentRef) {
	switch how {
	case contentBody:
		r.body = int64(f.at.nextBody - f.num(fieldBody, f.at.nextBody-uint64(r.body)))
		if r.body < 0 || uint64(r.body) >= f.at.nextBody {
			f.fail(errForm)
		}
	case contentID:
		f.bytes(r.id[:])
		r.body = -1
	default:
		f.fail(errForm)
	}
}

// blockBack finds the block that content is so many back of, which may stand in a
// chapter before.
func (f *former) blockBack(r *contentRef) {
	switch at := len(f.blocks) - 1 - r.back; {
	case at >= 0 && at < len(f.blocks):
		if !f.c.writing {
			r.body = f.blocks[at]
		}
	case f.commit.rest == nil || r.back >= structure.LocalBlocks:
		f.fail(errForm)
	default:
		f.named(f.symbol(symbolContent, r.named()), r)
	}
}
