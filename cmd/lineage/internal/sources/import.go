// Package sources has the commands between a store and other programs: session files of agents, archives, bundles.
package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

type importOptions struct {
	path   string
	format string
	user   string
	prefix string
	again  bool
	limits map[string]string
}

func ImportCommand(a *app.App) *cobra.Command {
	o := &importOptions{}
	c := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Import an archive of conversations",
		Long: `Imports the conversations of an archive: a file, a folder, a zip, compressed with
gzip or zstd or not, standard input (-), or the threads of a SQL database (sqlite:FILE, postgres://…,
sqlserver://…). The format is detected from the content of each file:

` + formatList() + `

Nothing is stored twice: importing an archive again adds nothing, and a newer export adds
only its new messages. Files that this machine imported before, and that have not changed
since, are not read again, unless a thread or branch of theirs was deleted. Sessions whose
messages are in several files (Cline, older ones of OpenCode) and files of which something was
left out always are. Items that cannot be used are left out and listed, and the exit code is 7, or 1 if nothing could be imported. It is 7 as well if the archive has records
but no messages: they are kept. Limits protect against archives that would take
all time or memory; the error names the limit, and --limit raises it. A store that is named by
--store is created if it does not exist and there is something to import.`,
		Example: `  lineage import chats.jsonl
  lineage import chats.jsonl --store imported.lineage --json
  cat chats.jsonl | lineage import - --format openai
  lineage project sqlite:chats.db && lineage import sqlite:chats.db --store copy.lineage`,
		Args: cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.path = args[0]
			return runImport(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.format, "format", "", "read it as this format")
	f.StringVar(&o.user, "user", "", "the user of conversations for which the archive has none")
	f.StringVar(&o.prefix, "prefix", "", "put this before the ids of conversations, to keep archives apart")
	f.BoolVar(&o.again, "again", false, "read files that have not changed, too")
	f.StringToStringVar(&o.limits, "limit", nil, "set a limit on what is read, such as files=2000000 ("+strings.Join(limitNames(), ", ")+")")
	return c
}

// limitNames returns the names of all limits.
func limitNames() []string { return slices.Sorted(maps.Keys((&archive.Limits{}).ByName())) }

// limitsOf returns the limits set on the command line.
func (o *importOptions) limitsOf() (l archive.Limits, err error) {
	byName := l.ByName()
	for name, value := range o.limits {
		limit := byName[name]
		if limit == nil {
			return l, app.Usagef("no limit %q: there are %s", name, strings.Join(limitNames(), ", "))
		}
		if *limit, err = strconv.ParseInt(value, 10, 64); err != nil || *limit <= 0 {
			return l, app.Usagef("limit %s=%q: not a number from 1 on", name, value)
		}
	}
	return l, nil
}

// limitHint returns the hint for an error that a limit was exceeded.
func limitHint(err error) (string, bool) {
	var limit *archive.LimitError
	if !errors.As(err, &limit) {
		return "", false
	}
	return fmt.Sprintf("--limit %s=N raises the limit, if the archive can be trusted; it is %d", limit.Limit, limit.Most), true
}

// Formats are the formats that can be imported.
func Formats() []archive.Format { return append(formats.All(), archives.Formats()...) }

// formatList returns the names of all formats, indented and wrapped.
func formatList() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return "  " + strings.Join(screen.Wrap(strings.Join(names, ", "), 76), "\n  ")
}

func items(damages []*archive.Damage) []records.SkippedItem {
	list := []records.SkippedItem{}
	for _, d := range damages {
		list = append(list, records.SkippedItem{Position: d.At.String(), Reason: d.Err.Error()})
	}
	return list
}

func runImport(ctx context.Context, a *app.App, o *importOptions) error {
	mode := a.CreateIfNamed()
	if _, err := a.FindStore(mode.Has(app.Create)); err != nil {
		return err
	}
	if app.IsDSN(o.path) {
		return importDB(ctx, a, mode, o)
	}
	return importArchive(ctx, a, mode, o)
}

// importArchive imports an archive. If nothing is found, no store is created.
func importArchive(ctx context.Context, a *app.App, mode app.OpenMode, o *importOptions) error {
	source, size := archive.Stream("", a.Stdin), int64(0)
	if o.path != "-" {
		info, err := os.Stat(o.path)
		if err != nil {
			return err
		}
		if info.IsDir() && app.IsStore(o.path) {
			return app.Hint(app.Usagef("%s: it is a store", o.path),
				"'lineage copy' copies it; 'lineage bundle create --all FILE --store %s' and 'lineage bundle import FILE' add it to another store", o.path)
		}
		if info.Mode().IsRegular() {
			size = info.Size()
		}
		source = archive.Path(o.path)
	}
	limits, err := o.limitsOf()
	if err != nil {
		return err
	}
	line := a.Progress("importing", screen.Bytes)
	defer line.Done()
	archived := importer.Options{
		Format: o.format, Formats: Formats(), UserID: o.user, Prefix: o.prefix, Limits: limits,
		Progress: func(p importer.Progress) { line.Show(p.Read, size) },
	}
	// If there is a store, its record of files is needed before anything is read.
	if o.path != "-" {
		opened := false
		err := a.Open(ctx, mode&^app.Create, func(ctx context.Context, s *app.Session) (err error) {
			opened = true
			if archived.Files, err = filesOf(ctx, a, s.Store, o); err != nil {
				return err
			}
			return importInto(ctx, s.App, o, source, archived, line.Done, func(run func(context.Context, *app.Session) error) error { return run(ctx, s) })
		})
		if opened || !mode.Has(app.Create) || !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if archived.Files, err = filesOf(ctx, a, nil, o); err != nil {
			return err
		}
	}
	return importInto(ctx, a, o, source, archived, line.Done, func(run func(context.Context, *app.Session) error) error { return a.Open(ctx, mode, run) })
}

// filesOf returns the record of files that this machine has imported into a store, which may be nil.
func filesOf(ctx context.Context, a *app.App, store *lineage.Store, o *importOptions) (*importer.Files, error) {
	if o.again {
		store = nil
	}
	_, machine, err := a.Machine()
	if err != nil {
		return nil, nil // without a home directory nothing is recorded
	}
	return importer.FilesOf(ctx, store, machine.ID, o.path)
}

// importInto imports an archive into the store that open opens. done is called before anything is printed.
func importInto(ctx context.Context, a *app.App, o *importOptions, source archive.Source, archived importer.Options, done func(), open func(func(context.Context, *app.Session) error) error) error {
	begun, err := importer.Begin(ctx, source, archived)
	if err != nil {
		return sourceFailure(err, o)
	}
	defer begun.Close()
	if begun.Empty() {
		report, err := begun.Into(nil)
		return errors.Join(sourceFailure(err, o), imported(a, &report, err == nil))
	}
	return open(func(ctx context.Context, s *app.Session) error {
		report, err := begun.Into(s.Store)
		done()
		if err == nil {
			packLarge(ctx, s)
		}
		// What was imported before an error is in the store, and is reported.
		return errors.Join(importFailure(err, o), imported(s.App, &report, err == nil))
	})
}

// importAgain is the hint for an interrupted import.
const importAgain = "what was imported before is kept; importing again continues from there"

// importFailure adds a hint to an error after which something may be in the store.
func importFailure(err error, o *importOptions) error {
	if failure := sourceFailure(err, o); failure != err || err == nil {
		return failure
	}
	if how, ok := limitHint(err); ok {
		return app.Hint(err, "%s", how)
	}
	return app.Hint(err, importAgain)
}

// sourceFailure adds a hint to an error about a source without conversations.
func sourceFailure(err error, o *importOptions) error {
	switch {
	case errors.Is(err, archive.ErrUnknownFormat) && string(firstBytes(o.path)) == "SQLite format 3\x00":
		return app.Hint(&app.UsageError{Err: err}, "if it is a database of chats: 'lineage import sqlite:%s'", o.path)
	case errors.Is(err, archive.ErrUnknownFormat) && bundle.Is(firstBytes(o.path)):
		return app.Hint(&app.UsageError{Err: fmt.Errorf("%s: it is a bundle", o.path)}, "'lineage bundle import %s' imports it", o.path)
	case errors.Is(err, archive.ErrUnknownFormat):
		return app.Hint(&app.UsageError{Err: err}, "'lineage help import' lists the formats; --format names one")
	case errors.Is(err, archive.ErrNothingFound):
		return app.Hint(&app.UsageError{Err: fmt.Errorf("%s: %w", o.path, err)}, "'lineage help import' lists the formats; --format names one")
	}
	return err
}

// firstBytes returns the first bytes of a file, nil if it cannot be read.
func firstBytes(path string) []byte {
	f, err := vfs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	begin := make([]byte, 16)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return begin[:n]
}

// imported prints the result of an import.
func imported(a *app.App, report *importer.Report, whole bool) error {
	r := ImportedRecord(report)
	err := printImported(a, r, whole)
	for _, d := range report.Skipped {
		if how, ok := limitHint(d); ok && err != nil {
			return app.Hint(err, "%s", how)
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
	left := screen.Plural(r.SkippedCount, "item") + " left out"
	stored := r.Messages > 0 || r.NewBytes > 0 || r.RepairedCount > 0
	switch {
	case r.SkippedCount > 0 && !stored:
		return fmt.Errorf("nothing could be imported: %s", left)
	case r.SkippedCount > 0:
		return fmt.Errorf("%s: %w", left, app.ErrPartial)
	case r.Messages == 0 && r.RepairedCount > 0:
		return fmt.Errorf("no messages, %s of other records: %w", screen.Plural(r.Conversations, "conversation"), app.ErrPartial)
	}
	return nil
}

func printImported(a *app.App, r *records.Imported, whole bool) error {
	count := func(n, more int64) string {
		if more == n {
			return screen.Count(n)
		}
		return fmt.Sprintf("%s, %s of them new", screen.Count(n), screen.Count(more))
	}
	some := func(n int64, thing, how string) string {
		if n == 0 {
			return ""
		}
		return screen.Plural(n, thing) + " " + how
	}
	err := a.Facts(r, [][2]string{
		{"read as", strings.Join(r.Formats, ", ")},
		{"conversations", count(r.Conversations, r.NewConversations)},
		{"messages", count(r.Messages, r.NewMessages)},
		{"shared", some(r.SharedMessages, "message", "of the conversation that theirs was forked from")},
		{"kept", some(r.Kept, "message", "that the store has, written in another way")},
		{"new bytes", screen.Bytes(r.NewBytes)},
		{"converted", some(r.Converted, "message", "without links to the messages after them")},
		{"opaque", some(r.Opaque, "message", "stored whole")},
		{"unchanged", some(r.Unchanged, "file", "not read again")},
		{"ignored", some(r.IgnoredCount, "file", "of no known format")},
	}...)
	if !a.JSON {
		listSome(a, "ignored", r.Ignored, r.IgnoredCount, maxIgnored)
		listSome(a, "repaired", itemLines(r.Repaired), r.RepairedCount, maxItems)
		listSome(a, "skipped", itemLines(r.Skipped), r.SkippedCount, maxItems)
	}
	if whole {
		err = errors.Join(err, partly(r))
	}
	return err
}

// maxItems and maxIgnored limit the items, and the files in no known format, that are listed for people.
const (
	maxItems   = 20
	maxIgnored = 10
)

func itemLines(items []records.SkippedItem) (lines []string) {
	for _, item := range items {
		lines = append(lines, screen.Line(item.Position)+": "+screen.Line(item.Reason))
	}
	return lines
}

// listSome prints the first ones of count items that were left out or are irregular.
func listSome(a *app.App, what string, lines []string, count int64, most int) {
	for _, line := range lines[:min(len(lines), most)] {
		a.Printf("%s  %s\n", a.Out.Paint(screen.Yellow, what), screen.Line(line))
	}
	if more := count - int64(most); more > 0 {
		a.Printf("%s  … and %s more; --json lists them\n", what, screen.Count(more))
	}
}
