package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The forms that a store on a server was chosen from, as prototypes. They differ in what a commit reads and writes; the way
// of a batch is that of the store: commits that wait share a batch, a batch is one round trip while no other process writes
// and two otherwise, and one of four commits or more that locked the store is synced after it. A commit has one message of one
// context. The prototypes hash and chain it, check the tip that it continues from, and find out whether its content is known.
// They have no other records, deletions, epochs, requests, compression, events, pruning or retries, so they take less
// processor time than a store of their form would.
const (
	nameTyped   = "typed-rows"
	nameEntries = "index-entries"
	nameTail    = "log-and-tail"
)

// form is what a prototype reads and writes.
type form struct {
	tables []string
	// guard is a further condition of a batch that reads nothing before it. Its argument $3 are keys of content.
	guard string
	// need queues what judging a batch reads, under the lock.
	need func(b *pgx.Batch, p *formProcess, batch []*formCommit)
	// write queues what a batch writes after the commit with a number.
	write func(b *pgx.Batch, p *formProcess, batch []*formCommit, last int64)
}

var formTables = []string{
	`CREATE TABLE form_store (store bytea PRIMARY KEY, last bigint NOT NULL, folded bigint NOT NULL) WITH (fillfactor = 50)`,
	`CREATE TABLE form_durable (store bytea, slot integer, n bigint NOT NULL, PRIMARY KEY (store, slot)) WITH (fillfactor = 50)`,
	`CREATE TABLE form_log (store bytea, n bigint, id bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (store, n))`,
	`ALTER TABLE form_log ALTER data SET STORAGE EXTERNAL`,
	`INSERT INTO form_store VALUES ('` + formStore + `', 0, 0)`,
}

// formStore is the key of the store.
const formStore = "0123456789abcdef"

// formCommit is a commit with one message.
type formCommit struct {
	context [16]byte
	tip     formTip // before it
	after   formTip
	hash    [32]byte
	body    []byte
	done    chan error
}

// formTip is the last message of a context.
type formTip struct {
	place, at int64
	digest    [32]byte
}

// formProcess writes batches of commits in one form.
type formProcess struct {
	form
	pool      *pgxpool.Pool
	queue     chan *formCommit
	unsynced  chan []*formCommit
	last      int64 // the last commit that is known
	folded    int64 // the last one that the table of entries has, in the form that folds
	contended int   // for how many batches the store is locked first
	tips      map[[16]byte]formTip
	tail      map[string]tailEntry
}

type tailEntry struct {
	n     int64
	value []byte
}

// openForm starts a process of a form. Each writer has a context.
func (w processWork) openForm(ctx context.Context, f form) (extends []func(context.Context, []byte) error, end func() error, err error) {
	pool, err := serverPool(ctx, w.place, w.writers)
	if err != nil {
		return nil, nil, err
	}
	p := &formProcess{form: f, pool: pool, queue: make(chan *formCommit, w.writers), unsynced: make(chan []*formCommit, w.writers),
		contended: 1, tips: make(map[[16]byte]formTip), tail: make(map[string]tailEntry)}
	go p.lead(ctx)
	for range 3 {
		go p.sync(ctx)
	}
	for i := range w.writers {
		id, tip := sha256.Sum256(fmt.Append(nil, w.number, i)), formTip{}
		extends = append(extends, func(ctx context.Context, message []byte) error {
			c := &formCommit{context: [16]byte(id[:]), tip: tip, hash: sha256.Sum256(message), body: message, done: make(chan error, 1)}
			c.after = formTip{tip.place + 1, max(time.Now().UnixMicro(), tip.at+1), sha256.Sum256(append(tip.digest[:], c.hash[:]...))}
			p.queue <- c
			err := <-c.done
			tip = c.after
			return err
		})
	}
	return extends, func() error { close(p.queue); pool.Close(); return nil }, nil
}

// lead writes the commits that wait, batch by batch.
func (p *formProcess) lead(ctx context.Context) {
	defer close(p.unsynced)
	for first := range p.queue {
		batch := []*formCommit{first}
		for len(p.queue) > 0 {
			batch = append(batch, <-p.queue)
		}
		synced, err := p.commit(ctx, batch)
		if err == nil && !synced {
			p.unsynced <- batch
			continue
		}
		answer(batch, err)
	}
}

func answer(batch []*formCommit, err error) {
	for _, c := range batch {
		c.done <- err
	}
}

// sync answers batches after a synced write that began after they were written.
func (p *formProcess) sync(ctx context.Context) {
	for batch := range p.unsynced {
		for len(p.unsynced) > 0 {
			select {
			case more := <-p.unsynced:
				batch = append(batch, more...)
			default:
			}
		}
		var b pgx.Batch
		b.Queue(`SELECT set_config('synchronous_commit', 'on', true)`)
		b.Queue(`INSERT INTO form_durable VALUES ($1, $2, 0) ON CONFLICT (store, slot) DO UPDATE SET n = form_durable.n + 1`, []byte(formStore), rand.IntN(64))
		answer(batch, p.pool.SendBatch(ctx, &b).Close())
	}
}

// staysLocked is the number of batches for which a process takes the lock first, once another process has written.
const staysLocked = 16

func (p *formProcess) commit(ctx context.Context, batch []*formCommit) (synced bool, err error) {
	if p.contended == 0 {
		err := p.commitAtOnce(ctx, batch)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "22012" {
			return true, err
		}
		p.contended = staysLocked
	}
	return p.commitLocked(ctx, batch)
}

const formLimits = `SELECT set_config('lock_timeout', '5000', true), set_config('statement_timeout', '10000', true), set_config('idle_in_transaction_session_timeout', '5000', true), set_config('synchronous_commit', $1, true)`

// commitAtOnce writes a batch that was judged in memory, in one round trip.
func (p *formProcess) commitAtOnce(ctx context.Context, batch []*formCommit) error {
	if err := p.judge(batch); err != nil {
		return err
	}
	var b pgx.Batch // a transaction
	b.Queue(formLimits, "on")
	guard, args := `SELECT 1 / count(*) FROM (SELECT last FROM form_store WHERE store = $1 FOR UPDATE) s WHERE s.last = $2`, []any{[]byte(formStore), p.last}
	if p.guard != "" {
		guard, args = guard+p.guard, append(args, blockKeys(batch))
	}
	b.Queue(guard, args...)
	p.write(&b, p, batch, p.last)
	if err := p.pool.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	p.advance(batch, p.last)
	return nil
}

// commitLocked locks the store and reads what judging needs, and writes in a second round trip.
func (p *formProcess) commitLocked(ctx context.Context, batch []*formCommit) (synced bool, err error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	var b pgx.Batch
	var last, folded int64
	b.Queue(`BEGIN`)
	b.Queue(formLimits, "on")
	b.Queue(`SELECT last, folded FROM form_store WHERE store = $1 FOR UPDATE`, []byte(formStore)).QueryRow(func(row pgx.Row) error { return row.Scan(&last, &folded) })
	p.need(&b, p, batch)
	if err = conn.SendBatch(ctx, &b).Close(); err != nil {
		return false, err
	}
	p.contended--
	if last != p.last {
		p.contended = staysLocked
	}
	if folded > p.folded {
		p.drop(folded)
	}
	if err = p.judge(batch); err != nil {
		return false, err
	}
	synced = len(batch) < 4
	b = pgx.Batch{}
	b.Queue(`SELECT set_config('synchronous_commit', $1, true)`, map[bool]string{true: "on", false: "off"}[synced])
	p.write(&b, p, batch, last)
	b.Queue(`COMMIT`)
	if err = conn.SendBatch(ctx, &b).Close(); err != nil {
		return false, err
	}
	p.advance(batch, last)
	return synced, nil
}

// judge checks that commits continue from the tips of their contexts.
func (p *formProcess) judge(batch []*formCommit) error {
	for _, c := range batch {
		if p.tips[c.context] != c.tip {
			return fmt.Errorf("context %x has another tip", c.context)
		}
	}
	return nil
}

// advance notes a batch that was written after a commit.
func (p *formProcess) advance(batch []*formCommit, last int64) {
	p.last = last + int64(len(batch))
	for _, c := range batch {
		p.tips[c.context] = c.after
	}
}

// drop forgets what a fold wrote.
func (p *formProcess) drop(folded int64) {
	p.folded = folded
	for k, e := range p.tail {
		if e.n <= folded {
			delete(p.tail, k)
		}
	}
}

func blockKeys(batch []*formCommit) (all [][]byte) {
	for _, c := range batch {
		all = append(all, append([]byte{'B'}, c.hash[:]...))
	}
	return all
}

// typedForm has a table for each kind of thing: form A.
var typedForm = form{
	tables: []string{
		`CREATE TABLE typed_commit (store bytea, n bigint, id bigint NOT NULL, context bytea NOT NULL, at bigint NOT NULL, PRIMARY KEY (store, n))`,
		`CREATE TABLE typed_block (store bytea, hash bytea, body bytea NOT NULL, PRIMARY KEY (store, hash))`,
		`CREATE TABLE typed_span (store bytea, run bytea, place bigint, n bigint NOT NULL, hash bytea NOT NULL, digest bytea NOT NULL, PRIMARY KEY (store, run, place))`,
		`CREATE TABLE typed_context (store bytea, id bytea, place bigint NOT NULL, at bigint NOT NULL, digest bytea NOT NULL, PRIMARY KEY (store, id)) WITH (fillfactor = 70)`,
		`CREATE TABLE typed_thread (store bytea, id bytea, at bigint NOT NULL, PRIMARY KEY (store, id)) WITH (fillfactor = 70)`,
		`CREATE INDEX typed_thread_at ON typed_thread (store, at, id)`,
	},
	need: func(b *pgx.Batch, p *formProcess, batch []*formCommit) {
		var ids, hashes [][]byte
		for _, c := range batch {
			ids, hashes = append(ids, c.context[:]), append(hashes, c.hash[:])
		}
		b.Queue(`SELECT id, place, at, digest FROM typed_context WHERE store = $1 AND id = ANY($2)`, []byte(formStore), ids).Query(func(rows pgx.Rows) error {
			var id, digest []byte
			var t formTip
			_, err := pgx.ForEachRow(rows, []any{&id, &t.place, &t.at, &digest}, func() error {
				t.digest = [32]byte(digest)
				p.tips[[16]byte(id)] = t
				return nil
			})
			return err
		})
		b.Queue(`SELECT hash FROM typed_block WHERE store = $1 AND hash = ANY($2)`, []byte(formStore), hashes)
	},
	write: func(b *pgx.Batch, _ *formProcess, batch []*formCommit, last int64) {
		var ids, places, ats []int64
		var contexts, hashes, digests, bodies [][]byte
		for _, c := range batch {
			ids, places, ats = append(ids, rand.Int64()), append(places, c.after.place), append(ats, c.after.at)
			contexts, hashes, digests, bodies = append(contexts, c.context[:]), append(hashes, c.hash[:]), append(digests, c.after.digest[:]), append(bodies, c.body)
		}
		b.Queue(`WITH u AS (SELECT * FROM unnest($3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[]) WITH ORDINALITY AS u (id, context, place, at, hash, digest, body, i)),
head AS (UPDATE form_store SET last = $2::bigint + cardinality($3::bigint[]) WHERE store = $1),
commits AS (INSERT INTO typed_commit SELECT $1, $2::bigint + i, id, context, at FROM u),
blocks AS (INSERT INTO typed_block SELECT $1, hash, body FROM u ON CONFLICT DO NOTHING),
spans AS (INSERT INTO typed_span SELECT $1, context, place, $2::bigint + i, hash, digest FROM u),
threads AS (INSERT INTO typed_thread SELECT $1, context, at FROM u ON CONFLICT (store, id) DO UPDATE SET at = excluded.at)
INSERT INTO typed_context SELECT $1, context, place, at, digest FROM u ON CONFLICT (store, id) DO UPDATE SET place = excluded.place, at = excluded.at, digest = excluded.digest`,
			[]byte(formStore), last, ids, contexts, places, ats, hashes, digests, bodies)
	},
}

// entriesForm has a log, and versions of the entries of an index in one table: form B. The store itself is of this form, but
// folds the entries that change often.
var entriesForm = form{
	tables: []string{`CREATE TABLE entry (store bytea, key bytea, age bigint, value bytea, PRIMARY KEY (store, key, age))`},
	guard:  ` AND NOT EXISTS (SELECT FROM unnest($3::bytea[]) AS k (key), LATERAL (SELECT FROM entry WHERE store = $1 AND key = k.key LIMIT 1) e)`,
	need: func(b *pgx.Batch, p *formProcess, batch []*formCommit) {
		ks := blockKeys(batch)
		for _, c := range batch {
			ks = append(ks, append([]byte{'T'}, c.context[:]...))
		}
		b.Queue(`SELECT k.key, e.value FROM unnest($2::bytea[]) AS k (key), LATERAL (SELECT value FROM entry WHERE store = $1 AND key = k.key ORDER BY age LIMIT 1) e`, []byte(formStore), ks).Query(func(rows pgx.Rows) error {
			var key, value []byte
			_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
				if key[0] == 'T' {
					p.tips[[16]byte(key[1:])] = decodeTip(value)
				}
				return nil
			})
			return err
		})
	},
	write: func(b *pgx.Batch, _ *formProcess, batch []*formCommit, last int64) {
		writeLog(b, batch, last)
		var ks, values [][]byte
		for _, e := range entriesOf(batch, last) {
			ks, values = append(ks, e.key), append(values, e.value)
		}
		b.Queue(`INSERT INTO entry (store, key, age, value) VALUES ($1, unnest($2::bytea[]), $3, unnest($4::bytea[]))`, []byte(formStore), ks, -last-int64(len(batch)), values)
	},
}

// foldEvery is how many commits a tail has.
const foldEvery = 256

// tailForm has a log, of which each process follows the end in memory, and a table with the entries of the rows before it: form C.
var tailForm = form{
	tables: []string{`CREATE TABLE folded (store bytea, key bytea, value bytea NOT NULL, PRIMARY KEY (store, key))`},
	guard:  ` AND NOT EXISTS (SELECT FROM unnest($3::bytea[]) AS k (key), LATERAL (SELECT FROM folded WHERE store = $1 AND key = k.key LIMIT 1) e)`,
	need: func(b *pgx.Batch, p *formProcess, batch []*formCommit) {
		b.Queue(`SELECT n, data FROM form_log WHERE store = $1 AND n > $2 ORDER BY n`, []byte(formStore), p.last).Query(func(rows pgx.Rows) error {
			var n int64
			var data []byte
			_, err := pgx.ForEachRow(rows, []any{&n, &data}, func() error {
				others, err := decodeBatch(data)
				if err == nil {
					p.follow(others, n-1)
				}
				return err
			})
			return err
		})
		b.Queue(`SELECT key FROM folded WHERE store = $1 AND key = ANY($2)`, []byte(formStore), blockKeys(batch))
	},
	write: func(b *pgx.Batch, p *formProcess, batch []*formCommit, last int64) {
		writeLog(b, batch, last)
		p.keep(batch, last)
		now := last + int64(len(batch))
		if now-p.folded < foldEvery {
			return
		}
		var ks, values, gone [][]byte
		for k, e := range p.tail {
			if e.value == nil {
				gone = append(gone, []byte(k))
				continue
			}
			ks, values = append(ks, []byte(k)), append(values, e.value)
		}
		b.Queue(`INSERT INTO folded (store, key, value) VALUES ($1, unnest($2::bytea[]), unnest($3::bytea[])) ON CONFLICT (store, key) DO UPDATE SET value = excluded.value`, []byte(formStore), ks, values)
		b.Queue(`DELETE FROM folded WHERE store = $1 AND key = ANY($2)`, []byte(formStore), gone)
		b.Queue(`UPDATE form_store SET folded = $2 WHERE store = $1`, []byte(formStore), now)
		p.drop(now) // a batch is not written again
	},
}

// follow adds a batch that another process wrote.
func (p *formProcess) follow(batch []*formCommit, last int64) {
	p.keep(batch, last)
	p.advance(batch, last)
}

func (p *formProcess) keep(batch []*formCommit, last int64) {
	for _, e := range entriesOf(batch, last) {
		p.tail[string(e.key)] = tailEntry{last + int64(len(batch)), e.value}
	}
}

// writeLog queues a row of the log, with the number of its first commit.
func writeLog(b *pgx.Batch, batch []*formCommit, last int64) {
	b.Queue(`INSERT INTO form_log (store, n, id, data) VALUES ($1, $2, $3, $4)`, []byte(formStore), last+1, rand.Int64(), encodeBatch(batch))
	b.Queue(`UPDATE form_store SET last = $2 WHERE store = $1`, []byte(formStore), last+int64(len(batch)))
}

func encodeBatch(batch []*formCommit) (data []byte) {
	for _, c := range batch {
		data = append(data, c.context[:]...)
		data = binary.BigEndian.AppendUint64(data, uint64(c.tip.at))
		data = append(data, encodeTip(c.after)...)
		data = append(data, c.hash[:]...)
		data = binary.BigEndian.AppendUint32(data, uint32(len(c.body)))
		data = append(data, c.body...)
	}
	return data
}

func decodeBatch(data []byte) (batch []*formCommit, err error) {
	const fixed = 16 + 8 + tipBytes + 32 + 4
	for len(data) > 0 {
		if len(data) < fixed {
			return nil, errors.New("a row of the log is cut off")
		}
		c := &formCommit{context: [16]byte(data), after: decodeTip(data[24:]), hash: [32]byte(data[24+tipBytes:])}
		c.tip.at = int64(binary.BigEndian.Uint64(data[16:]))
		end := fixed + int(binary.BigEndian.Uint32(data[fixed-4:]))
		if len(data) < end {
			return nil, errors.New("a row of the log is cut off")
		}
		c.body, data = data[fixed:end], data[end:]
		batch = append(batch, c)
	}
	return batch, nil
}

const tipBytes = 8 + 8 + 32

func encodeTip(t formTip) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(t.place))
	return append(binary.BigEndian.AppendUint64(b, uint64(t.at)), t.digest[:]...)
}

func decodeTip(b []byte) formTip {
	return formTip{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), [32]byte(b[16:])}
}

type formEntry struct{ key, value []byte }

// entriesOf returns the entries of a batch: content, spans, tips, the time of the last message of each thread, and the order of
// threads. An entry without a value is removed.
func entriesOf(batch []*formCommit, last int64) (all []formEntry) {
	number := func(key []byte, n int64) []byte { return binary.BigEndian.AppendUint64(key, uint64(n)) }
	for i, c := range batch {
		of := func(table byte) []byte { return append([]byte{table}, c.context[:]...) }
		span := number(nil, last+1+int64(i))
		span = append(append(span, c.hash[:]...), c.after.digest[:]...)
		all = append(all,
			formEntry{append([]byte{'B'}, c.hash[:]...), number(number(nil, last+1), int64(i))},
			formEntry{number(of('S'), c.after.place), span},
			formEntry{of('T'), encodeTip(c.after)},
			formEntry{of('L'), number(nil, c.after.at)},
			formEntry{append(number([]byte{'O'}, c.after.at), c.context[:]...), []byte{}})
		if c.tip.at > 0 {
			all = append(all, formEntry{append(number([]byte{'O'}, c.tip.at), c.context[:]...), nil})
		}
	}
	return all
}
