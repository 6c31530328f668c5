package difference

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/lineage-store/lineage/lineage"
)

// Lines compares the lines of two texts. Each line of the result has the prefix of records.DocumentDiff.
func Lines(old, current []string) (diff []string) {
	add := func(prefix string, lines []string) {
		for _, line := range lines {
			diff = append(diff, prefix+line)
		}
	}
	at := 0
	for _, d := range lcs.DiffLines(old, current) {
		add(" ", old[at:d.Start])
		add("-", old[d.Start:d.End])
		add("+", current[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	add(" ", old[at:])
	return diff
}

// RevisionLines returns the lines of a revision of a document, without line ends, and the number of the revision.
// Number 0 is the latest.
func RevisionLines(ctx context.Context, store *lineage.Store, c *lineage.Context, document string, number uint64) (lines []string, revision uint64, err error) {
	e, err := c.Revision(ctx, document, number)
	if err != nil {
		return nil, 0, err
	}
	if e.Size > lineage.MostText {
		return nil, 0, &lineage.SubjectError{Subject: "document", ID: document, Err: lineage.ErrTooLarge, Detail: fmt.Sprintf("revision %d has %d bytes", e.Revision, e.Size)}
	}
	text, err := store.Text(ctx, e)
	if err != nil || text == "" {
		return nil, e.Revision, err
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), e.Revision, nil
}
