package sqladapter

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// usageRow returns the row of a usage, in the column order of tables.Usages. Type and origin are
// those of the usage, else of its block.
func (w *projection) usageRow(u *structure.Usage, b *structure.Block, id structure.UsageID) []any {
	mediaType, origin := b.Type, w.cleanOrigin(u.OriginWith(b.Origin))
	if u.Type != "" {
		mediaType = u.Type
	}
	if origin.UserID != "" {
		w.batch.need(tables.Users, origin.UserID)
	}
	kind := u.Kind.String()
	role, name := u.Role, u.Name
	var revision, piece any
	switch u.Kind {
	case structure.DocumentUsage:
		role, name, revision = kind, u.Document, int64(u.Revision)
	case structure.AssetUsage:
		role, name = kind, u.Filename
	default:
		piece = u.Piece.String()
	}
	return []any{
		id.String(), u.Content.String(), clean(role), u.CreatedAt.UnixMilli(), id.Span.String(), id.Index, kind, optional(clean(name)), revision,
		clean(mediaType), optional(clean(u.SourceID)), bytesText(u.Metadata),
		origin.Kind.String(), optional(origin.UserID), optional(origin.ModelID), optional(origin.SourceID), hashText(origin.ParentID),
		piece, boolean(u.Opaque), hashText(u.Form), packExtras(u.Extras), int64(u.Lookup), hashText(u.MetadataContent),
	}
}

// usageAt is a usage read from the database, with its place.
type usageAt struct {
	structure.Usage
	span  string
	place int
}

// scanUsage is the inverse of usageRow.
func scanUsage(rows *Rows) (u usageAt, err error) {
	var id, role, kind, mediaType, originKind string
	var contentID, name, source, metadata, user, model, from, parent, piece, form, metadataID sql.NullString
	var revision sql.NullInt64
	var created, lookup int64
	var extras []byte
	err = rows.Scan(&id, &contentID, &role, &created, &u.span, &u.place, &kind, &name, &revision, &mediaType, &source, &metadata,
		&originKind, &user, &model, &from, &parent, &piece, &u.Opaque, &form, &extras, &lookup, &metadataID)
	if err != nil {
		return u, err
	}
	corrupt := func(column string, err error) (usageAt, error) {
		return u, &TableError{Table: tables.Usages.Name, Err: ErrCorrupt, Detail: fmt.Sprintf("%s of row %q: %v", column, id, err)}
	}
	origin := content.BlockOrigin{}
	if origin.Kind, err = content.ParseOriginKind(originKind); err != nil {
		return corrupt("origin_kind", err)
	}
	for _, is := range []struct {
		column string
		from   sql.NullString
		to     *content.ID
	}{
		{"content_id", contentID, &u.Content}, {"form_id", form, &u.Form}, {"metadata_id", metadataID, &u.MetadataContent}, {"origin_parent_id", parent, &origin.ParentID},
	} {
		if is.from.Valid {
			if *is.to, err = content.ParseID(is.from.String); err != nil {
				return corrupt(is.column, err)
			}
		}
	}
	if u.Kind, err = named(structure.MessageUsage, structure.PartUsage, kind); err != nil {
		return corrupt("kind", err)
	}
	if piece.Valid {
		if u.Piece, err = named(structure.TextPiece, structure.DataPiece, piece.String); err != nil {
			return corrupt("piece", err)
		}
	}
	if u.Extras, err = unpackExtras(extras); err != nil {
		return corrupt("extras", err)
	}
	switch u.Kind {
	case structure.DocumentUsage:
		u.Document, u.Revision = name.String, uint64(revision.Int64)
	case structure.AssetUsage:
		u.Filename = name.String
	default:
		u.Name = name.String
		if u.Kind == structure.MessageUsage {
			u.Role = role
		}
	}
	u.Type, u.Origin, u.CreatedAt = mediaType, &origin, time.UnixMilli(created).UTC()
	u.By = content.Attribution{UserID: user.String, ModelID: model.String, SourceID: from.String}
	u.SourceID, u.Lookup = source.String, uint64(lookup)
	if metadata.Valid {
		u.Metadata = []byte(metadata.String)
	}
	return u, nil
}

// named returns the value between first and last with the given text.
func named[T interface {
	~uint8
	fmt.Stringer
}](first, last T, text string) (T, error) {
	for v := first; v <= last; v++ {
		if v.String() == text {
			return v, nil
		}
	}
	return first, fmt.Errorf("unknown: %.40q", text)
}

// packExtras writes each extra after its length as a varint; nil if there are none.
func packExtras(extras [][]byte) []byte {
	var b []byte
	for _, extra := range extras {
		b = append(binary.AppendUvarint(b, uint64(len(extra))), extra...)
	}
	return b
}

// unpackExtras is the inverse of packExtras.
func unpackExtras(b []byte) (extras [][]byte, err error) {
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, fmt.Errorf("a length is wrong")
		}
		b = b[n:]
		extras, b = append(extras, b[:size:size]), b[size:]
	}
	return extras, nil
}
