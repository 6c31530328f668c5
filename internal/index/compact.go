package index

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

// Compact folds everything applied so far and rewrites the file with all entries in a
// sealed table. What keep, if not nil, returns of a value is sealed; a nil value leaves the entry out.
// Deleted data is in no page of the new file. Readers continue, those of older states
// with the old file. In memory it does nothing.
func (db *DB) Compact(ctx context.Context, keep func(key, value []byte) []byte) error {
	if db.opt.InMemory {
		return nil
	}
	if err := db.claim(); err != nil {
		return err
	}
	pageSize := 0
	if db.pages.inUse() <= smallFile {
		pageSize = smallPage
	}
	fresh, err := db.rewrite(pageSize, func(fresh *DB) (*sealing, error) {
		var s State
		err := guard(func() error {
			return db.bolt.View(func(tx *bbolt.Tx) (err error) {
				_, err = s.load(tx)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		return db.seal(ctx, fresh, s, keep)
	})
	if err == nil {
		err = db.syncName()
	}
	db.endFold(func() (release func()) {
		if fresh == nil {
			return nil
		}
		return db.replace(fresh)
	})
	if err != nil {
		return fmt.Errorf("compact index: %w", err)
	}
	return nil
}
