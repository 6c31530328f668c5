package searchindex

import "github.com/lineage-store/lineage/lineage/derived"

// format is the version of the content of the tables. An index with a lower one is made again.
const format = 3

// meta is the row of an index.
type meta struct {
	derived.Mark
	exists, clearing, busy bool
	format                 int
	epoch, current         int64 // of the index, and of the store
	stamp                  int64 // random for each version
	generation             int64 // random for each time that numbers get another meaning
	owner                  int64 // who works on it while it is busy, or did last
	spans                  int64 // the number of steps
	runs, threads, terms   int64 // the last numbers that were given
	erased                 bool  // some content is erased
}

// working reports whether another owner works on the index.
func (m *meta) working(owner int64) bool { return m.busy && m.owner != owner }

// usable reports whether the index is of the present epoch of the store.
func (m *meta) usable() bool {
	return m.exists && !m.clearing && m.format == format && m.epoch == m.current
}

const metaSQL = `SELECT s.epoch, m.store IS NOT NULL, coalesce(m.format, 0), coalesce(m.epoch, 0), coalesce(m.clearing, false), coalesce(m.busy_until > statement_timestamp(), false),
  coalesce(m.identity, ''), coalesce(m.number, 0), coalesce(m.id, 0), coalesce(m.seen_number, 0), coalesce(m.seen_id, 0), coalesce(m.version, 0), coalesce(m.stamp, 0),
  coalesce(m.generation, 0), coalesce(m.owner, 0), coalesce(m.spans, 0), coalesce(m.runs, 0), coalesce(m.threads, 0), coalesce(m.terms, 0), coalesce(m.erased, false)
FROM lineage_store s LEFT JOIN lineage_search m ON m.store = s.store WHERE s.store = $1`
