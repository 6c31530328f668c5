package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// When the wait of a commit for a synchronous standby is cancelled, the server reports success and
// sends a notice.

// cancelledWait is the key under which a connection records such a notice.
const cancelledWait = "lineage: cancelled wait"

func noteCancelledWait(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.CustomData()[cancelledWait] = true
	}
}

// errNotReplicated is returned for a commit that the standby may not have. It is uncertain.
var errNotReplicated = errors.New("the wait for the standby was cancelled")

// replicated is errNotReplicated if the wait of the last commit was cancelled.
func replicated(conn *pgxpool.Conn) error {
	data := conn.Conn().PgConn().CustomData()
	if _, cancelled := data[cancelledWait]; !cancelled {
		return nil
	}
	delete(data, cancelledWait)
	return errNotReplicated
}
