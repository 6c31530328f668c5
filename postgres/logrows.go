package postgres

import (
	"slices"

	"github.com/lineage-store/lineage/internal/embedded"
)

// logRows has rows of the log, as they were fetched. They are decoded when they are read, so that a damaged row is an error
// only of those who need it.
type logRows struct {
	fetched map[uint64]*logRow // by number
	size    int                // of their data, in bytes
	wanted  []uint64           // rows that were asked for and were not fetched, because others were large
	current *decodedRow        // the row that was read last
}

// decodedRow has the commits of a row of the log.
type decodedRow struct {
	first   uint64
	commits []embedded.Sequenced
}

// mostWanted limits the rows that are remembered to be fetched later.
const mostWanted = 1 << 12

// keep keeps rows that were fetched, of those that were asked for. Earlier rows are dropped when they are large.
func (l *logRows) keep(numbers []uint64, rows []logRow) {
	if l.fetched == nil || l.size > mostRead {
		l.fetched, l.size = make(map[uint64]*logRow, len(rows)), 0
	}
	for i := range rows {
		l.fetched[rows[i].first] = &rows[i]
		l.size += len(rows[i].data)
	}
	if len(numbers) > len(rows) && len(l.wanted) < mostWanted {
		l.wanted = append(l.wanted, numbers...)
	}
}

// next returns the numbers of the rows to fetch for one of them: the wanted rows after it come with it, as many as fit.
func (l *logRows) next(first uint64) []uint64 {
	i := slices.Index(l.wanted, first)
	if i < 0 {
		return []uint64{first}
	}
	next := slices.Clone(l.wanted[i:])
	l.wanted = l.wanted[:i]
	return next
}
