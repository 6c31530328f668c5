package usage

import (
	"context"

	"github.com/lineage-store/lineage/internal/derivedfile"
)

// SetWindowLimit sets the number of changed subjects and records at which a transaction ends. It returns what it was.
func SetWindowLimit(n int) int {
	was := windowLimit
	windowLimit = n
	return was
}

// Format is the format of the file.
const Format = format

// CountStatements returns the number of queries for several rows of the reports that do makes.
func CountStatements(do func()) (n int) {
	was := each
	defer func() { each = was }()
	each = func(ctx context.Context, q derivedfile.Querier, do func(scan func(...any) error) error, query string, args ...any) error {
		n++
		return was(ctx, q, do, query, args...)
	}
	do()
	return n
}

// SetTogether sets the number of answers whose sightings are in memory together. It returns what it was.
func SetTogether(n int) int {
	was := mostTogether
	mostTogether = n
	return was
}
