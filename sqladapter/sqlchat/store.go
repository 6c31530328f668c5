// Package sqlchat keeps chats in a SQL database, in the documented tables.
//
// # Other programs
//
// Other programs may write to the documented tables at the same time. Additional data about a message is in separate
// tables. If it is missing, it is derived from the row of the message. No result requires other programs to maintain
// it.
//
// # Search
//
// Texts are split into words by this package, not by the databases, so that all of them find the same. Their indexes
// return candidates. The query is then evaluated on the message itself.
package sqlchat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
)

// Open opens a database. It migrates the schema, unless Options.Schema forbids it, and completes interrupted
// deletions. If the documented tables belong to something else, the error is ErrForeign and nothing is changed.
// Unless the connections are shared, DB.Close closes them, and so does Open if it fails. It is for packages of
// dialects.
func Open(ctx context.Context, pools sqladapter.Pools, dialect sqladapter.Dialect, o sqladapter.Options) (*sqladapter.DB, error) {
	db := sqladapter.New(pools, dialect, o)
	if err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", dialect.Name(), err), pools.Close())
	}
	if o.Schema != sqladapter.KeepTables {
		// If this fails, for example because rights are missing, the next program that opens the database tries
		// again.
		_, _ = chatrows.FinishDeletions(ctx, db)
	}
	return db, nil
}

// On returns the chats in a database, including those that other programs have written. Any number of stores may be
// created for a database. The owner of the database must close it.
func On(db *sqladapter.DB) chat.Store { return &store{db: db} }

// store implements chat.Store.
type store struct{ db *sqladapter.DB }

// moment returns the caller's time, or now if it is 0.
func moment(millis int64) int64 { return cmp.Or(millis, time.Now().UnixMilli()) }

// storable adds the subject to an error about a value that the database cannot store or cannot tell from another.
func storable(db *sqladapter.DB, err error, subject chat.Subject, id string) error {
	if err == nil {
		return nil
	}
	switch db.Dialect().Classify(err) {
	case sqladapter.Duplicate:
		return &chat.Error{Subject: subject, ID: id, Err: chat.ErrExists, Detail: fmt.Sprintf(
			"%s takes it, or something of its, for one that is there: it may compare without case or spaces at the end (%v)", db.Dialect().Name(), err)}
	case sqladapter.Unstorable:
		return &chat.Error{Subject: subject, ID: id, Err: chat.ErrInvalid, Detail: fmt.Sprintf("%s cannot keep it: %v", db.Dialect().Name(), err)}
	}
	return err
}
