package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

const (
	// usualPage and maxPage are the default and maximum number of records in a page.
	usualPage = 100
	maxPage   = 1000
	// maxLooked limits the threads that are examined per page to find those that the caller may read.
	maxLooked = 10_000
)

// listPage selects a part of a list.
type listPage struct {
	Limit int    `json:"-" query:"limit" doc:"at most so many; default 100, at most 1000"`
	After string `json:"-" query:"after" doc:"the next of the page before"`
}

func (p *listPage) size() int {
	if p.Limit == 0 {
		return usualPage
	}
	return min(p.Limit, maxPage)
}

// inHistory parses the token of a page of a history: the span at the end of the history, and the number of messages
// before the page. Without a token, both are zero.
func (p *listPage) inHistory() (end string, n uint64, err error) {
	if p.After == "" {
		return "", 0, nil
	}
	end, number, _ := strings.Cut(p.After, ":")
	n, err = strconv.ParseUint(number, 10, 62)
	if _, wrong := structure.ParseSpanRef(end); err != nil || wrong != nil {
		return "", 0, fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)
	}
	return end, n, nil
}

var errPage = fmt.Errorf("after: %w: must be the next value of a page", lineage.ErrInvalid)
