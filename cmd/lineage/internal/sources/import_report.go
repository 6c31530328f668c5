package sources

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/records"
)

func items(damages []*archive.Damage) []records.SkippedItem {
	list := []records.SkippedItem{}
	for _, d := range damages {
		list = append(list, records.SkippedItem{Position: d.At.String(), Reason: d.Err.Error()})
	}
	return list
}

// importAgain is the hint for an interrupted import.
const importAgain = "what was imported before is kept; importing again continues from there"

// imported prints the result of an import.
func imported(a *app.App, report *importer.Report, whole bool) error {
	r := ImportedRecord(report)
	err := printImported(a, r, whole)
	for _, d := range report.Skipped {
		if hint, ok := limitHint(d); ok && err != nil {
			return app.Hint(err, "%s", hint)
		}
	}
	return err
}

// ImportedRecord returns the record of an import.
func ImportedRecord(report *importer.Report) *records.Imported {
	return &records.Imported{
		Formats: append([]string{}, report.Formats...), Unchanged: report.Unchanged, Conversations: report.Conversations, Messages: report.Messages,
		NewConversations: report.NewConversations, NewMessages: report.NewMessages, SharedMessages: report.SharedMessages,
		NewBytes: report.NewBytes, Kept: report.Kept, Converted: report.Converted, Opaque: report.Opaque, Skipped: items(report.Skipped), SkippedCount: report.SkippedCount,
		Repaired: items(report.Repaired), RepairedCount: report.RepairedCount,
		Ignored: append([]string{}, report.Ignored...), IgnoredCount: report.IgnoredCount,
	}
}

// partly returns an error if items were left out or there are no messages. The import was then done in part, or not
// at all if nothing remained to import.
func partly(r *records.Imported) error {
	left := amount.Plural(r.SkippedCount, "item") + " left out"
	stored := r.Messages > 0 || r.NewBytes > 0 || r.RepairedCount > 0
	switch {
	case r.SkippedCount > 0 && !stored:
		return fmt.Errorf("nothing could be imported: %s", left)
	case r.SkippedCount > 0:
		return fmt.Errorf("%s: %w", left, app.ErrPartial)
	case r.Messages == 0 && r.RepairedCount > 0:
		return fmt.Errorf("no messages, %s of other records: %w", amount.Plural(r.Conversations, "conversation"), app.ErrPartial)
	}
	return nil
}

func printImported(a *app.App, r *records.Imported, whole bool) error {
	count := func(n, more int64) string {
		if more == n {
			return amount.Count(n)
		}
		return fmt.Sprintf("%s, %s of them new", amount.Count(n), amount.Count(more))
	}
	some := func(n int64, thing, how string) string {
		if n == 0 {
			return ""
		}
		return amount.Plural(n, thing) + " " + how
	}
	err := a.Facts(r, [][2]string{
		{"read as", strings.Join(r.Formats, ", ")},
		{"conversations", count(r.Conversations, r.NewConversations)},
		{"messages", count(r.Messages, r.NewMessages)},
		{"shared", some(r.SharedMessages, "message", "of a conversation from which an imported one was forked")},
		{"kept", some(r.Kept, "message", "that the store has, written in another way")},
		{"new bytes", amount.Bytes(r.NewBytes)},
		{"converted", some(r.Converted, "message", "without links to the messages after them")},
		{"opaque", some(r.Opaque, "message", "stored whole")},
		{"unchanged", some(r.Unchanged, "file", "not read again")},
		{"ignored", some(r.IgnoredCount, "file", "of no known format")},
	}...)
	if !a.JSON {
		show.Some(a, "ignored", r.Ignored, r.IgnoredCount, maxIgnored)
		show.Items(a, "repaired", r.Repaired, r.RepairedCount)
		show.Items(a, "skipped", r.Skipped, r.SkippedCount)
	}
	if whole {
		err = errors.Join(err, partly(r))
	}
	return err
}

// maxIgnored limits the files in no known format that are listed for people.
const maxIgnored = 10
