package show

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/structure"
)

// CostCell returns the cell for a cost.
func CostCell(f *usage.Figures) screen.Cell {
	figures := f.Record()
	return screen.Cell{Text: CostText(&figures), Right: true}
}

// AddUsage sets the usage of the answers that count in each thread. It does nothing until 'lineage usage' was called
// once, because the first call reads the whole store. It also does nothing if the usage cannot be computed, as in a
// store that is damaged or cannot be written to.
func AddUsage(ctx context.Context, s *app.OpenStore, list ...*records.Thread) error {
	if len(list) == 0 || !usage.Exists(s.Dir) {
		return nil
	}
	report, err := usageByThread(ctx, s, list)
	if err != nil {
		return ctx.Err()
	}
	rows := make(map[string]*usage.Row, len(report.Rows))
	for i := range report.Rows {
		rows[report.Rows[i].Keys[0]] = &report.Rows[i]
	}
	for _, r := range list {
		if row := rows[r.ID]; row != nil {
			figures := row.Figures.Record()
			r.Usage = &figures
		}
	}
	return nil
}

func usageByThread(ctx context.Context, s *app.OpenStore, list []*records.Thread) (*usage.Report, error) {
	ids := make([]lineage.ThreadID, len(list))
	for i, r := range list {
		var err error
		if ids[i], err = structure.ParseID[lineage.ThreadID](r.ID); err != nil {
			return nil, err
		}
	}
	index, err := usage.Open(ctx, s.Store, s.Dir, usage.Options{})
	if err != nil {
		return nil, err
	}
	defer index.Close()
	return index.Report(ctx, usage.Query{By: []usage.By{usage.Thread}, CountedIn: ids})
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
