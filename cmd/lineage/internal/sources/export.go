package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/conversation"
	"github.com/lineage-store/lineage/lineage/records"
)

type exportOptions struct {
	what   []string
	format string
	to     string
	all    bool
	given  bool
	prune  bool
	native bool
	title  string
}

func ExportCommand(a *app.App) *cobra.Command {
	o := &exportOptions{}
	c := &cobra.Command{
		Use:   "export [NAME]...",
		Short: "Export conversations for programs or people",
		Long: `Writes threads with all their branches, the history of one context, or with --all the whole store:
the current thread unless something is named. It goes to standard output, or to the file given by
--output, whose extension can determine the format:

  markdown, html      for people. If --output names a folder, one without an
                      ending, html writes a page for each thread there, and
                      index.html, which is searched by titles and prompts
  openai              a line per history: messages for OpenAI's chat
                      completions and fine-tuning
  responses           a line per history: input items for OpenAI's Responses
                      API
  anthropic           a line per history: a system prompt and messages for
                      Anthropic's Messages API
  sharegpt            a list of conversations for training
  branch-files        a folder, in it a folder for each thread with a JSON file
                      for each branch, as 'lineage import' reads them

The formats for programs are what the API accepts, whatever agent or service the messages come from:
every call of a tool is followed by its result, and what the API has no place for is written as text
or left out. What is lost is listed on standard error. With --as-given, openai and sharegpt write
messages byte for byte as they were given, whether an API accepts them or not. Branch files that the
thread has no branch for are reported, and deleted with --prune.

With --native, a session file that 'lineage follow' has read is written byte for byte as it was read
last, also if the agent has deleted it. It is named by its path, the end of its path, or its thread.`,
		Example: `  lineage export > lisbon.md
  lineage export lisbon --output lisbon.html
  lineage export --all --format html --output conversations
  lineage export cheap --format openai
  lineage export --format anthropic --output lisbon.anthropic.jsonl
  lineage export --all --output everything.jsonl --json
  lineage export --all --format branch-files --output sessions
  lineage export --native lisbon.jsonl --output lisbon.jsonl`,
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, args []string) error {
			if o.what = args; o.native {
				if o.format != "" || o.all || o.given || o.prune || o.title != "" {
					return app.Usagef("--native writes a file as it is: only with --output")
				}
				return exportNative(ctx, s, o.what, o.to)
			}
			return runExport(ctx, s, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.format, "format", "", "the format (default: by the ending of --output, or markdown)")
	f.StringVarP(&o.to, "output", "o", app.StdoutName, "the file to write; - is standard output")
	f.BoolVar(&o.all, "all", false, "write every thread")
	f.BoolVar(&o.given, "as-given", false, "write messages as they were given: openai and sharegpt")
	f.BoolVar(&o.prune, "prune", false, "delete branch files that no branch has")
	f.BoolVar(&o.native, "native", false, "write the session file itself")
	f.StringVar(&o.title, "title", "", "the title of a page")
	return c
}

func exportFormats() []string {
	var names []string
	for _, f := range export.Formats() {
		names = append(names, string(f))
	}
	return append(names, branchFilesFormat)
}

// branchFilesFormat is the format of package conversation. It is a folder, not a file.
const branchFilesFormat = "branch-files"

// exportFormat returns the requested format, or the one that the name of the file implies.
func (o *exportOptions) exportFormat() (export.Format, error) {
	if o.format != "" {
		return export.Format(o.format), nil
	}
	switch end := strings.ToLower(filepath.Ext(o.to)); end {
	case ".html", ".htm":
		return export.HTML, nil
	case ".jsonl":
		return export.OpenAI, nil
	case ".json":
		return export.ShareGPT, nil
	case "", ".md", ".markdown", ".txt":
		return export.Markdown, nil
	default:
		return "", app.Hint(app.Usagef("--output %s: the ending %s names no format", o.to, end), "name one with --format, or end the file in .md, .html, .jsonl or .json")
	}
}

func runExport(ctx context.Context, s *app.OpenStore, o *exportOptions) error {
	format, err := o.exportFormat()
	if err != nil {
		return err
	}
	if o.given && format != export.OpenAI && format != export.ShareGPT {
		return app.Usagef("--as-given is for the formats openai and sharegpt")
	}
	if o.prune && format != branchFilesFormat {
		return app.Usagef("--prune is for the format %s", branchFilesFormat)
	}
	var lost show.Losses
	options := export.Options{Title: o.title, AsGiven: o.given}
	if !o.all || len(o.what) > 0 {
		scope, err := exportScope(ctx, s, o)
		if err != nil {
			return err
		}
		options.Scope = scope
	}
	if format == branchFilesFormat {
		return exportBranchFiles(ctx, s, o, options.Scope)
	}
	if o.to != app.StdoutName || !s.Out.Terminal { // else it would be between what is written
		line := s.Progress("exporting", func(n int64) string { return amount.Plural(n, "thread") })
		defer line.Close()
		options.Progress = func(done, total int) {
			if line.Show(int64(done), int64(total)); done == total {
				line.Done()
			}
		}
	}
	if format == export.HTML && o.to != app.StdoutName && filepath.Ext(o.to) == "" {
		return exportSite(ctx, s, o, options)
	}
	r := records.Exported{File: o.to, Format: string(format)}
	err = s.WriteOutput(o.to, func(w io.Writer) error {
		lost = show.Losses{}
		options.Lost = func(l export.Loss) { lost.Add(l.Loss) }
		counted := &countingWriter{w: w}
		err := export.Write(ctx, s.Store, app.ExportTo(counted, format), format, options)
		r.Bytes = counted.n
		return err
	})
	if errors.Is(err, export.ErrUnknownFormat) {
		return app.Hint(&app.UsageError{Err: err}, "formats are %s", strings.Join(exportFormats(), ", "))
	}
	if err != nil {
		return err
	}
	lost.Warn(s.App)
	if o.to == app.StdoutName {
		return nil
	}
	return s.Print(&r, "wrote %s as %s, %s\n", r.File, r.Format, amount.Bytes(r.Bytes))
}

// exportSite writes threads as a folder of pages.
func exportSite(ctx context.Context, s *app.OpenStore, o *exportOptions, options export.Options) error {
	if options.Scope.Context != nil {
		return app.Hint(app.Usagef("a folder of pages has threads, and no context"), "end --output in .html for one page")
	}
	site, err := export.WriteSite(ctx, s.Store, o.to, options)
	if errors.Is(err, lineage.ErrExists) {
		return app.Hint(fmt.Errorf("%s: %w", o.to, err), "name a new folder, or end --output in .html for one page")
	}
	if err != nil {
		return err
	}
	r := records.Exported{File: o.to, Format: string(export.HTML), Bytes: site.Bytes, Conversations: site.Conversations}
	return s.Print(&r, "wrote %s as %s, %s, %s\n", r.File, r.Format, amount.Plural(r.Conversations, "conversation"), amount.Bytes(r.Bytes))
}

// exportBranchFiles writes the branches of threads as files.
func exportBranchFiles(ctx context.Context, s *app.OpenStore, o *exportOptions, scope export.Scope) error {
	if o.to == app.StdoutName || scope.Context != nil {
		return app.Usagef("%s writes the branches of threads into a folder: name it with --output, and no context", branchFilesFormat)
	}
	options := conversation.ExportOptions{Prune: o.prune}
	for _, t := range scope.Threads {
		info, err := t.Info(ctx)
		if err != nil {
			return err
		}
		if info.SourceID == "" {
			return app.Usagef("thread %s has no source id to name its folder", show.ShortID(info.ID.String()))
		}
		options.Sessions = append(options.Sessions, info.SourceID)
	}
	report, err := conversation.Export(ctx, s.Store, o.to, options)
	if err != nil {
		return err
	}
	for _, p := range report.Problems {
		s.Warn("%v", p)
	}
	r := records.Exported{File: o.to, Format: branchFilesFormat, Branches: report.Branches, Pruned: report.Pruned}
	err = s.Print(&r, "wrote %s as %s, %s\n", r.File, r.Format, amount.Plural(r.Branches, "branch"))
	if n := len(report.Problems); err == nil && n > 0 {
		err = fmt.Errorf("%s reported: %w", amount.Plural(n, "problem"), app.ErrPartial)
	}
	return err
}

// exportScope returns what to export: one context, or threads.
func exportScope(ctx context.Context, s *app.OpenStore, o *exportOptions) (export.Scope, error) {
	if o.all {
		return export.Scope{}, app.Usagef("--all writes every thread: name none")
	}
	if len(o.what) == 0 {
		t, err := s.NeedThread()
		return export.Scope{Threads: []*lineage.Thread{t}}, err
	}
	var scope export.Scope
	for _, name := range o.what {
		t, err := s.Refs.Thread(ctx, name)
		if err == nil {
			scope.Threads = append(scope.Threads, t)
			continue
		}
		if !errors.Is(err, lineage.ErrNotFound) {
			return scope, err
		}
		found, err := s.Refs.Context(ctx, name)
		if err != nil {
			return scope, err
		}
		if len(o.what) > 1 {
			return scope, app.Usagef("%q is a context: only one can be written at a time", name)
		}
		scope.Context = found.Context
	}
	return scope, nil
}
