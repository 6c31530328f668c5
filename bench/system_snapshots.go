package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
)

// snapshotSystem writes the whole state to SQLite at each step, like checkpointers of agent graphs.
func snapshotSystem(durability string) system {
	return system{name: nameSnapshots, durability: durability, maxLength: 1_000, tooLong: rewrites, open: func(ctx context.Context, dir string) (store, error) {
		synchronous := "FULL"
		if durability == normal {
			synchronous = "NORMAL"
		}
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "checkpoints.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		s := &snapshotStore{dir: dir, db: db}
		return s, s.create(ctx, "BLOB", `INSERT INTO checkpoints VALUES (?, ?, ?, ?)`)
	}}
}

// postgresSnapshots is snapshotSystem on Postgres, in a schema that it does not drop.
func postgresSnapshots(ctx context.Context, in *schema) (*snapshotStore, error) {
	db, err := sql.Open("pgx", in.address)
	if err != nil {
		return nil, err
	}
	s := &snapshotStore{db: db}
	return s, s.create(ctx, "BYTEA", `INSERT INTO checkpoints VALUES ($1, $2, $3, $4)`)
}

// create creates the table and prepares the statement.
func (s *snapshotStore) create(ctx context.Context, bytes, insert string) (err error) {
	if _, err := s.db.ExecContext(ctx, `CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_id INTEGER NOT NULL, parent_checkpoint_id INTEGER,
		checkpoint `+bytes+`, PRIMARY KEY (thread_id, checkpoint_id))`); err != nil {
		return err
	}
	s.insert, err = s.db.PrepareContext(ctx, insert)
	return err
}

type snapshotStore struct {
	dir    string
	db     *sql.DB
	insert *sql.Stmt
	next   int
}

func (s *snapshotStore) start(context.Context) (history, error) {
	s.next++
	return &snapshotHistory{store: s, thread: strconv.Itoa(s.next)}, nil
}

func (s *snapshotStore) size() (int64, error) { return diskUse(s.dir) }

func (s *snapshotStore) close() error { return s.db.Close() }

type snapshotHistory struct {
	store  *snapshotStore
	thread string
	step   int
	state  []byte // the messages so far, as a JSON array without "]"
}

// save writes the state as the next step.
func (h *snapshotHistory) save(ctx context.Context) error {
	h.step++
	_, err := h.store.insert.ExecContext(ctx, h.thread, h.step, h.step-1, append(slices.Clip(h.state), ']'))
	return err
}

func (h *snapshotHistory) add(message []byte) {
	before := byte(',')
	if len(h.state) == 0 {
		before = '['
	}
	h.state = append(append(h.state, before), messageJSON("", roleOf(h.step), message)...)
}

func (h *snapshotHistory) extend(ctx context.Context, message []byte) error {
	h.add(message)
	return h.save(ctx)
}

func (h *snapshotHistory) load(ctx context.Context, messages [][]byte) error {
	for _, m := range messages {
		h.add(m)
	}
	return h.save(ctx)
}

func (h *snapshotHistory) fork(ctx context.Context, n int) (history, error) {
	s := h.store
	s.next++
	f := &snapshotHistory{store: s, thread: strconv.Itoa(s.next), state: slices.Clone(h.state)}
	if n > 0 {
		all, err := splitArray(append(slices.Clip(h.state), ']'))
		if err != nil {
			return nil, err
		}
		f.state = nil
		for i, m := range all[:n] {
			before := byte(',')
			if i == 0 {
				before = '['
			}
			f.state = append(append(f.state, before), m...)
		}
	}
	return f, f.save(ctx)
}

func (h *snapshotHistory) read(ctx context.Context, last int) (int, error) {
	var state []byte
	if err := h.store.db.QueryRowContext(ctx, `SELECT checkpoint FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id DESC LIMIT 1`, h.thread).Scan(&state); err != nil {
		return 0, err
	}
	all, err := splitArray(state)
	if last > 0 && len(all) > last {
		all = all[len(all)-last:]
	}
	return len(all), err
}

func splitArray(b []byte) ([]json.RawMessage, error) {
	var all []json.RawMessage
	err := json.Unmarshal(b, &all)
	return all, err
}
