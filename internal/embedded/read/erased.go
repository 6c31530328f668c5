package read

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Erasable returns the content of a record that the feed changes when that content is erased. ok is false for other
// records.
func Erasable(r structure.Record) (id content.ID, ok bool) {
	switch r := r.(type) {
	case *structure.Block:
		return r.ID, true
	case *structure.Summary:
		return r.Content, true
	}
	return id, false
}

// Erase removes what the feed does not yield of record i, whose content is erased: the body of a block, the embedding of
// a summary.
func Erase(c *structure.Commit, i int) {
	switch r := c.Records[i].(type) {
	case *structure.Block:
		r.Body = nil
	case *structure.Summary:
		c.Records[i] = r.WithoutEmbedding()
	}
}
