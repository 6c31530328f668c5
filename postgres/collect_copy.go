package postgres

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/lineage/backend"
)

// logCopy is a copy of the log in a temporary directory, in which a collection finds what is in use.
type logCopy struct {
	log    *log
	engine *embedded.Engine
	at     head
	dir    *scratch.Dir
}

// copyLog copies the log.
func copyLog(ctx context.Context, l *log) (*logCopy, error) {
	pending, err := l.collected(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := scratch.New()
	if err != nil {
		return nil, err
	}
	engine, err := embedded.Open(ctx, filepath.Join(dir.Path, "log"), embedded.Options{Durability: backend.Normal, NoPacking: true})
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	c := &logCopy{l, engine, head{epoch: pending.epoch}, dir}
	if err := c.follow(ctx, pending.live); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *logCopy) close() {
	_ = c.engine.Close() // it is removed
	_ = c.dir.Remove()   // another process will
}

// follow adds the new rows of the log, without what is not in a set.
func (c *logCopy) follow(ctx context.Context, set *live.Set) error {
	for more := true; more; {
		var rows []logRow
		var err error
		if rows, more, err = c.log.longTail(ctx, c.at); err != nil {
			return err
		}
		for i := range rows {
			commits, _, err := rows[i].remaining(set, nil)
			if err != nil {
				return err
			}
			for _, s := range commits {
				if err := c.engine.Follow(ctx, s); err != nil {
					return err
				}
			}
			c.at = c.at.after(&rows[i])
		}
	}
	return nil
}
