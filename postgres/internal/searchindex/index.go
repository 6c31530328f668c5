// Package searchindex keeps the search index of a store in tables of its server, for all processes. Any process may bring
// it up to date: the position is replaced by compare-and-set, and while one process does much, the others wait for it.
//
//	lineage_search        the position, counters, and the epoch of the store that the index is of
//	lineage_search_text   a text, by its id: the number of the term at each word. Erased texts have no words
//	lineage_search_term   the number of a term
//	lineage_search_usage  a text in a message: run, step, first usage of the message, kind and role
//	lineage_search_run, lineage_search_tip, lineage_search_thread
//	                      which steps the threads and contexts see, as in the index in a file
//
// The terms are those of package query, as in the index in a file, so that a search finds the same with the same ranks.
//
// A collection prunes the index: it removes what is dead. An index of another history, one that a collection could not prune,
// and a damaged one are cleared and made again. It is not searched meanwhile. One process owns the clearing or pruning: it marks
// the row of the index, from when on nobody adds, and each step locks the row and does nothing if the owner is another one. When
// an owner is not heard of for a while, another process takes the index over and clears it.
// Numbers of runs, threads and terms are valid in one generation of the index. A search is of one generation.
package searchindex

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
)

// Server executes statements.
type Server interface {
	// Read executes statements that read in one snapshot of the server, in one round trip. It may do so more than once.
	Read(ctx context.Context, statements func(*pgx.Batch)) error
	// Write calls a function in a transaction. It may call it more than once.
	Write(ctx context.Context, do func(Tx) error) error
	// Denied reports whether an error says that the role, or the server, may not write.
	Denied(err error) bool
	// Slow reports whether an error says that a transaction took longer than it may.
	Slow(err error) bool
	// Damaged reports whether an error says that rows contradict each other.
	Damaged(err error) bool
}

// Tx executes statements in a transaction, in one round trip.
type Tx func(statements func(*pgx.Batch)) error

// Index is the index of a store. It is safe for concurrent use.
type Index struct {
	server Server
	store  []byte
	known  terms
}

var _ searched.Index = (*Index)(nil)

// New returns the index of the store with a key.
func New(server Server, store []byte) *Index { return &Index{server: server, store: store} }

// queueMeta reads the row of the index.
func (x *Index) queueMeta(b *pgx.Batch, m *meta) {
	b.Queue(metaSQL, x.store).QueryRow(func(row pgx.Row) error {
		var identity []byte
		var at, id, seen, seenID int64
		*m = meta{}
		err := row.Scan(&m.current, &m.exists, &m.format, &m.epoch, &m.clearing, &m.busy, &identity, &at, &id, &seen, &seenID, &m.Version, &m.stamp,
			&m.generation, &m.owner, &m.spans, &m.runs, &m.threads, &m.terms, &m.erased)
		if err != nil {
			return err
		}
		copy(m.Store[:], identity)
		m.At = backend.Cursor{Number: uint64(at), ID: uint64(id)}
		m.Seen = backend.Cursor{Number: uint64(seen), ID: uint64(seenID)}
		if m.format > format {
			return fmt.Errorf("the search index has format %d, this program knows up to %d: %w", m.format, format, backend.ErrNewerFormat)
		}
		return nil
	})
}

func (x *Index) meta(ctx context.Context) (m meta, err error) {
	err = x.server.Read(ctx, func(b *pgx.Batch) { x.queueMeta(b, &m) })
	return m, err
}

// Mark implements searched.Index.
func (x *Index) Mark(ctx context.Context) (derived.Mark, error) {
	m, err := x.meta(ctx)
	if err == nil && !m.usable() {
		err = searched.ErrUnsettled
	}
	return m.Mark, err
}

// write executes a statement that changes the row of the index, and then others, in a transaction. It reports false, and
// executes no others, if the statement does not find the row.
func (x *Index) write(ctx context.Context, then func(*pgx.Batch), sql string, args ...any) (found bool, err error) {
	err = x.server.Write(ctx, func(tx Tx) error {
		found = false
		err := tx(func(b *pgx.Batch) {
			b.Queue(sql, append([]any{x.store}, args...)...).Query(func(rows pgx.Rows) error { found = rows.Next(); rows.Close(); return rows.Err() })
		})
		if err != nil || !found || then == nil {
			return err
		}
		return tx(then)
	})
	return found, err
}

// discard has the next update clear a damaged index, unless it has another generation.
func (x *Index) discard(ctx context.Context, generation int64) error {
	_, err := x.write(ctx, nil, `UPDATE lineage_search SET clearing = true, version = version + 1, stamp = $3, busy_until = NULL WHERE store = $1 AND generation = $2 AND NOT clearing RETURNING version`,
		generation, rand.Int64())
	return err
}
