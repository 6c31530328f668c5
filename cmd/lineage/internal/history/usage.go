package history

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/lineage/usage/prices"
	"github.com/lineage-store/lineage/structure"
)

type usageOptions struct {
	thread                string
	by                    []string
	since, until          app.TimeFlag
	zone                  string
	agent, model, project string
	users                 []string
	prices                string
	csv                   bool
}

func UsageCommand(a *app.App) *cobra.Command {
	o := &usageOptions{}
	c := &cobra.Command{
		Use:   "usage [THREAD]",
		Short: "Show what conversations cost: tokens and money",
		Long: `Shows the tokens, requests and costs of all conversations by day, or of THREAD by branch, subagent and model. An answer of a
model counts once, however many threads have a copy of it: in the thread that had it first. For THREAD, answers that count in
another thread are shown in rows of their own, as shared.

--by takes several of ` + byText() + `. Input is what
was neither read from a cache nor written to one; output includes reasoning. What a source does not state is unknown: a - where
nothing is known, and a + where a part is. Costs are by a table of prices of ` + prices.Date + ` that comes with the program; --prices
FILE replaces it. Models without a price are listed. See docs/usage.md.`,
		Example: `  lineage usage
  lineage usage --by month,model --since 2026-01-01
  lineage usage --by project,agent --csv
  lineage usage lisbon --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore, args []string) error {
			o.thread = app.Arg(args, 0)
			return runUsage(ctx, s, o)
		}),
	}
	f := c.Flags()
	f.StringSliceVar(&o.by, "by", nil, "what to group by, several with commas (default day; with THREAD branch,subagent,model)")
	f.Var(&o.since, "since", "only answers of this time or later: "+app.TimeForms)
	f.Var(&o.until, "until", "only answers before this time")
	f.StringVar(&o.zone, "zone", "", "time zone of days, weeks and months, such as Europe/Lisbon (default: that of the system)")
	f.StringVar(&o.agent, "agent", "", "only sessions of this agent, such as claude-code or codex")
	f.StringVar(&o.model, "model", "", "only answers of this model")
	f.StringVar(&o.project, "project", "", "only sessions that began in this folder; . is the current one")
	f.StringSliceVar(&o.users, "user", nil, "only in threads of this user; may be repeated")
	f.StringVar(&o.prices, "prices", "", "take the prices from this file, in the form of docs/usage.md")
	f.BoolVar(&o.csv, "csv", false, "print comma-separated values")
	return c
}

func byText() string {
	names := make([]string, len(usage.Keys))
	for i, key := range usage.Keys {
		names[i] = string(key)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// query returns the query for the flags.
func (o *usageOptions) query(ctx context.Context, s *app.OpenStore) (q usage.Query, err error) {
	q = usage.Query{Since: o.since.Time, Until: o.until.Time, Zone: time.Local, Agent: o.agent, Model: o.model, Users: o.users}
	if o.csv && s.JSON {
		return q, app.Usagef("--csv and --json: one of them")
	}
	if o.zone != "" {
		if q.Zone, err = time.LoadLocation(o.zone); err != nil {
			return q, app.Usagef("--zone %q: must be a name such as Europe/Lisbon", o.zone)
		}
		q.Since, q.Until = o.since.In(q.Zone), o.until.In(q.Zone)
	}
	if o.project != "" {
		project, err := app.ProjectPath(o.project)
		if err != nil {
			return q, err
		}
		q.Projects = []string{project}
	}
	if o.thread != "" {
		t, err := threads.ThreadNamed(ctx, s, o.thread)
		if err != nil {
			return q, err
		}
		q.Thread = t.ID()
	}
	keys := o.by
	switch {
	case len(keys) > 0:
	case o.thread != "":
		keys = []string{"branch", "subagent", "model"}
	default:
		keys = []string{"day"}
	}
	for _, name := range keys {
		if !slices.Contains(usage.Keys, usage.By(name)) {
			return q, app.Hint(app.Usagef("--by %q is not known", name), "it is one of %s", byText())
		}
		if !slices.Contains(q.By, usage.By(name)) {
			q.By = append(q.By, usage.By(name))
		}
	}
	if o.prices != "" {
		if q.Prices, err = readPrices(o.prices); err != nil {
			return q, fmt.Errorf("--prices %s: %w", o.prices, err)
		}
	}
	return q, nil
}

func readPrices(path string) (*prices.Table, error) {
	f, err := vfs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return prices.Read(f)
}

func runUsage(ctx context.Context, s *app.OpenStore, o *usageOptions) error {
	q, err := o.query(ctx, s)
	if err != nil {
		return err
	}
	var report *usage.Report
	open := func(dir string, progress func(done, total uint64)) (*usage.Index, error) {
		return usage.Open(ctx, s.Store, dir, usage.Options{Progress: progress})
	}
	err = app.WithDerived(s, "reading usage", open, func(x *usage.Index) error {
		report, err = x.Report(ctx, q)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case o.csv:
		return printUsageCSV(s, q.By, report)
	case s.JSON:
		for _, r := range report.Records(q.By) {
			if err := s.Emit(r); err != nil {
				return err
			}
		}
		return s.Emit(report.TotalRecord())
	}
	return printUsage(ctx, s, q.By, report, o.none())
}

// none returns the note that there is nothing to report.
func (o *usageOptions) none() string {
	if o.thread+o.agent+o.model+o.project == "" && len(o.users) == 0 && o.since.IsZero() && o.until.IsZero() {
		return "no answer in the store states what it used"
	}
	const none = "no such answer states what it used"
	if !o.since.IsZero() && !o.until.IsZero() && !o.since.Before(o.until.Time) {
		return none + "; --until is not after --since"
	}
	if doubt := app.Doubt(o.agent, o.project, threads.AgentNames()); doubt != "" {
		return none + "; " + doubt
	}
	return none
}

// usageWidth is the maximum width of the table.
const usageWidth = 100

// printUsage prints a report for a person, or a note if it is empty.
func printUsage(ctx context.Context, s *app.OpenStore, by []usage.By, report *usage.Report, none string) error {
	stated := report.Total.StatedBy > 0 && !report.Total.Stated.IsZero()
	heads := []string{}
	for _, key := range by {
		heads = append(heads, strings.ToUpper(string(key)))
	}
	heads = append(heads, "REQUESTS", "INPUT", "CACHED", "WRITTEN", "OUTPUT", "COST")
	if stated {
		heads = append(heads, "STATED")
	}
	titles, err := usageTitles(ctx, s, by, report)
	if err != nil {
		return err
	}
	var rows [][]screen.Cell
	for i := range report.Rows {
		r := &report.Rows[i]
		rows = append(rows, usageRow(usageKeys(by, r, titles), &r.Figures, stated))
	}
	if len(report.Rows) > 1 {
		keys := make([]string, len(by))
		if len(keys) > 0 {
			keys[0] = "total"
		}
		rows = append(rows, usageRow(keys, &report.Total, stated))
	}
	list := s.List(heads...)
	list.Spare(usageSpare...)
	for _, cells := range fitted(heads, rows, len(by), s.Out.Width) {
		list.Row(cells...)
	}
	if err := list.End("%s", none); err != nil {
		return err
	}
	total := report.TotalRecord()
	if n := total.Unpriced; n > 0 {
		names := make([]string, len(total.UnpricedModels))
		for i, name := range total.UnpricedModels {
			if names[i] = screen.Cut(screen.Line(name), 40); name == "" {
				names[i] = "(no model)"
			}
		}
		s.Printf("no price: %s\n", screen.Cut(strings.Join(names, ", "), 300))
	}
	if n := total.Incomplete; n > 0 {
		s.Printf("of %s not all tokens are known\n", amount.Plural(n, "answer"))
	}
	return nil
}

// usageKeys returns the keys of a row for people, with the titles of threads by their ids.
func usageKeys(by []usage.By, r *usage.Row, titles map[string]string) []string {
	keys := slices.Clone(r.Keys)
	for k, key := range by {
		if key == usage.Thread {
			keys[k] = cmp.Or(titles[keys[k]], keys[k])
		}
		if keys[k] == "" {
			keys[k] = "-"
		}
	}
	if r.Shared && len(keys) > 0 {
		keys[0] += " (shared)"
	}
	return keys
}

// usageRow returns the cells of a row. With stated, it includes the costs that the sources state.
func usageRow(keys []string, f *usage.Figures, stated bool) []screen.Cell {
	var cells []screen.Cell
	for _, key := range keys {
		cells = append(cells, app.PlainCell(screen.Line(key)))
	}
	r := f.Record()
	cells = append(cells, app.CountCell(uint64(f.Requests)),
		tokensCell(r.InputTokens, f.Tokens[message.Input].Unknown > 0), tokensCell(r.CachedInputTokens, false),
		tokensCell(r.WrittenTokens(), false), tokensCell(r.OutputTokens, f.Tokens[message.Output].Unknown > 0), show.CostCell(f))
	if stated {
		text := "-"
		if f.StatedBy > 0 {
			text = "$" + f.Stated.Fixed(2)
		}
		cells = append(cells, screen.Cell{Text: text, Right: true})
	}
	return cells
}

// usageSpare are the columns that a narrow terminal does not show.
var usageSpare = []string{"WRITTEN", "CACHED"}

// fitted cuts the texts of the first columns, the widest ones first, so that rows are not wider than usageWidth, nor, without the
// spare columns, wider than the terminal. terminal is 0 if there is none.
func fitted(heads []string, rows [][]screen.Cell, columns, terminal int) [][]screen.Cell {
	widths, sum, spare := make([]int, len(heads)), -2, 0
	for i, head := range heads {
		widths[i] = screen.Width(head)
		for _, cells := range rows {
			widths[i] = max(widths[i], screen.Width(cells[i].Text))
		}
		sum += widths[i] + 2
		if slices.Contains(usageSpare, head) {
			spare += widths[i] + 2
		}
	}
	width := usageWidth
	if terminal > 0 {
		width = min(width, terminal+spare)
	}
	for ; sum > width && columns > 0; sum-- {
		widest := 0
		for i := range columns {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 6 {
			break
		}
		widths[widest]--
	}
	for _, cells := range rows {
		for i := range columns {
			cells[i].Text = screen.Cut(cells[i].Text, widths[i])
		}
	}
	return rows
}

// usageTitles returns the short ids and titles of the threads of a report by their ids.
func usageTitles(ctx context.Context, s *app.OpenStore, by []usage.By, report *usage.Report) (map[string]string, error) {
	titles := make(map[string]string)
	k := slices.Index(by, usage.Thread)
	if k < 0 {
		return titles, nil
	}
	var ids []lineage.ThreadID
	for i := range report.Rows {
		text := report.Rows[i].Keys[k]
		if id, err := structure.ParseID[lineage.ThreadID](text); err == nil && titles[text] == "" {
			titles[text] = refs.Short(id) // all that is left of a deleted thread
			ids = append(ids, id)
		}
	}
	found, err := records.OfThreads(ctx, s.Store, ids)
	if err != nil {
		return nil, err
	}
	infos := make([]lineage.ThreadInfo, len(found))
	for i, r := range found {
		if infos[i], err = threads.InfoOf(r); err != nil {
			return nil, err
		}
	}
	shown, err := show.ShownTitles(ctx, s, infos)
	if err != nil {
		return nil, err
	}
	for i, r := range found {
		titles[r.ID] += " " + shown[i]
	}
	return titles, nil
}

// tokensCell returns the cell for a number of tokens, nil for an unknown one. A + means that there are more.
func tokensCell(n *int64, more bool) screen.Cell {
	text := "-"
	if n != nil {
		if text = tokensText(*n); more {
			text += "+"
		}
	}
	return screen.Cell{Text: text, Right: true}
}

// tokensText returns a number of tokens in at most seven characters.
func tokensText(n int64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}} {
		if float64(n) >= unit.size {
			return strconv.FormatFloat(float64(n)/unit.size, 'f', 1, 64) + unit.name
		}
	}
	return amount.Count(uint64(max(n, 0)))
}

// printUsageCSV prints a report as comma-separated values.
func printUsageCSV(s *app.OpenStore, by []usage.By, report *usage.Report) error {
	w := csv.NewWriter(s.Out.W)
	var head []string
	for _, key := range by {
		head = append(head, strings.ReplaceAll(string(key), "-", "_"))
	}
	head = append(head, "shared", "requests", "input_tokens", "cached_input_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens", "reasoning_tokens",
		"cost", "unpriced", "incomplete", "stated_cost", "stated_requests")
	if err := w.Write(head); err != nil {
		return err
	}
	for i := range report.Rows {
		row := &report.Rows[i]
		f := row.Figures.Record()
		var cells []string
		for _, key := range row.Keys {
			cells = append(cells, csvText(key))
		}
		cells = append(cells, strconv.FormatBool(row.Shared), strconv.FormatInt(f.Requests, 10))
		for _, n := range []*int64{f.InputTokens, f.CachedInputTokens, f.CacheWriteTokens, f.CacheWrite1hTokens, f.OutputTokens, f.ReasoningTokens} {
			if n == nil {
				cells = append(cells, "")
			} else {
				cells = append(cells, strconv.FormatInt(*n, 10))
			}
		}
		cells = append(cells, decimalText(f.Cost), strconv.FormatInt(f.Unpriced, 10), strconv.FormatInt(f.Incomplete, 10), decimalText(f.StatedCost), strconv.FormatInt(f.StatedRequests, 10))
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func decimalText(d *json.Number) string {
	if d == nil {
		return ""
	}
	return string(*d)
}

// csvText returns a text as a cell that spreadsheets do not read as a formula.
func csvText(text string) string {
	if text = plain.Text(text); text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}
