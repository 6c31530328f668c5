package usage

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/lineage-store/lineage/structure"
)

// attribution is where the answers of a run are counted: in the run's thread or, if that is gone, in the oldest thread that
// sees the run.
type attribution struct {
	number                                   int64 // of the thread
	thread                                   string
	agent, project, gitBranch, machine, user string
	ends                                     []end // see attributions.ends, nil before it was called
}

// end is the end of what a context sees of a run: the answers up to seq that no older context of the thread sees.
type end struct {
	seq              int64
	branch, subagent string
}

// at returns the first end at or after an answer in the run. If no context sees the answer any more, it is the last end.
func (p *attribution) at(seq int64) *end {
	for i := range p.ends {
		if seq <= p.ends[i].seq || i == len(p.ends)-1 {
			return &p.ends[i]
		}
	}
	return &end{}
}

// attributions finds and caches the attributions of runs.
type attributions struct {
	tx       *sql.Tx
	prepared map[string]*sql.Stmt      // valid as long as tx
	known    map[[2]int64]*attribution // by run and thread
	threads  map[int64]*attribution
}

func newAttributions(tx *sql.Tx) *attributions {
	return &attributions{tx, make(map[string]*sql.Stmt), make(map[[2]int64]*attribution), make(map[int64]*attribution)}
}

// get reads a row with a statement, which is prepared once.
func (p *attributions) get(ctx context.Context, statement string, arg any, into ...any) error {
	s := p.prepared[statement]
	if s == nil {
		var err error
		if s, err = p.tx.PrepareContext(ctx, statement); err != nil {
			return err
		}
		p.prepared[statement] = s
	}
	return s.QueryRowContext(ctx, arg).Scan(into...)
}

// of returns the attribution of a run. in, if not 0, is the thread to use. With branches, its ends are set.
func (p *attributions) of(ctx context.Context, run int64, branches bool, in int64) (*attribution, error) {
	key := [2]int64{run, in}
	found := p.known[key]
	if found == nil {
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
		found = &copied
		p.known[key] = found
	}
	var err error
	if branches && found.ends == nil {
		found.ends, err = p.ends(ctx, run, found.number)
	}
	return found, err
}

// below selects a run and the runs that continue it, directly or indirectly.
const below = `WITH RECURSIVE below (run) AS (VALUES (?) UNION SELECT r.number FROM below b JOIN runs r ON r.parent = b.run AND r.parent > 0 WHERE r.reached > 0) `

// home returns the number of the thread in which a run is counted, or 0.
func (p *attributions) home(ctx context.Context, run int64) (n int64, err error) {
	err = p.get(ctx, `SELECT a.thread FROM runs r JOIN about a ON a.thread = r.thread WHERE r.number = ?`, run, &n)
	if errors.Is(err, sql.ErrNoRows) {
		err = p.get(ctx, below+`SELECT IFNULL(MIN(p.thread), 0) FROM below b JOIN tips p ON p.run = b.run JOIN about a ON a.thread = p.thread`, run, &n)
	}
	return n, err
}

func (p *attributions) thread(ctx context.Context, number int64) (*attribution, error) {
	if known := p.threads[number]; known != nil {
		return known, nil
	}
	t := &attribution{number: number}
	var id []byte
	err := p.get(ctx, `SELECT a.id, a.agent, a.project, a.git_branch, a.machine, t.user FROM about a JOIN threads t ON t.number = a.thread WHERE a.thread = ?`, number,
		&id, &t.agent, &t.project, &t.gitBranch, &t.machine, &t.user)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return nil, err
	case len(id) == len(structure.ThreadID{}):
		t.thread = structure.ThreadID(id).String()
	default:
		t.thread = hex.EncodeToString(id)
	}
	p.threads[number] = t
	return t, nil
}

// maxAbove is the number of ancestors of a context that are searched for a branch.
const maxAbove = 100

// ends returns which context of a thread is the oldest that sees an answer in a run, and the branch of that context or of its
// nearest ancestor with one.
func (p *attributions) ends(ctx context.Context, run, thread int64) ([]end, error) {
	type seeing struct {
		id, parent []byte
		aside      string
		seq        int64
	}
	var all []seeing
	err := each(ctx, p.tx, func(scan func(...any) error) error {
		var s seeing
		err := scan(&s.id, &s.parent, &s.aside, &s.seq)
		if n := len(all); err == nil && (n == 0 || s.seq > all[n-1].seq) {
			all = append(all, s)
		}
		return err
	}, `WITH RECURSIVE below (run, seq) AS (
			VALUES (?, NULL) UNION SELECT r.number, IFNULL(b.seq, r.after) FROM below b JOIN runs r ON r.parent = b.run AND r.parent > 0 WHERE r.reached > 0)
		SELECT c.id, c.parent, c.aside, IFNULL(b.seq, p.seq) FROM below b JOIN tips p ON p.run = b.run AND p.of IS NULL JOIN contexts c ON c.id = p.id
		WHERE c.thread = ? ORDER BY c.created, c.id`, run, thread)
	if err != nil {
		return nil, err
	}
	ends := make([]end, 0, len(all))
	for i := range all {
		s := &all[i]
		next := end{seq: s.seq}
		if next.branch, err = p.branch(ctx, s.id, s.parent); err != nil {
			return nil, err
		}
		if name, agent := strings.CutPrefix(s.aside, "agent "); agent || s.aside == "sidechain" {
			next.subagent = name
		}
		ends = append(ends, next)
	}
	return ends, nil
}

// branch returns the name of the first branch of a context or of its nearest ancestor with one, empty if there is none.
func (p *attributions) branch(ctx context.Context, id, parent []byte) (name string, err error) {
	for range maxAbove {
		err = p.get(ctx, `SELECT name FROM branches WHERE context = ? ORDER BY made, name LIMIT 1`, id, &name)
		if !errors.Is(err, sql.ErrNoRows) {
			return name, err
		}
		id = parent
		err = p.get(ctx, `SELECT parent FROM contexts WHERE id = ?`, id, &parent)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}
