package threads

import (
	"iter"

	"github.com/lineage-store/lineage/lineage/records"
)

// listedAtOnce limits the threads whose records are made together.
const listedAtOnce = 500

// list passes the records of threads to show, a page at a time. If there are more threads than the limit, the last
// record has the token of the last thread. A limit of 0 means none.
func list[T any](all iter.Seq2[T, error], limit int, token func(T) string, recordsOf func([]T) ([]*records.Thread, error), show func(*records.Thread) error) error {
	var page []T
	var last *records.Thread // it is shown when it is known whether others follow
	total := 0
	showPage := func() error {
		list, err := recordsOf(page)
		if err != nil {
			return err
		}
		for _, r := range list {
			if last != nil {
				if err := show(last); err != nil {
					return err
				}
			}
			last = r
		}
		return nil
	}
	next := ""
	for thread, err := range all {
		if err != nil {
			return err
		}
		if limit > 0 && total == limit {
			next = token(page[len(page)-1])
			break
		}
		if len(page) == listedAtOnce {
			if err := showPage(); err != nil {
				return err
			}
			page = page[:0]
		}
		page, total = append(page, thread), total+1
	}
	if err := showPage(); err != nil || last == nil {
		return err
	}
	last.Next = next
	return show(last)
}
