package show

import (
	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
)

// MaxItems limits the items that are listed for people.
const MaxItems = 20

// Items prints the first ones of count items that were left out or are irregular.
func Items(a *app.App, what string, items []records.SkippedItem, count int64) {
	var lines []string
	for _, item := range items {
		lines = append(lines, screen.Line(item.Position)+": "+screen.Line(item.Reason))
	}
	Some(a, what, lines, count, MaxItems)
}

// Some prints the first ones of count lines.
func Some(a *app.App, what string, lines []string, count int64, most int) {
	for _, line := range lines[:min(len(lines), most)] {
		a.Printf("%s  %s\n", a.Out.Paint(screen.Yellow, what), screen.Line(line))
	}
	if more := count - int64(most); more > 0 {
		a.Printf("%s  … and %s more; --json lists them\n", what, amount.Count(more))
	}
}
