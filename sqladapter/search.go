package sqladapter

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// searchBatch is how many messages are looked at at once.
const searchBatch = 200

// SearchMessages implements chat.Store. The database's index says which messages
// may match; whether they do, how well and where is found out here, the same for
// all databases.
func (s *chatStore) SearchMessages(ctx context.Context, chatID, text string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	if o.Limit < 0 {
		return nil, fmt.Errorf("limit %d: %w", o.Limit, chat.ErrInvalid)
	}
	limit := cmp.Or(o.Limit, chat.DefaultSearchLimit)
	q, ok := parseQuery(text)
	if !ok {
		return nil, nil
	}
	ids, messages, err := s.candidates(ctx, chatID, q.condition())
	if err != nil {
		return nil, err
	}
	var matches []match
	for batch := range batches(ids, searchBatch) {
		found, err := s.readMessages(ctx, batch)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if m.ChatID != chatID || len(o.Roles) > 0 && !slices.Contains(o.Roles, m.Name) {
				continue
			}
			d := newDocument(searchText(m.Data))
			var hits [][]hit
			if !d.match(&q, &hits) {
				continue
			}
			counts := make([]int, len(hits))
			for i := range hits {
				counts[i] = len(hits[i])
			}
			matches = append(matches, match{id: m.ID, createdAt: m.CreatedAt, length: len(d.words), counts: counts})
		}
	}
	rankMatches(matches, messages)
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.createdAt, a.createdAt), cmp.Compare(a.id, b.id))
	})
	return s.results(ctx, matches[:min(limit, len(matches))], &q)
}

func (s *chatStore) readMessages(ctx context.Context, ids []string) (found map[string]chat.Message, err error) {
	err = s.db.Read(ctx, func(c *Conn) error {
		found, err = c.messages(ctx, ids)
		return err
	})
	return found, err
}

// candidates returns the ids of the messages of a chat that may match, and how many
// messages the chat has.
func (s *chatStore) candidates(ctx context.Context, chatID string, condition Condition) (ids []string, messages int, err error) {
	unknown, err := s.learn(ctx, chatID)
	if err != nil {
		return nil, 0, err
	}
	search := s.db.dialect.Search()
	args, n := search.Condition(chatID, condition)
	err = s.db.Read(ctx, func(c *Conn) error {
		counts, err := c.counts(ctx, chatSQL.messageCounts, []any{chatID})
		if err != nil {
			return err
		}
		messages = counts[chatID]
		rows, err := c.QueryN(ctx, search.Candidates, n, args...)
		ids, err = all(rows, err, scanString)
		return err
	})
	return append(ids, unknown...), messages, err
}

// learn makes known what other programs wrote to a chat. It returns what stays
// unknown, as the database cannot be written: that is looked at itself.
func (s *chatStore) learn(ctx context.Context, chatID string) ([]string, error) {
	var unknown []string
	err := s.db.Read(ctx, func(c *Conn) (err error) {
		unknown = nil
		known, messages := 0, 0
		if _, err := c.Get(ctx, knownSQL.counts, []any{chatID, chatID}, &known, &messages); err != nil || known == messages {
			return err
		}
		unknown, err = c.unknown(ctx, chatID)
		return err
	})
	if err != nil || len(unknown) == 0 {
		return nil, err
	}
	if s.db.Write(ctx, func(c *Conn) error { return c.learn(ctx, chatID) }) == nil {
		return nil, nil
	}
	return unknown, ctx.Err()
}

// unknown returns the ids of the messages of a chat that are not known.
func (c *Conn) unknown(ctx context.Context, chatID string) ([]string, error) {
	rows, err := c.Query(ctx, knownSQL.unknown, chatID)
	return all(rows, err, scanString)
}

// learn makes known what others wrote to a chat.
func (c *Conn) learn(ctx context.Context, chatID string) error {
	if err := c.hold(ctx, chatID); err != nil {
		return err
	}
	ids, err := c.unknown(ctx, chatID)
	if err != nil {
		return err
	}
	depths, err := c.allDepths(ctx, chatID)
	if err != nil {
		return err
	}
	for batch := range batches(ids, searchBatch) {
		found, err := c.messages(ctx, batch)
		if err != nil {
			return err
		}
		messages := make([]chat.Message, 0, len(batch))
		for _, id := range batch {
			if m, ok := found[id]; ok {
				messages = append(messages, m)
			}
		}
		if err := c.know(ctx, messages, depths, false); err != nil {
			return err
		}
	}
	return nil
}

// results reads the messages of matches, in order.
func (s *chatStore) results(ctx context.Context, matches []match, q *query) ([]chat.SearchResult, error) {
	var results []chat.SearchResult
	for batch := range batches(matches, searchBatch) {
		ids := make([]string, len(batch))
		for i := range batch {
			ids[i] = batch[i].id
		}
		found, err := s.readMessages(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, at := range batch {
			m, ok := found[at.id]
			if !ok {
				continue // deleted since
			}
			d := newDocument(searchText(m.Data))
			var hits [][]hit
			d.match(q, &hits)
			results = append(results, chat.SearchResult{Message: m, Rank: at.rank, Snippet: d.snippet(hits)})
		}
	}
	return results, nil
}

// allDepths returns the lengths of the chains of all messages of a chat.
func (c *Conn) allDepths(ctx context.Context, chatID string) (map[string]int, error) {
	rows, err := c.Query(ctx, messageSQL.links, chatID)
	links, err := all(rows, err, scanLink)
	if err != nil {
		return nil, err
	}
	return depthsOf(links)
}

// depthsOf returns the lengths of the chains that links make. A parent that is not
// among them is not counted.
func depthsOf(links []link) (map[string]int, error) {
	parents := make(map[string]string, len(links))
	for _, l := range links {
		parents[l.id] = l.parent
	}
	depths := make(map[string]int, len(links))
	var path []string
	for _, l := range links {
		path = path[:0]
		at := l.id
		for at != "" && depths[at] == 0 {
			if _, ok := parents[at]; !ok {
				break
			}
			if len(path) > len(links) {
				return nil, &TableError{Table: "messages", Err: ErrCorrupt, Detail: "message " + l.id + " is its own ancestor"}
			}
			path = append(path, at)
			at = parents[at]
		}
		depth := depths[at]
		for _, id := range slices.Backward(path) {
			depth++
			depths[id] = depth
		}
	}
	return depths, nil
}
