package sources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/archive"
)

type importOptions struct {
	path   string
	format string
	user   string
	prefix string
	again  bool
	limits map[string]string
}

// limitNames returns the names of all limits.
func limitNames() []string { return slices.Sorted(maps.Keys((&archive.Limits{}).ByName())) }

// limitsOf returns the limits set on the command line.
func (o *importOptions) limitsOf() (l archive.Limits, err error) {
	byName := l.ByName()
	for name, value := range o.limits {
		limit := byName[name]
		if limit == nil {
			return l, app.Usagef("no limit %q: there are %s", name, strings.Join(limitNames(), ", "))
		}
		if limit == &l.Item || limit == &l.Total {
			if *limit, err = amount.ParseBytes(value); err != nil {
				return l, app.Usagef("limit %s=%q: %v", name, value, err)
			}
		} else if *limit, err = strconv.ParseInt(value, 10, 64); err != nil {
			return l, app.Usagef("limit %s=%q: must be a number", name, value)
		}
		if *limit <= 0 {
			return l, app.Usagef("limit %s=%q: must be 1 or more", name, value)
		}
	}
	return l, nil
}

// limitHint returns the hint for an error that a limit was exceeded.
func limitHint(err error) (string, bool) {
	var limit *archive.LimitError
	if !errors.As(err, &limit) {
		return "", false
	}
	return fmt.Sprintf("--limit %s=N raises the limit, if the archive can be trusted; it is %d", limit.Limit, limit.Most), true
}
