package searchindex

import (
	"context"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"
)

// terms are numbers of terms that the index has. They are valid until another process writes.
type terms struct {
	mu      sync.Mutex
	version int64
	stamp   int64
	numbers map[string]int32
}

// mostTerms limits the terms that are kept.
const mostTerms = 200_000

// of returns the terms that are known in a state of the index. The caller does not change them.
func (t *terms) of(m *meta) map[string]int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version != m.Version || t.stamp != m.stamp {
		return nil
	}
	return t.numbers
}

// learn replaces the terms of the state was, with more terms, by those of the state is. Without more it has none.
func (t *terms) learn(was, now *meta, more map[string]int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]int32, len(more))
	if more != nil && t.version == was.Version && t.stamp == was.stamp && len(t.numbers)+len(more) <= mostTerms {
		maps.Copy(next, t.numbers)
	}
	maps.Copy(next, more)
	t.version, t.stamp, t.numbers = now.Version, now.stamp, next
}

// number returns the numbers of terms. New terms get the next numbers.
func (w *window) number(ctx context.Context, all []string) ([]int32, error) {
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
