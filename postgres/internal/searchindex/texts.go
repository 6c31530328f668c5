package searchindex

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/structure"
)

// MostWritten is the largest number of words, terms or mentions that a transaction writes, but for the words of one text. The
// time of a transaction is limited, and nothing limits the size of a commit. Tests make it smaller.
var MostWritten = 1 << 17

// most is MostWritten, or less after a transaction was too slow.
func (w *indexUpdate) most() int { return w.feed.Most(MostWritten) }

// findNew finds the texts that the index does not have.
func (w *indexUpdate) findNew(ctx context.Context) error {
	ask := make([][]byte, 0, len(w.order))
	for i := range w.order {
		ask = append(ask, w.order[i][:])
	}
	for id := range w.restored {
		for _, r := range searched.Readings {
			t := searched.TextOf(id, r)
			ask = append(ask, t[:])
		}
	}
	known := make(map[searched.TextID]bool) // false without words
	if len(ask) > 0 {
		err := w.index.server.Read(ctx, func(b *pgx.Batch) {
			b.Queue(`SELECT id, words IS NOT NULL FROM lineage_search_text WHERE store = $1 AND id = ANY($2::bytea[])`, w.index.store, ask).Query(func(rows pgx.Rows) error {
				var id []byte
				var has bool
				_, err := pgx.ForEachRow(rows, []any{&id, &has}, func() error {
					known[searched.TextID(id)] = has
					return nil
				})
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	for id := range w.restored {
		for _, r := range searched.Readings {
			t := searched.TextOf(id, r)
			if has, ok := known[t]; ok && !has {
				delete(known, t)
				if _, ok := w.sources[t]; !ok {
					w.sources[t] = text{content: id, kind: structure.PartUsage}
					w.order = append(w.order, t)
				}
			}
		}
	}
	for _, id := range w.order {
		if _, ok := known[id]; !ok {
			w.unread = append(w.unread, id)
		}
	}
	w.parser = make(query.Terms)
	return nil
}

// findTexts finds the words of the next texts, as many as a transaction writes. more reports whether there are others.
func (w *indexUpdate) findTexts(ctx context.Context) (more bool, err error) {
	w.ids, w.words, w.terms, w.numbers = nil, nil, nil, nil
	at := make(map[string]int) // of a term in all
	var all []string
	var texts [][]int
	for size := 0; len(w.unread) > 0 && size < w.most(); w.unread = w.unread[1:] {
		id := w.unread[0]
		body, err := w.read(ctx, id)
		if err != nil {
			return false, err
		}
		var words []int
		searched.EachTerm(w.parser, body, func(term string) {
			n, ok := at[term]
			if !ok {
				n = len(all)
				all, at[term] = append(all, term), n
			}
			words = append(words, n)
		})
		if size += len(words); len(words) > 0 {
			w.ids, texts = append(w.ids, id[:]), append(texts, words)
		}
	}
	numbers, err := w.number(ctx, all)
	if err != nil {
		return false, err
	}
	for _, words := range texts {
		b := make([]byte, 0, 11*len(words)+2)
		b = append(b, '{')
		for i, n := range words {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(numbers[n]), 10)
		}
		w.words = append(w.words, string(append(b, '}')))
	}
	return len(w.unread) > 0, nil
}

// read returns a text, "" if it is gone.
func (w *indexUpdate) read(ctx context.Context, id searched.TextID) (string, error) {
	from := w.sources[id]
	if from.name != "" {
		return from.name, nil
	}
	b := w.blocks[from.content]
	if !searched.HasBody(b) {
		var err error
		if b, err = searched.BlockIn(ctx, w.feed.State, from.content); b == nil {
			return "", err
		}
	}
	return searched.ReadText(ctx, w.feed.State, from.kind, b, id.Reading())
}

// number returns the numbers of terms. New terms get the next numbers.
func (w *indexUpdate) number(ctx context.Context, all []string) ([]int32, error) {
	known := w.index.known.of(&w.before)
	numbers := make([]int32, len(all))
	at := make(map[string]int)
	var unknown [][]byte
	for i, term := range all {
		if n, ok := known[term]; ok {
			numbers[i] = n
		} else if term != "" {
			at[term] = i
			unknown = append(unknown, []byte(term))
		}
	}
	w.added = make(map[string]int32, len(unknown))
	if len(unknown) == 0 {
		return numbers, nil
	}
	err := w.index.server.Read(ctx, func(b *pgx.Batch) {
		b.Queue(termsSQL, w.index.store, unknown).Query(func(rows pgx.Rows) error {
			var term []byte
			var n int32
			_, err := pgx.ForEachRow(rows, []any{&term, &n}, func() error {
				w.added[string(term)] = n
				return nil
			})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for _, term := range unknown {
		n, added := w.added[string(term)]
		if !added {
			for n == 0 { // no term
				w.next.terms++
				n = int32(uint32(w.next.terms))
			}
			w.added[string(term)] = n
			w.terms, w.numbers = append(w.terms, term), append(w.numbers, n)
		}
		numbers[at[string(term)]] = n
	}
	return numbers, nil
}

const termsSQL = `SELECT term, number FROM lineage_search_term WHERE store = $1 AND term = ANY($2::bytea[])`
