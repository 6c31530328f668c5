package searchindex

import (
	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
)

// write executes the changes of the window, after its position was replaced. It does not change the window: the transaction
// may be repeated.
func (w *indexUpdate) write(tx Tx) error {
	store, moved := w.index.store, make(map[int64]bool)
	for _, r := range w.created {
		moved[w.runs[r.key]] = true // its thread may keep its runs
	}
	var olds []int32 // terms of erased texts
	err := tx(func(b *pgx.Batch) {
		w.writeThreads(b, moved)
		w.writeRuns(b)
		w.writeTips(b, moved)
		if len(w.gone) > 0 {
			b.Queue(`SELECT DISTINCT n FROM lineage_search_text t, unnest(t.words) AS n WHERE t.store = $1 AND t.id = ANY($2::bytea[])`, store, w.gone).Query(func(rows pgx.Rows) error {
				var n int32
				_, err := pgx.ForEachRow(rows, []any{&n}, func() error { olds = append(olds, n); return nil })
				return err
			})
			b.Queue(`UPDATE lineage_search_text SET words = NULL WHERE store = $1 AND id = ANY($2::bytea[])`, store, w.gone)
		}
		w.writeTerms(b)
		w.writeWords(b)
		w.writeMarks(b)
		w.writeMentions(b)
	})
	if err != nil {
		return err
	}
	if len(olds) > 0 { // a term may be a secret
		err := tx(func(b *pgx.Batch) {
			b.Queue(`DELETE FROM lineage_search_term t WHERE t.store = $1 AND t.number = ANY($2::integer[])
AND NOT EXISTS (SELECT FROM lineage_search_text x WHERE x.store = $1 AND x.words @> ARRAY[t.number])`, store, olds)
		})
		if err != nil {
			return err
		}
	}
	return w.reach(tx, moved)
}

// movedBy adds the runs that a statement returns.
func movedBy(moved map[int64]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error { moved[n] = true; return nil })
		return err
	}
}

func (w *indexUpdate) writeThreads(b *pgx.Batch, moved map[int64]bool) {
	store, t := w.index.store, &w.threads
	if len(t.gone) > 0 {
		b.Queue(`UPDATE lineage_search_run SET thread = NULL WHERE store = $1 AND thread = ANY($2::bytea[]) RETURNING number`, store, t.gone).Query(movedBy(moved))
		b.Queue(`DELETE FROM lineage_search_tip WHERE store = $1 AND thread = ANY($2::bytea[]) RETURNING run`, store, t.gone).Query(movedBy(moved))
		b.Queue(`DELETE FROM lineage_search_thread WHERE store = $1 AND id = ANY($2::bytea[])`, store, t.gone)
	}
	if len(t.kept) > 0 {
		b.Queue(`SELECT number FROM lineage_search_run WHERE store = $1 AND thread = ANY($2::bytea[])`, store, t.kept).Query(movedBy(moved))
	}
	if len(t.ids) > 0 {
		b.Queue(`INSERT INTO lineage_search_thread (store, id, number, username, keeps)
SELECT $1, t.id, t.number, t.username, t.keeps FROM unnest($2::bytea[], $3::bigint[], $4::bytea[], $5::boolean[]) AS t (id, number, username, keeps)
ON CONFLICT (store, id) DO UPDATE SET username = excluded.username, keeps = excluded.keeps`, store, t.ids, t.number, t.user, t.keeps)
	}
}

func (w *indexUpdate) writeRuns(b *pgx.Batch) {
	store := w.index.store
	var numbers, parents, afters, lasts []int64
	var ids, threads [][]byte
	isNew := make(map[string]bool, len(w.created))
	for _, r := range w.created {
		isNew[r.key] = true
		numbers, ids = append(numbers, w.runs[r.key]), append(ids, []byte(r.key))
		parents, afters = append(parents, w.runs[r.parent]), append(afters, int64(r.after))
		lasts = append(lasts, int64(w.lasts[r.key]))
		var thread []byte
		if h := w.homes[r.home.Thread]; !h.Thread.IsZero() && h == r.home {
			thread = h.Thread[:]
		}
		threads = append(threads, thread)
	}
	if len(numbers) > 0 {
		known := ``
		if w.repeats {
			known = `
ON CONFLICT (store, number) DO UPDATE SET parent = excluded.parent, after = excluded.after, thread = excluded.thread, last = excluded.last`
		}
		b.Queue(`INSERT INTO lineage_search_run (store, number, id, parent, after, thread, last)
SELECT $1, r.number, r.id, nullif(r.parent, 0), r.after, r.thread, r.last FROM unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[])
AS r (number, id, parent, after, thread, last)`+known, store, numbers, ids, parents, afters, threads, lasts)
	}
	numbers, lasts = nil, nil
	for key, last := range w.lasts {
		if !isNew[key] {
			numbers, lasts = append(numbers, w.runs[key]), append(lasts, int64(last))
		}
	}
	if len(numbers) > 0 {
		b.Queue(`UPDATE lineage_search_run r SET last = n.last FROM unnest($2::bigint[], $3::bigint[]) AS n (number, last) WHERE r.store = $1 AND r.number = n.number`, store, numbers, lasts)
	}
}

func (w *indexUpdate) writeTips(b *pgx.Batch, moved map[int64]bool) {
	store, t := w.index.store, &w.tips
	if len(t.owners) > 0 {
		var owners [][]byte
		for owner := range t.owners {
			owners = append(owners, []byte(owner))
		}
		b.Queue(`DELETE FROM lineage_search_tip WHERE store = $1 AND of = ANY($2::bytea[]) RETURNING run`, store, owners).Query(movedBy(moved))
	}
	if len(t.keys) > 0 {
		var ids [][]byte
		for key := range t.keys {
			ids = append(ids, []byte(key))
		}
		b.Queue(`DELETE FROM lineage_search_tip WHERE store = $1 AND id = ANY($2::bytea[]) RETURNING run`, store, ids).Query(movedBy(moved))
	}
	var ids, threads, ofs [][]byte
	var runs, seqs []int64
	for i := range t.are {
		tip := &t.are[i]
		run := w.runs[tip.run]
		if run == 0 {
			continue
		}
		moved[run] = true
		var thread []byte
		if !tip.thread.IsZero() {
			thread = tip.thread[:]
		}
		ids, threads, ofs = append(ids, []byte(tip.key)), append(threads, thread), append(ofs, tip.owner)
		runs, seqs = append(runs, run), append(seqs, int64(tip.seq))
	}
	if len(ids) > 0 {
		b.Queue(`INSERT INTO lineage_search_tip (store, id, thread, run, seq, of)
SELECT $1, t.id, t.thread, t.run, t.seq, t.of FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[]) AS t (id, thread, run, seq, of)
ON CONFLICT (store, id) DO UPDATE SET thread = excluded.thread, run = excluded.run, seq = excluded.seq, of = excluded.of`, store, ids, threads, runs, seqs, ofs)
	}
}

func (w *indexUpdate) writeTerms(b *pgx.Batch) {
	if len(w.terms) > 0 {
		b.Queue(`INSERT INTO lineage_search_term (store, term, number) SELECT $1, t.term, t.number FROM unnest($2::bytea[], $3::integer[]) AS t (term, number)`, w.index.store, w.terms, w.numbers)
	}
}

func (w *indexUpdate) writeWords(b *pgx.Batch) {
	if len(w.ids) > 0 {
		b.Queue(`INSERT INTO lineage_search_text (store, id, words) SELECT $1, t.id, t.words::integer[] FROM unnest($2::bytea[], $3::text[]) AS t (id, words)
ON CONFLICT (store, id) DO UPDATE SET words = excluded.words`, w.index.store, w.ids, w.words)
	}
}

// writeMarks writes which content is erased.
func (w *indexUpdate) writeMarks(b *pgx.Batch) {
	store := w.index.store
	var erased, restored [][]byte
	for _, id := range w.erased {
		mark := searched.TextOf(id, erasedMark)
		erased = append(erased, mark[:])
	}
	for id := range w.restored {
		mark := searched.TextOf(id, erasedMark)
		restored = append(restored, mark[:])
	}
	if len(restored) > 0 {
		b.Queue(`DELETE FROM lineage_search_text WHERE store = $1 AND id = ANY($2::bytea[])`, store, restored)
	}
	if len(erased) > 0 {
		b.Queue(`INSERT INTO lineage_search_text (store, id) SELECT $1, t.id FROM unnest($2::bytea[]) AS t (id) ON CONFLICT DO NOTHING`, store, erased)
	}
}

func (w *indexUpdate) writeMentions(b *pgx.Batch) {
	var texts, roles [][]byte
	var runs, seqs []int64
	var heads, kinds []int32
	for i := range w.mentions {
		m := &w.mentions[i]
		run := w.runs[m.run]
		if run == 0 {
			continue
		}
		texts, roles = append(texts, m.text[:]), append(roles, []byte(m.role))
		runs, seqs = append(runs, run), append(seqs, int64(m.seq))
		heads, kinds = append(heads, int32(m.head)), append(kinds, int32(m.kind))
	}
	if len(texts) > 0 { // texts without words are not in the index
		b.Queue(`INSERT INTO lineage_search_usage (store, text, run, seq, head, kind, role)
SELECT $1, u.text, u.run, u.seq, u.head, u.kind, u.role FROM unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::bytea[])
AS u (text, run, seq, head, kind, role) JOIN lineage_search_text t ON t.store = $1 AND t.id = u.text ON CONFLICT DO NOTHING`, w.index.store, texts, runs, seqs, heads, kinds, roles)
	}
}

// reach updates the last visible step of moved runs, and of the runs before them.
func (w *indexUpdate) reach(tx Tx, moved map[int64]bool) error {
	for len(moved) > 0 {
		var numbers []int64
		for n := range moved {
			numbers = append(numbers, n)
		}
		next := make(map[int64]bool)
		err := tx(func(b *pgx.Batch) {
			b.Queue(`UPDATE lineage_search_run r SET reached = c.now FROM (
  SELECT r.number, r.reached AS was, greatest(
    (SELECT 9223372036854775807 FROM lineage_search_thread h WHERE h.store = $1 AND h.id = r.thread AND h.keeps),
    (SELECT max(p.seq) FROM lineage_search_tip p WHERE p.store = $1 AND p.run = r.number),
    (SELECT max(c.after) FROM lineage_search_run c WHERE c.store = $1 AND c.parent = r.number AND c.reached > 0), 0) AS now
  FROM lineage_search_run r WHERE r.store = $1 AND r.number = ANY($2::bigint[])) c
WHERE r.store = $1 AND r.number = c.number AND c.was <> c.now RETURNING coalesce(r.parent, 0), (c.was > 0) <> (c.now > 0)`, w.index.store, numbers).Query(func(rows pgx.Rows) error {
				var parent int64
				var appeared bool
				_, err := pgx.ForEachRow(rows, []any{&parent, &appeared}, func() error {
					if parent > 0 && appeared {
						next[parent] = true
					}
					return nil
				})
				return err
			})
		})
		if err != nil {
			return err
		}
		moved = next
	}
	return nil
}
