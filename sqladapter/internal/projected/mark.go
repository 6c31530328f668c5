package projected

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/structure"
)

// Format is the version of the projection's format. A projection in another format must be rebuilt.
const Format = 11

// Mark is the state of a projection: its store and the last projected commit. Lineage is set if it has content and
// structure.
type Mark struct {
	derived.Mark
	Lineage bool
}

var markSQL = struct{ read sqladapter.Statement }{
	read: `SELECT "store_id", "format", "lineage", "commit_number", "commit_id", "seen_number", "seen_id", "version" FROM "lineage_projection" WHERE "id" = 1`,
}

// ReadMark returns the state of a projection, nil if there is none.
func ReadMark(ctx context.Context, c *sqladapter.Conn) (*Mark, error) {
	columns, err := c.Dialect().Columns(ctx, c.Querier(), "lineage_projection")
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	m := &Mark{}
	var store string
	var format, id, seen int64
	if slices.Contains(columns, "version") {
		found, err := c.Get(ctx, markSQL.read, nil, &store, &format, &m.Lineage, &m.At.Number, &id, &m.Seen.Number, &seen, &m.Version)
		if err != nil || !found {
			return nil, err
		}
	}
	if format != Format {
		return nil, fmt.Errorf("projection of another format than %d, which this program makes: %w", Format, sqladapter.ErrOtherTables)
	}
	m.At.ID, m.Seen.ID = uint64(id), uint64(seen)
	if m.Store, err = structure.ParseID[structure.StoreID](store); err != nil {
		return nil, fmt.Errorf("table lineage_projection: %w: %w", sqladapter.ErrCorrupt, err)
	}
	return m, nil
}

// HasContexts reports whether a projector has written contexts to the database.
func HasContexts(ctx context.Context, db *sqladapter.DB) (has bool, err error) {
	err = db.Read(ctx, func(c *sqladapter.Conn) error {
		m, err := ReadMark(ctx, c)
		has = m != nil && m.Lineage
		return err
	})
	return has, err
}
