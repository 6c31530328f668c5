package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/search"
)

const (
	workSearch = "search one long conversation"
	workIndex  = "bring the search index up to date"
)

// search searches for words in a long conversation, ranked and with snippets: with this store's
// index and with the documented full-text table.
func (r *run) search(ctx context.Context) (err error) {
	n := min(r.config.Sizes[len(r.config.Sizes)-1], 20_000)
	dir, err := r.directory("search")
	if err != nil {
		return err
	}
	const id = "searched"
	s, err := lineage.Open(ctx, filepath.Join(dir, "store"), lineage.Options{Durability: lineage.Normal})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	thread, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: id, UserID: "bench"})
	if err != nil {
		return err
	}
	c, err := thread.Active(ctx)
	if err != nil {
		return err
	}
	all := newMessages(&r.config, streamBase).some(n)
	if err := (&lineageHistory{&lineageStore{store: s}, c}).load(ctx, all); err != nil {
		return err
	}
	index, err := search.Open(ctx, s, filepath.Join(dir, "store"), search.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(index.Close(), err) }()
	once := contender{system: nameLineage, durability: normal, round: func(ctx context.Context) (int, error) { return n, index.Update(ctx) }}
	r.config.Progress("indexing " + count(n) + " messages")
	if err := r.compare(ctx, subject{workload: workIndex, size: n, unit: unitPerSec, rate: true, rounds: 1, warm: true}, []contender{once}); err != nil {
		return err
	}

	opened, err := r.open(ctx, sqliteSystem(normal))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.close()) }()
	table := opened.store.(*sqlStore)
	h, err := table.start(ctx)
	if err != nil {
		return err
	}
	if err := h.load(ctx, all); err != nil {
		return err
	}
	query := func(i int) string { return words[(7*i)%len(words)] + " " + words[(11*i+3)%len(words)] }
	return r.compare(ctx, subject{workload: workSearch, size: n, rounds: slow(r.config.Rounds)}, []contender{
		{system: nameLineage, durability: normal, round: searching(query, func(q string) (int, error) {
			found, err := index.SearchMessages(ctx, id, q, chat.SearchOptions{})
			return len(found), err
		})},
		{system: nameSQLite, durability: normal, round: searching(query, func(q string) (int, error) {
			return table.match(ctx, h.(*sqlHistory).chat, q)
		})},
	})
}

// searching runs one search per round, each for another text that must be found.
func searching(query func(int) string, find func(string) (int, error)) func(context.Context) (int, error) {
	next := 0
	return func(context.Context) (int, error) {
		q := query(next)
		next++
		if n, err := find(q); err != nil || n == 0 {
			return 0, errors.Join(err, fmt.Errorf("%d messages found for %q", n, q))
		}
		return 1, nil
	}
}

// match searches like the documented store and returns the number of rows.
func (s *sqlStore) match(ctx context.Context, chatID, query string) (n int, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT m.id, m.data, bm25(messages_fts), snippet(messages_fts, 3, '<mark>', '</mark>', '...', 32)
		FROM messages_fts JOIN messages m ON m.id = messages_fts.messageId
		WHERE messages_fts MATCH ? AND messages_fts.chatId = ? ORDER BY rank LIMIT 20`, query, chatID)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, data, snippet string
		var rank float64
		if err := rows.Scan(&id, &data, &rank, &snippet); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}
