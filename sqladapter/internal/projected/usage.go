package projected

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// UsageRow returns the row of a usage with its origin, in the column order of tables.Usages. mediaType is the type of
// its block, for a usage without a type.
func UsageRow(u *structure.Usage, mediaType string, origin content.Origin, id structure.UsageID) []any {
	if u.Type != "" {
		mediaType = u.Type
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
		id.String(), u.Content.String(), Clean(role), u.CreatedAt.UnixMilli(), id.Span.String(), id.Index, kind, chatrows.Optional(Clean(name)), revision,
		Clean(mediaType), chatrows.Optional(Clean(u.SourceID)), BytesText(u.Metadata),
		origin.Kind.String(), chatrows.Optional(origin.UserID), chatrows.Optional(origin.ModelID), chatrows.Optional(origin.SourceID), HashText(origin.ParentID),
		piece, Boolean(u.Opaque), HashText(u.Form), packExtras(u.Extras), int64(u.Lookup), HashText(u.MetadataContent),
	}
}

// Usage is a usage read from the database, with its span and index.
type Usage struct {
	structure.Usage
	Span  string
	Place int
}

// ScanUsage is the inverse of UsageRow.
func ScanUsage(rows *sqladapter.Rows) (u Usage, err error) {
	var id, role, kind, mediaType, originKind string
	var contentID, name, source, metadata, user, model, from, parent, piece, form, metadataID sql.NullString
	var revision sql.NullInt64
	var created, lookup int64
	var extras []byte
	err = rows.Scan(&id, &contentID, &role, &created, &u.Span, &u.Place, &kind, &name, &revision, &mediaType, &source, &metadata,
		&originKind, &user, &model, &from, &parent, &piece, &u.Opaque, &form, &extras, &lookup, &metadataID)
	if err != nil {
		return u, err
	}
	corrupt := func(column string, err error) (Usage, error) {
		return u, &sqladapter.TableError{Table: tables.Usages.Name, Err: sqladapter.ErrCorrupt, Detail: fmt.Sprintf("%s of row %q: %v", column, id, err)}
	}
	origin := content.BlockOrigin{}
	if origin.Kind, err = content.ParseOriginKind(originKind); err != nil {
		return corrupt("origin_kind", err)
	}
	for _, part := range []struct {
		column string
		from   sql.NullString
		to     *content.ID
	}{
		{"content_id", contentID, &u.Content}, {"form_id", form, &u.Form}, {"metadata_id", metadataID, &u.MetadataContent}, {"origin_parent_id", parent, &origin.ParentID},
	} {
		if part.from.Valid {
			if *part.to, err = content.ParseID(part.from.String); err != nil {
				return corrupt(part.column, err)
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

// named returns the value from first to last whose String is text.
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

// packExtras writes each extra after its length as a varint. It returns nil if there are none.
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
