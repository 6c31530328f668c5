package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
)

// usageView shows what conversations cost.
type usageView struct {
	By   string
	Days int
	// Spans and Groups are the available choices.
	Spans  []usageChoice
	Groups []usageChoice
	Total  *records.Usage
	Rows   []*usageRow
	Bars   []usageBar
	// Width is the width of the picture of days and BarWidth that of a day. InMoney is set if the bars are money;
	// otherwise they are tokens. Most is the largest day. Dates and Months are the labels below the days and above
	// the year.
	Width, BarWidth int
	InMoney         bool
	Most            string
	Dates, Months   []usageMark
	Prices          string
	// Year has the days of the last year by week, and WeekWidth the width of that picture. Year is nil for short
	// periods.
	Year      []heatDay
	YearWidth int
	// Saved shows what is saved by storing equal bodies once, or is nil if nothing is.
	Saved *savings
}

// heatDay is a day in the picture of a year. Level is from 0, for none, to 4.
type heatDay struct {
	X, Y, Level int
	Title       string
}

// savings shows the size of bodies that occur several times and are stored once. Messages shared by forks count once
// in both numbers.
type savings struct {
	// Bytes is the total size of the bodies of all messages. Unique is the size of the different bodies.
	Bytes, Unique string
	// Percent is the part that is saved.
	Percent int
}

type usageChoice struct {
	Name, Href string
	Here       bool
}

// Bar returns the width of a bar without the gap.
func (v *usageView) Bar() int { return max(v.BarWidth-max(1, v.BarWidth/6), 1) }

// usageRow is a row of the table. Share is its percentage of the largest row.
type usageRow struct {
	Name string
	*records.Usage
	Share int
}

// usageBar is a day in the picture of days.
type usageBar struct {
	X, Y, Height int
	Title        string
}

// usageGroups are the keys that the table can be grouped by.
var usageGroups = []string{"model", "agent", "project"}

// usageMark is a date label.
type usageMark struct {
	X    int
	Text string
}

const (
	// Sizes of the picture of days, in pixels: its minimum width, the widths of a day, and its height.
	barsWidth   = 1160
	minBarWidth = 3
	maxBarWidth = 44
	barHeight   = 120
	// dateWidth is the width of a date label.
	dateWidth = 40
	// maxBars limits the number of days in the picture, which are the last ones.
	maxBars = 400
	// maxUsageRows limits the number of rows of the table, which are the largest ones.
	maxUsageRows = 200
)

func (p *Page) usage(w http.ResponseWriter, r *http.Request) error {
	v := &usageView{By: cmp.Or(r.URL.Query().Get("by"), "model"), Days: 30}
	if text := r.URL.Query().Get("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 36500 {
			return refuse("%.20q is no number of days: 30 are, and 0 is all of them.", text)
		}
		v.Days = n
	}
	if !slices.Contains(usageGroups, v.By) {
		return refuse("Usage is by model, agent or project, and not by %.40q.", v.By)
	}
	address := func(by string, days int) string { return fmt.Sprintf("/usage?by=%s&days=%d", by, days) }
	for _, days := range []int{7, 30, 90, 365, 0} {
		name := fmt.Sprintf("%d days", days)
		if days == 0 {
			name = "All"
		}
		v.Spans = append(v.Spans, usageChoice{name, address(v.By, days), days == v.Days})
	}
	for _, group := range usageGroups {
		v.Groups = append(v.Groups, usageChoice{group, address(group, v.Days), group == v.By})
	}
	var since time.Time
	if v.Days > 0 {
		since = p.o.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-v.Days)
	}
	days, total, err := p.o.Usage(r.Context(), UsageQuery{By: "day", Since: since})
	if err != nil {
		return err
	}
	rows, _, err := p.o.Usage(r.Context(), UsageQuery{By: v.By, Since: since})
	if err != nil {
		return err
	}
	v.Total, v.Prices = total, total.Prices
	spent, _ := dollars(total.Cost)
	v.InMoney = spent > 0
	v.bars(days, since, p.o.now().UTC())
	if v.Days == 0 || v.Days > 90 {
		v.year(days, p.o.now().UTC())
	}
	stats, err := p.o.Store.Stats(r.Context())
	if err != nil {
		return err
	}
	v.Saved = savingsOf(&stats)
	v.table(rows)
	return p.show(w, r, http.StatusOK, "usage", &pageData{Title: "Usage", Body: v})
}

// weight returns the number by which rows are compared.
func (v *usageView) weight(u *records.Usage) float64 {
	if v.InMoney {
		spent, _ := dollars(u.Cost)
		return spent
	}
	return tokens(u)
}

// dollars parses an amount. known is false if there is none.
func dollars(cost *json.Number) (amount float64, known bool) {
	if cost == nil {
		return 0, false
	}
	amount, err := cost.Float64()
	return amount, err == nil
}

func tokens(u *records.Usage) float64 {
	n := int64(0)
	for _, t := range []*int64{u.InputTokens, u.CachedInputTokens, u.WrittenTokens(), u.OutputTokens} {
		if t != nil {
			n += *t
		}
	}
	return float64(n)
}

// bars draws the days from since to today. If since is zero, it draws the days from the first with answers to the
// last.
func (v *usageView) bars(days []*records.Usage, since, now time.Time) {
	byDay := make(map[string]*records.Usage)
	largest, first, last := 0.0, "", ""
	for _, u := range days {
		if u.Day == nil || *u.Day == "" {
			continue
		}
		byDay[*u.Day] = u
		if first == "" || *u.Day < first {
			first = *u.Day
		}
		largest, last = max(largest, v.weight(u)), max(last, *u.Day)
	}
	if len(byDay) == 0 {
		return
	}
	if since.IsZero() {
		since, _ = time.Parse(time.DateOnly, first)
		now, _ = time.Parse(time.DateOnly, last)
	}
	if earliest := now.AddDate(0, 0, 1-maxBars); since.Before(earliest) {
		since = earliest
	}
	v.draw(byDay, largest, since, now)
}

// draw draws the days from since to now. largest is the largest weight of one of them.
func (v *usageView) draw(byDay map[string]*records.Usage, largest float64, since, now time.Time) {
	count := int(now.Sub(since)/(24*time.Hour)) + 1
	v.BarWidth = min(maxBarWidth, max(minBarWidth, barsWidth/count))
	for at := since; !at.After(now); at = at.AddDate(0, 0, 1) {
		day := at.Format(time.DateOnly)
		bar := usageBar{X: len(v.Bars) * v.BarWidth, Title: day}
		if text := dateBelow(at, count); text != "" && (count-len(v.Bars))*v.BarWidth >= dateWidth {
			v.Dates = append(v.Dates, usageMark{bar.X, text})
		}
		if u := byDay[day]; u != nil && largest > 0 {
			if v.weight(u) == largest {
				v.Most = titleOf(day, u)
			}
			bar.Height = max(2, int(v.weight(u)/largest*barHeight))
			bar.Title = titleOf(day, u)
		}
		bar.Y = barHeight - bar.Height
		v.Bars = append(v.Bars, bar)
	}
	v.Width = len(v.Bars) * v.BarWidth
}

// dateBelow returns the label below a day, empty for most days. The interval depends on the number of days.
func dateBelow(at time.Time, count int) string {
	switch {
	case count <= 10, count <= 100 && at.Weekday() == time.Monday:
		return at.Format("2 Jan")
	case count > 100 && at.Day() == 1:
		return at.Format("Jan")
	}
	return ""
}

// heatSize is the distance between days in the picture of a year, in pixels.
const heatSize = 13

// year draws the last 53 weeks, one column each, from Monday to Sunday. Levels are quarters of the largest day.
func (v *usageView) year(days []*records.Usage, now time.Time) {
	byDay := make(map[string]*records.Usage)
	largest := 0.0
	today := now.Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, -(int(today.Weekday())+6)%7-52*7)
	for _, u := range days {
		if u.Day != nil && *u.Day >= first.Format(time.DateOnly) {
			byDay[*u.Day] = u
			largest = max(largest, v.weight(u))
		}
	}
	for at, i := first, 0; !at.After(today); at, i = at.AddDate(0, 0, 1), i+1 {
		day := at.Format(time.DateOnly)
		cell := heatDay{X: i / 7 * heatSize, Y: i % 7 * heatSize, Title: day}
		if u := byDay[day]; u != nil {
			cell.Title = titleOf(day, u)
			if largest > 0 {
				cell.Level = min(4, 1+int(v.weight(u)/largest*4))
			}
		}
		if at.Day() == 1 {
			v.Months = append(v.Months, usageMark{cell.X, at.Format("Jan")})
		}
		v.Year = append(v.Year, cell)
		v.YearWidth = cell.X + heatSize
	}
}

func titleOf(day string, u *records.Usage) string {
	return fmt.Sprintf("%s: %s, %s", day, cmp.Or(u.Money(), "no cost"), count(u.Requests, "answer"))
}

// savingsOf returns the savings, or nil if there are none.
func savingsOf(s *backend.Stats) *savings {
	if s.UniqueBytes >= s.LogicalBytes {
		return nil
	}
	saved := s.LogicalBytes - s.UniqueBytes
	return &savings{Bytes: size(s.LogicalBytes), Unique: size(s.UniqueBytes), Percent: int(float64(saved) / float64(s.LogicalBytes) * 100)}
}

// table fills the table with rows, the largest first.
func (v *usageView) table(rows []*records.Usage) {
	slices.SortStableFunc(rows, func(a, b *records.Usage) int { return cmp.Compare(v.weight(b), v.weight(a)) })
	for _, u := range rows[:min(len(rows), maxUsageRows)] {
		key := map[string]*string{"model": u.Model, "agent": u.Agent, "project": u.Project}[v.By]
		row := &usageRow{Name: "unknown", Usage: u}
		if key != nil && *key != "" {
			row.Name = *key
		}
		if largest := v.weight(rows[0]); largest > 0 {
			row.Share = int(v.weight(u) / largest * 100)
		}
		v.Rows = append(v.Rows, row)
	}
}

// costsPending reports whether costs are going to change without a change of the store.
func (p *Page) costsPending(ctx context.Context) bool {
	return p.o.CostsPending != nil && p.o.CostsPending(ctx)
}
