package project

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var scopeSQL = struct {
	reach, reachOf sqladapter.Statement
}{
	reach:   `SELECT "run_id", "last_seq", "own" FROM "lineage_reach" WHERE "scope" = ?`,
	reachOf: `SELECT "run_id", "last_seq", "own" FROM "lineage_reach" WHERE "scope" = ? AND "run_id" = ?`,
}

// scope is a thread, or a context outside of threads, that a pass processes.
type scope struct {
	// key is its id in the database.
	key     string
	thread  structure.ThreadID
	context structure.ContextID // when there is no thread
	// checkpoints are the ids of the checkpoints of the chat in the database, once they were read.
	checkpoints map[string]bool
	// fresh is set if the database has no rows of the scope.
	fresh bool
	// full is set if parts of the scope may have been deleted. renewed is set if messages have other ids now, because
	// there are later versions of them.
	full, renewed bool
	// contexts are the changed contexts. runs are the runs of the thread that have grown.
	contexts []structure.ContextID
	runs     []structure.RunID
}

const contextKey = "context/"

// keyOfThread and keyOfContext return the key of a scope.
func keyOfThread(id structure.ThreadID) string { return id.String() }

func keyOfContext(id structure.ContextID) string { return contextKey + id.String() }

// extent is the part of a run that the database has in a scope. own is the number of its messages, from the first on,
// that have their own ids.
type extent struct {
	run       structure.RunID
	last, own uint64
}

func scanExtent(rows *sqladapter.Rows) (extent, error) {
	var run string
	var e extent
	if err := rows.Scan(&run, &e.last, &e.own); err != nil {
		return e, err
	}
	var err error
	if e.run, err = structure.ParseID[structure.RunID](run); err != nil {
		err = fmt.Errorf("table lineage_reach: %w: %w", sqladapter.ErrCorrupt, err)
	}
	return e, err
}

// visibleRun is the part of a run that a scope sees.
type visibleRun struct {
	run  structure.RunInfo
	last uint64
	// has is the part that the database has.
	has extent
	// own is the number of messages, from the first on, that have their own ids. It is known if counted is set.
	own     uint64
	counted bool
}

// visibility is what a scope sees.
type visibility struct {
	w *applier
	*scope
	record  *structure.Thread
	reader  *chat.ThreadReader
	visible map[structure.RunID]*visibleRun
	// written are the contexts to write.
	written []backend.Context
}

// chatID is null for a scope that is not a thread.
func (v *visibility) chatID() any {
	if v.record == nil {
		return nil
	}
	return chat.IDOfThread(v.record)
}

// metadata returns the metadata of the thread. Some databases keep only the JSON value in chats, not its spelling.
func (v *visibility) metadata() any {
	if v.record == nil {
		return nil
	}
	return projected.BytesText(v.record.Metadata)
}

// recall reads which part of a run the database has.
func (v *visibility) recall(ctx context.Context, run structure.RunID, l *visibleRun) error {
	return v.w.DB.Read(ctx, func(c *sqladapter.Conn) error {
		has, err := lists.First(ctx, c, scanExtent, scopeSQL.reachOf, v.key, run.String())
		if has != nil {
			l.has = *has
		}
		return err
	})
}

// put adds rows that the scope should have to the batch. If there is an owner, it should have no other rows: see batch.want.
func (v *visibility) put(t *tables.Table, owner []any, rows ...[]any) {
	v.w.put(v.fresh, t, owner, rows...)
}

// byAge is the order in which the contexts of a scope are written.
func byAge(a, b backend.Context) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.ID.Compare(b.ID))
}
