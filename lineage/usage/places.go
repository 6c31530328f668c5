package usage

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/lineage-store/lineage/structure"
)

// place is where the answers of a run are counted: in the run's thread or, if that is gone, in the oldest thread that
// sees the run.
type place struct {
	number                          int64 // of the thread
	thread                          string
	agent, project, gitBranch, user string
	branch, subagent                string
	ofBranch                        bool // branch and subagent are set
}

// places finds and caches the places of runs.
type places struct {
	tx      *sql.Tx
	known   map[[2]int64]*place // by run and thread
	threads map[int64]*place
}

func newPlaces(tx *sql.Tx) *places {
	return &places{tx, make(map[[2]int64]*place), make(map[int64]*place)}
}

// of returns the place of a run. in, if not 0, is the thread to use.
func (p *places) of(ctx context.Context, run int64, branch bool, in int64) (*place, error) {
	key := [2]int64{run, in}
	is := p.known[key]
	if is == nil {
		number := in
		if number == 0 {
			var err error
			if number, err = p.home(ctx, run); err != nil {
				return nil, err
			}
		}
		t, err := p.thread(ctx, number)
		if err != nil {
			return nil, err
		}
		copied := *t
		is = &copied
		p.known[key] = is
	}
	if branch && !is.ofBranch {
		is.ofBranch = true
		return is, p.setBranch(ctx, run, is)
	}
	return is, nil
}

// below selects a run and the runs that continue it, directly or indirectly.
const below = `WITH RECURSIVE below (run) AS (VALUES (?) UNION SELECT r.number FROM below b JOIN runs r ON r.parent = b.run WHERE r.reached > 0) `

// home returns the number of the thread in which a run is counted, or 0.
func (p *places) home(ctx context.Context, run int64) (n int64, err error) {
	err = p.tx.QueryRowContext(ctx, `SELECT a.thread FROM runs r JOIN about a ON a.thread = r.thread WHERE r.number = ?`, run).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = p.tx.QueryRowContext(ctx, below+`SELECT IFNULL(MIN(p.thread), 0) FROM below b JOIN tips p ON p.run = b.run JOIN about a ON a.thread = p.thread`, run).Scan(&n)
	}
	return n, err
}

func (p *places) thread(ctx context.Context, number int64) (*place, error) {
	if is := p.threads[number]; is != nil {
		return is, nil
	}
	is := &place{number: number}
	var id []byte
	err := p.tx.QueryRowContext(ctx, `SELECT a.id, a.agent, a.project, a.git_branch, t.user FROM about a JOIN threads t ON t.number = a.thread WHERE a.thread = ?`, number).
		Scan(&id, &is.agent, &is.project, &is.gitBranch, &is.user)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return nil, err
	case len(id) == len(structure.ThreadID{}):
		is.thread = structure.ThreadID(id).String()
	default:
		is.thread = hex.EncodeToString(id)
	}
	p.threads[number] = is
	return is, nil
}

// maxAbove is the number of ancestors of a context that are searched for a branch.
const maxAbove = 100

// setBranch finds the oldest context that sees a run. The branch is that of the context or of its nearest ancestor
// with one.
func (p *places) setBranch(ctx context.Context, run int64, is *place) error {
	var id, parent []byte
	err := p.tx.QueryRowContext(ctx, below+`SELECT c.id, c.parent, c.aside FROM below b JOIN tips p ON p.run = b.run AND p.of IS NULL JOIN contexts c ON c.id = p.id
		WHERE c.thread = ? ORDER BY c.created, c.id LIMIT 1`, run, is.number).Scan(&id, &parent, &is.subagent)
	for range maxAbove {
		if err != nil {
			break
		}
		err = p.tx.QueryRowContext(ctx, `SELECT name FROM branches WHERE context = ? ORDER BY made, name LIMIT 1`, id).Scan(&is.branch)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
		id = parent
		err = p.tx.QueryRowContext(ctx, `SELECT parent FROM contexts WHERE id = ?`, id).Scan(&parent)
	}
	if is.subagent != "sidechain" {
		var agent bool
		if is.subagent, agent = strings.CutPrefix(is.subagent, "agent "); !agent {
			is.subagent = ""
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err
}
