package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/awaited"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type appendOptions struct {
	context  string
	text     string
	textSet  bool
	file     string
	jsonl    string
	asset    string
	document string
	revision uint64
	role     string
	name     string
	model    string
	user     string
	mime     string
	id       string
	metadata jsonFlag
	together bool
	after    string
}

func appendCommand(a *app) *cobra.Command {
	o := &appendOptions{}
	var c *cobra.Command
	c = &cobra.Command{
		Use:     "append [CONTEXT] [TEXT]",
		Aliases: []string{"extend"},
		Short:   "Add messages to a context",
		Long: `Adds to the history of a context, the active branch unless another is named. One argument
is the text; of two the first is the context. The text can also come from
--text, from a file (--file), from JSON objects, one a line (--jsonl), or from standard
input (-). A store without a thread gets one. A text that is empty is refused, except in --jsonl.
The type of a file is detected from its name and its first bytes, unless --type gives it.

A line of --jsonl has role and text (or content, which may be any JSON), and
optionally name, id, model, user, media_type, metadata and created_at. A line with other
members and no text is a message of a provider's format, with calls of tools for example, and
is kept as it is. All lines are added, or none, so they are in memory together; for large files
use 'lineage import'.`,
		Example: `  lineage append "And where do we eat?"
  lineage append cheap "Take the bus." --role assistant --model small-1
  echo "Is it warm in May?" | lineage append -
  printf '{"role":"user","text":"a"}\n{"role":"assistant","text":"b"}\n' | lineage append --jsonl -`,
		Args: cobra.MaximumNArgs(2),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.textSet = c.Flags().Changed("text")
			if err := o.positional(args); err != nil {
				return err
			}
			return runAppend(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.text, "text", "m", "", "the text")
	f.StringVarP(&o.file, "file", "f", "", "read the text from this file; - is standard input")
	f.StringVar(&o.jsonl, "jsonl", "", "a file of messages, a JSON object a line; - is standard input")
	f.StringVarP(&o.role, "role", "r", "user", "the role: user, assistant, system, tool, …")
	f.StringVar(&o.name, "name", "", "the name of the speaker or tool")
	f.StringVar(&o.model, "model", "", "the model that wrote it")
	f.StringVar(&o.user, "user", "", "the user that it is from")
	f.StringVar(&o.mime, "type", "", "its media type")
	f.StringVar(&o.id, "id", "", "an id of your choice, unique in the thread")
	f.Var(&o.metadata, "metadata", "JSON to keep with it")
	f.StringVar(&o.document, "document", "", "add a revision of this document instead of a message")
	f.Uint64Var(&o.revision, "revision", 0, "which revision of the document it is (default the next)")
	f.StringVar(&o.asset, "asset", "", "add a file under this name instead of a message")
	f.BoolVar(&o.together, "together", false, "make all messages one step of the history")
	f.StringVar(&o.after, "after", "", "only if this message is the tip of the context")
	c.MarkFlagsMutuallyExclusive("text", "file", "jsonl")
	c.MarkFlagsMutuallyExclusive("document", "asset")
	return c
}

// positional sets the context and the text from the arguments.
func (o *appendOptions) positional(args []string) error {
	elsewhere := o.textSet || o.file != "" || o.jsonl != ""
	if len(args) == 2 || len(args) == 1 && elsewhere {
		if o.context, args = args[0], args[1:]; o.context == "" {
			return emptyName("CONTEXT")
		}
	}
	switch {
	case len(args) == 1 && elsewhere:
		return usagef("the text is given twice")
	case len(args) == 0 && !elsewhere:
		return hint(usagef("nothing to append"), "give the text, or --file, --jsonl or - for standard input")
	case len(args) == 0:
	case args[0] == "-":
		o.file = "-"
	default:
		o.text = args[0]
	}
	return nil
}

func runAppend(ctx context.Context, a *app, o *appendOptions) error {
	// Input is read before the store is opened, so that no process waits while it is typed.
	var in io.ReadCloser
	if from := cmp.Or(o.jsonl, o.file); from != "" {
		var err error
		if in, err = a.input(ctx, from); err != nil {
			return err
		}
		defer in.Close()
	}
	items, err := o.items(in)
	if err != nil {
		return err
	}
	return a.openThreads(ctx, begins, func(ctx context.Context, in threads) error {
		r, err := in.append(ctx, o, items)
		if err != nil {
			return err
		}
		err = a.print(r, "%s\n", strings.Join(r.IDs, "\n"))
		a.note("added to %s, which has %s now", cmp.Or(r.Branch, shortID(r.Context)), screen.Plural(r.Length, "message"))
		return err
	})
}

// append implements threads.
func (s *session) append(ctx context.Context, o *appendOptions, items []lineage.Item) (*records.Appended, error) {
	if s.thread == nil && o.context == "" {
		if err := s.firstThread(ctx, s, items); err != nil {
			return nil, err
		}
	}
	found, err := s.refs.Context(ctx, o.context)
	if err != nil {
		return nil, err
	}
	if o.together {
		items = []lineage.Item{lineage.Together(items...)}
	}
	extend := found.Context.Extend
	if o.after != "" {
		after, err := s.refs.Find(ctx, o.after)
		if err != nil {
			return nil, err
		}
		extend = func(ctx context.Context, items ...lineage.Item) ([]lineage.SpanRef, error) {
			return found.Context.ExtendFrom(ctx, after.Span, items...)
		}
	}
	added, err := extend(ctx, items...)
	if err != nil {
		return nil, err
	}
	r := &records.Appended{Context: found.Context.ID().String(), Branch: found.Branch}
	if found.Thread != nil {
		r.Thread = found.Thread.ID().String()
	}
	for _, ref := range added {
		r.IDs = append(r.IDs, ref.String())
	}
	r.Tip = r.IDs[len(r.IDs)-1]
	r.Length, err = s.store.Position(ctx, added[len(added)-1])
	return r, err
}

// firstThread creates the thread of a store or database that has none, titled by how it begins.
func (a *app) firstThread(ctx context.Context, in threads, items []lineage.Item) error {
	r, err := in.createThread(ctx, &threadCreateOptions{title: screen.Cut(screen.Line(string(items[0].Body)), 60)})
	if err == nil {
		a.note("created the thread %q", r.Title)
	}
	return err
}

// items returns the items to add. in is the input for --jsonl and --file.
func (o *appendOptions) items(in io.Reader) ([]lineage.Item, error) {
	if o.jsonl != "" {
		return o.lines(in)
	}
	item := lineage.Item{
		Kind: lineage.Message, Role: o.role, Name: o.name, Type: o.mime, SourceID: o.id, Metadata: o.metadata,
		Origin: lineage.Origin{ModelID: o.model, UserID: o.user},
	}
	switch {
	case o.document != "":
		item.Kind, item.Document, item.Revision = lineage.Document, o.document, o.revision
	case o.asset != "":
		item.Kind, item.Filename = lineage.Asset, o.asset
	}
	var err error
	if o.file != "" {
		err = o.fill(&item, in)
	} else {
		item.Body = []byte(o.text)
		err = saysSomething(&item, "the text")
	}
	return []lineage.Item{item}, err
}

// fill sets the content of an item from a file or standard input.
func (o *appendOptions) fill(item *lineage.Item, in io.Reader) error {
	if o.file == "-" && item.Kind == lineage.Message {
		return fillMessage(item, in)
	}
	if item.Type != "" {
		item.Reader = in
		return nil
	}
	head := bufio.NewReaderSize(in, headSize)
	b, err := head.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", o.file, err)
	}
	item.Type = mediaType(cmp.Or(typeOfFile(o.file), typeOfFile(o.asset)), b)
	item.Reader = head
	return nil
}

// fillMessage sets the text of a message from standard input.
func fillMessage(item *lineage.Item, in io.Reader) error {
	body, err := readAll("standard input", in, maxInput)
	if err != nil {
		return err
	}
	item.Type = cmp.Or(item.Type, mediaType("", body))
	item.Body = body
	if records.IsText(item.Type) {
		// A shell adds a newline, which is not a part of the message.
		item.Body = []byte(strings.TrimSuffix(strings.TrimSuffix(string(body), "\n"), "\r"))
	}
	return saysSomething(item, "standard input")
}

// saysSomething refuses a message whose text is empty: it comes from a variable that is not
// set, or a program that printed nothing. Documents and files may be empty.
func saysSomething(item *lineage.Item, from string) error {
	if item.Kind != lineage.Message || len(item.Body) > 0 {
		return nil
	}
	return hint(usagef("%s is empty: the message would say nothing", from),
		`one that is meant to is a line of --jsonl: {"role":"tool","text":""}`)
}

// maxInput bounds a message that is read whole, and a line of --jsonl.
const maxInput = 256 << 20

// readAll reads an input that may have limit bytes.
func readAll(name string, in io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%s: more than %s: %w", name, screen.Bytes(limit), lineage.ErrTooLarge)
	}
	return body, nil
}

// input opens a named file, or standard input. Reads of a terminal or pipe end with the context.
func (a *app) input(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(awaited.NewReader(ctx, a.stdin)), nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, usagef("%s: is a folder", name)
	}
	return awaited.Open(ctx, name)
}

// lines reads the messages of --jsonl.
func (o *appendOptions) lines(in io.Reader) ([]lineage.Item, error) {
	var items []lineage.Item
	r := bufio.NewScanner(in)
	r.Buffer(make([]byte, 64<<10), maxInput)
	for n := 1; r.Scan(); n++ {
		line := strings.TrimSpace(r.Text())
		if line == "" {
			continue
		}
		item, err := records.ParseItem([]byte(line), records.InputDefaults{Role: o.role, Model: o.model, User: o.user})
		if err != nil {
			return nil, usagef("%s, line %d: %v", o.jsonl, n, err)
		}
		items = append(items, item)
	}
	if errors.Is(r.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line of more than %s: %w", o.jsonl, screen.Bytes(maxInput), lineage.ErrTooLarge)
	}
	if r.Err() != nil {
		return nil, fmt.Errorf("read %s: %w", o.jsonl, r.Err())
	}
	if len(items) == 0 {
		return nil, usagef("%s: no messages", o.jsonl)
	}
	return items, nil
}
