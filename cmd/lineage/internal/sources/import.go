// Package sources has the commands between a store and other programs: session files of agents, archives, bundles.
package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/bundle"
)

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
	f.StringToStringVar(&o.limits, "limit", nil, "set a limit on what is read, such as files=2000000 or item=1GiB ("+strings.Join(limitNames(), ", ")+")")
	return c
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
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("archive %s: %w", o.path, fs.ErrNotExist)
		}
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
	line := a.Progress("importing", amount.Bytes)
	defer line.Done()
	archived := importer.Options{
		Format: o.format, Formats: Formats(), UserID: o.user, Prefix: o.prefix, Limits: limits,
		Progress: func(p importer.Progress) { line.Show(p.Read, size) },
	}
	// If there is a store, its record of files is needed before anything is read.
	if o.path != "-" {
		opened := false
		err := a.Open(ctx, mode&^app.Create, func(ctx context.Context, s *app.OpenStore) (err error) {
			opened = true
			if archived.Files, err = filesOf(ctx, a, s.Store, o); err != nil {
				return err
			}
			return importInto(ctx, s.App, o, source, archived, line.Done, func(run func(context.Context, *app.OpenStore) error) error { return run(ctx, s) })
		})
		if opened || !mode.Has(app.Create) || !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if archived.Files, err = filesOf(ctx, a, nil, o); err != nil {
			return err
		}
	}
	return importInto(ctx, a, o, source, archived, line.Done, func(run func(context.Context, *app.OpenStore) error) error { return a.Open(ctx, mode, run) })
}

// filesOf returns the record of files that this machine has imported into a store, which may be nil.
func filesOf(ctx context.Context, a *app.App, store *lineage.Store, o *importOptions) (*importer.Files, error) {
	_, machine, err := a.Machine()
	if err != nil {
		return nil, nil // without a home directory nothing is recorded
	}
	files, err := importer.FilesOf(ctx, store, machine.ID, o.path)
	if err == nil && o.again {
		files.ReadAll()
	}
	return files, err
}

// importInto imports an archive into the store that open opens. done is called before anything is printed.
func importInto(ctx context.Context, a *app.App, o *importOptions, source archive.Source, archived importer.Options, done func(), open func(func(context.Context, *app.OpenStore) error) error) error {
	begun, err := importer.Begin(ctx, source, archived)
	if err != nil {
		return sourceFailure(err, o)
	}
	defer begun.Close()
	if begun.Empty() {
		report, err := begun.Into(nil)
		return errors.Join(sourceFailure(err, o), imported(a, &report, err == nil))
	}
	return open(func(ctx context.Context, s *app.OpenStore) error {
		report, err := begun.Into(s.Store)
		done()
		if err == nil {
			packLarge(ctx, s)
		}
		// What was imported before an error is in the store, and is reported.
		return errors.Join(importFailure(err, o), imported(s.App, &report, err == nil))
	})
}

// importFailure adds a hint to an error after which something may be in the store.
func importFailure(err error, o *importOptions) error {
	if failure := sourceFailure(err, o); failure != err || err == nil {
		return failure
	}
	if hint, ok := limitHint(err); ok {
		return app.Hint(err, "%s", hint)
	}
	return app.Hint(err, importAgain)
}

// sourceFailure adds a hint to an error about a source without conversations.
func sourceFailure(err error, o *importOptions) error {
	unknown := errors.Is(err, archive.ErrUnknownFormat)
	if unknown {
		if what, instead := unread(o.path); what != "" {
			return app.Hint(&app.UsageError{Err: fmt.Errorf("%s: %s", o.path, what)}, "%s", instead)
		}
	}
	const magic = 16 // bytes, with which files of both kinds begin
	switch {
	case unknown && (archive.Head{Bytes: firstBytes(o.path, magic)}).IsSQLite():
		return app.Hint(&app.UsageError{Err: err}, "if it is a database of chats: 'lineage import sqlite:%s'", o.path)
	case unknown && bundle.Is(firstBytes(o.path, magic)):
		return app.Hint(&app.UsageError{Err: fmt.Errorf("%s: it is a bundle", o.path)}, "'lineage bundle import %s' imports it", o.path)
	case unknown:
		return app.Hint(&app.UsageError{Err: err}, "'lineage help import' lists the formats; --format names one")
	case errors.Is(err, archive.ErrNothingFound):
		return app.Hint(&app.UsageError{Err: fmt.Errorf("%s: %w", o.path, err)}, "'lineage help import' lists the formats; --format names one")
	}
	return err
}
