package pack

import (
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

const (
	usageName = 1 << iota
	usageType
	usageOrigin
	usageSource
)

const usageMetadata = 1

var roles = [...]string{"", "user", "assistant", "system", "tool", "developer", "function"}

func (f *former) usage(u *structure.Usage) {
	u.Kind = structure.UsageKind(f.symbol(symbolUsage, int(u.Kind)))
	has, more := 0, 0
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
	has, more = f.symbol(symbolUsageHas, has), f.symbol(symbolUsageMore, more)
	f.contentOf()
	switch u.Kind {
	case structure.MessageUsage:
		role := max(slices.Index(roles[1:], u.Role)+1, 0)
		role = f.c.symbol(columnRole, role)
		if role >= len(roles) {
			f.fail(errForm)
			return
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
	default:
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
	if has&usageOrigin != 0 {
		if u.Origin == nil {
			u.Origin = new(content.Origin)
		}
		f.origin(u.Origin)
	}
	if has&usageSource != 0 {
		u.SourceID = f.str(textUsageSource, u.SourceID)
	}
	f.alias(u)
	if more&usageMetadata != 0 {
		u.Metadata = []byte(f.str(textUsageMetadata, string(u.Metadata)))
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

// Aliases are those that a thread gives, one of the latest or another; or any.
const (
	mostScopes = 8
	aliasNone  = mostScopes + iota
	aliasScope
	aliasOther
)

// aliasOf returns the alias that a store gives a message with a caller's id.
func aliasOf(s scope, source string) structure.Alias {
	return structure.DeriveID[structure.Alias]("usage", structure.ThreadID(s.thread).String(), strconv.FormatUint(s.incarnation, 16), source)
}

func (f *former) alias(u *structure.Usage) {
	how := aliasNone
	var found scope
	if f.c.writing && !u.Alias.IsZero() {
		how = aliasOther
		for i, s := range f.at.scopes {
			if aliasOf(s, u.SourceID) == u.Alias {
				how = i
				break
			}
		}
		if how == aliasOther && f.threads != nil {
			if s, ok := f.threads(f.at.run, u.Alias, u.SourceID); ok {
				found, how = s, aliasScope
			}
		}
	}
	switch how = f.symbol(symbolAlias, how); {
	case how < mostScopes:
		if how >= len(f.at.scopes) {
			f.fail(errForm)
			return
		}
		s := f.at.scopes[how]
		copy(f.at.scopes[1:how+1], f.at.scopes[:how])
		f.at.scopes[0] = s
	case how == aliasNone:
		u.Alias = structure.Alias{}
		return
	case how == aliasScope:
		f.anID(idThread, &found.thread)
		found.incarnation = f.incarnation(found.incarnation)
		f.scope(found)
	case how == aliasOther:
		f.bytes(u.Alias[:])
		return
	default:
		f.fail(errForm)
		return
	}
	if !f.c.writing {
		u.Alias = aliasOf(f.at.scopes[0], u.SourceID)
	}
}

// scope puts a thread before those whose aliases are tried.
func (f *former) scope(s scope) {
	f.at.scopes = append([]scope{s}, f.at.scopes[:min(len(f.at.scopes), mostScopes-1)]...)
}
