package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
)

// CostCell returns the cell for a cost.
func CostCell(f *usage.Figures) screen.Cell {
	figures := f.Record()
	return screen.Cell{Text: CostText(&figures), Right: true}
}

// UsedText returns figures in a line for people, empty for none.
func UsedText(f *records.UsageFigures) string {
	if f == nil {
		return ""
	}
	var parts []string
	for _, kind := range []struct {
		name   string
		tokens *int64
	}{
		{"input", f.InputTokens}, {"cached", f.CachedInputTokens}, {"written to the cache", f.WrittenTokens()}, {"output", f.OutputTokens},
		{"of it reasoning", f.ReasoningTokens},
	} {
		if kind.tokens != nil {
			parts = append(parts, fmt.Sprintf("%s %s", amount.Count(uint64(*kind.tokens)), kind.name))
		}
	}
	if cost := CostText(f); cost != "-" {
		parts = append(parts, cost)
	}
	return strings.Join(parts, ", ")
}

// CostText returns a cost for people, "-" if there is none.
func CostText(f *records.UsageFigures) string { return cmp.Or(f.Money(), "-") }
