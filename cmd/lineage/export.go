package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/backend"
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

func exportCommand(a *app) *cobra.Command {
	o := &exportOptions{}
	c := &cobra.Command{
		Use:   "export [NAME]...",
		Short: "Export conversations for programs or people",
		Long: `Writes threads with all their branches, the history of one context, or with --all the whole store:
the current thread unless something is named. It goes to standard output, or to the file given by
--output, whose extension can determine the format:

  markdown, html      for people
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
  lineage export cheap --format openai
  lineage export --format anthropic --output lisbon.anthropic.jsonl
  lineage export --all --output everything.jsonl --json
  lineage export --all --format branch-files --output sessions
  lineage export --native lisbon.jsonl --output lisbon.jsonl`,
		RunE: a.on(reading, func(ctx context.Context, s *session, args []string) error {
			if o.what = args; o.native {
				return s.exportNative(ctx, o)
			}
			return runExport(ctx, s, o)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.format, "format", "", "how to write it (default: by the ending of --output, or markdown)")
	f.StringVarP(&o.to, "output", "o", stdoutName, "the file to write; - is standard output")
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

// branchFilesFormat is the format that package conversation writes: a folder and not a file.
const branchFilesFormat = "branch-files"

// exportFormat returns the format that is asked for, or that of the file by its name.
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
		return "", hint(usagef("--output %s: the ending %s names no format", o.to, end), "name one with --format, or end the file in .md, .html, .jsonl or .json")
	}
}

func runExport(ctx context.Context, s *session, o *exportOptions) error {
	format, err := o.exportFormat()
	if err != nil {
		return err
	}
	if o.given && format != export.OpenAI && format != export.ShareGPT {
		return usagef("--as-given is for the formats openai and sharegpt")
	}
	if o.prune && format != branchFilesFormat {
		return usagef("--prune is for the format %s", branchFilesFormat)
	}
	var lost losses
	options := export.Options{Title: o.title, AsGiven: o.given}
	if !o.all || len(o.what) > 0 {
		scope, err := s.exportScope(ctx, o)
		if err != nil {
			return err
		}
		options.Scope = scope
	}
	if format == branchFilesFormat {
		return s.exportBranchFiles(ctx, o, options.Scope)
	}
	r := records.Exported{File: o.to, Format: string(format)}
	err = s.writeOutput(o.to, func(w io.Writer) error {
		lost = losses{}
		options.Lost = func(l export.Loss) { lost.add(l.Loss) }
		counted := &countingWriter{w: w}
		err := export.Write(ctx, s.store, exportTo(counted, format), format, options)
		r.Bytes = counted.n
		return err
	})
	if errors.Is(err, export.ErrUnknownFormat) {
		return hint(&usageError{err}, "formats are %s", strings.Join(exportFormats(), ", "))
	}
	if err != nil {
		return err
	}
	lost.warn(s.app)
	if o.to == stdoutName {
		return nil
	}
	return s.print(&r, "wrote %s as %s, %s\n", r.File, r.Format, screen.Bytes(r.Bytes))
}

// exportBranchFiles writes the branches of threads as files.
func (s *session) exportBranchFiles(ctx context.Context, o *exportOptions, scope export.Scope) error {
	if o.to == stdoutName || scope.Context != nil {
		return usagef("%s writes the branches of threads into a folder: name it with --output, and no context", branchFilesFormat)
	}
	options := conversation.ExportOptions{Prune: o.prune}
	for _, t := range scope.Threads {
		info, err := t.Info(ctx)
		if err != nil {
			return err
		}
		if info.SourceID == "" {
			return usagef("thread %s has no source id to name its folder", shortID(info.ID.String()))
		}
		options.Sessions = append(options.Sessions, info.SourceID)
	}
	report, err := conversation.Export(ctx, s.store, o.to, options)
	if err != nil {
		return err
	}
	for _, p := range report.Problems {
		s.warn("%v", p)
	}
	r := records.Exported{File: o.to, Format: branchFilesFormat, Branches: report.Branches, Pruned: report.Pruned}
	err = s.print(&r, "wrote %s as %s, %s\n", r.File, r.Format, screen.Plural(r.Branches, "branch"))
	if n := len(report.Problems); err == nil && n > 0 {
		err = fmt.Errorf("%s reported: %w", screen.Plural(n, "problem"), errPartial)
	}
	return err
}

// losses counts what a format cannot express, by reason.
type losses struct {
	first []lineage.Loss // the first of each reason
	count map[string]int
}

func (l *losses) add(loss lineage.Loss) {
	if l.count == nil {
		l.count = make(map[string]int)
	}
	if l.count[loss.Reason]++; l.count[loss.Reason] == 1 {
		l.first = append(l.first, loss)
	}
}

// maxLosses limits the reasons that are listed.
const maxLosses = 20

// warn lists what was lost.
func (l *losses) warn(a *app) {
	for i, loss := range l.first {
		if i == maxLosses {
			a.warn("lost: … and %s more", screen.Plural(len(l.first)-i, "reason"))
			return
		}
		where := ""
		if loss.Position > 0 {
			where = fmt.Sprintf("message %d: ", loss.Position)
		}
		if n := l.count[loss.Reason]; n > 1 {
			a.warn("lost: %s%s; and %s more", where, loss.Reason, screen.Count(n-1))
		} else {
			a.warn("lost: %s%s", where, loss.Reason)
		}
	}
}

// exportTo returns the writer of a format to w. Formats that are JSON escape control
// characters wherever they go.
func exportTo(w io.Writer, format export.Format) io.Writer {
	if format.ForPrograms() {
		return screen.NewJSONFilter(w)
	}
	return w
}

// exportScope returns what to export: one context, or threads.
func (s *session) exportScope(ctx context.Context, o *exportOptions) (export.Scope, error) {
	if o.all {
		return export.Scope{}, usagef("--all writes every thread: name none")
	}
	if len(o.what) == 0 {
		t, err := s.needThread()
		return export.Scope{Threads: []*lineage.Thread{t}}, err
	}
	var scope export.Scope
	for _, name := range o.what {
		t, err := s.refs.Thread(ctx, name)
		if err == nil {
			scope.Threads = append(scope.Threads, t)
			continue
		}
		if !errors.Is(err, lineage.ErrNotFound) {
			return scope, err
		}
		found, err := s.refs.Context(ctx, name)
		if err != nil {
			return scope, err
		}
		if len(o.what) > 1 {
			return scope, usagef("%q is a context: only one can be written at a time", name)
		}
		scope.Context = found.Context
	}
	return scope, nil
}

// stdoutName names standard output in place of a file.
const stdoutName = "-"

// writeOutput writes a file, or to standard output. What is printed about a file that was written has no place beside
// data on standard output: with --json that is an error.
func (a *app) writeOutput(name string, write func(io.Writer) error) error {
	if name != stdoutName {
		return writeFile(name, write)
	}
	if a.json {
		return usagef("--json prints a record about the file that is written: name a file, not standard output")
	}
	return write(a.raw())
}

// writeBinary is writeOutput for bytes that a terminal cannot show.
func (a *app) writeBinary(name string, write func(io.Writer) error) error {
	if name == stdoutName && a.out.Terminal {
		return usagef("this is not for a terminal: send it to a file")
	}
	return a.writeOutput(name, write)
}

// writeFile writes a file that has its name only when it is whole. If the state of the store that is
// written expires, it begins again.
func writeFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = backend.Repeat(func() error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return errors.Join(f.Truncate(0), write(f))
	})
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
