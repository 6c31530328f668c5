package history

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func AppendCommand(a *app.App) *cobra.Command {
	o := &threads.AppendOptions{}
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
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.TextSet = c.Flags().Changed("text")
			if err := positional(o, args); err != nil {
				return err
			}
			return runAppend(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.Text, "text", "m", "", "the text")
	f.StringVarP(&o.File, "file", "f", "", "read the text from this file; - is standard input")
	f.StringVar(&o.JSONL, "jsonl", "", "a file of messages, a JSON object a line; - is standard input")
	f.StringVarP(&o.Role, "role", "r", "user", "the role: user, assistant, system, tool, …")
	f.StringVar(&o.Name, "name", "", "the name of the speaker or tool")
	f.StringVar(&o.Model, "model", "", "the model that wrote it")
	f.StringVar(&o.User, "user", "", "the user that it is from")
	f.StringVar(&o.MediaType, "type", "", "its media type")
	f.StringVar(&o.ID, "id", "", "an id of your choice, unique in the thread")
	f.Var(&o.Metadata, "metadata", "JSON to keep with it")
	f.StringVar(&o.Document, "document", "", "add a revision of this document instead of a message")
	f.Uint64Var(&o.Revision, "revision", 0, "which revision of the document it is (default the next)")
	f.StringVar(&o.Asset, "asset", "", "add a file under this name instead of a message")
	f.BoolVar(&o.Together, "together", false, "make all messages one step of the history")
	f.StringVar(&o.After, "after", "", "only if this message is the tip of the context")
	c.MarkFlagsMutuallyExclusive("text", "file", "jsonl")
	c.MarkFlagsMutuallyExclusive("document", "asset")
	return c
}

// positional sets the context and the text from the arguments.
func positional(o *threads.AppendOptions, args []string) error {
	elsewhere := o.TextSet || o.File != "" || o.JSONL != ""
	if len(args) == 2 || len(args) == 1 && elsewhere {
		if o.Context, args = args[0], args[1:]; o.Context == "" {
			return app.EmptyName("CONTEXT")
		}
	}
	switch {
	case len(args) == 1 && elsewhere:
		return app.Usagef("the text is given twice")
	case len(args) == 0 && !elsewhere:
		return app.Hint(app.Usagef("nothing to append"), "give the text, or --file, --jsonl or - for standard input")
	case len(args) == 0:
	case args[0] == "-":
		o.File = "-"
	default:
		o.Text = args[0]
	}
	return nil
}

func runAppend(ctx context.Context, a *app.App, o *threads.AppendOptions) error {
	// Input is read before the store is opened, so that no other process has to wait while a person types.
	var in io.ReadCloser
	if from := cmp.Or(o.JSONL, o.File); from != "" {
		var err error
		if in, err = a.Input(ctx, from); err != nil {
			return err
		}
		defer in.Close()
	}
	items, err := items(o, in)
	if err != nil {
		return err
	}
	return threads.Open(ctx, a, app.Begins, func(ctx context.Context, in threads.Keeper) error {
		r, err := in.Append(ctx, o, items)
		if err != nil {
			return err
		}
		err = a.Print(r, "%s\n", strings.Join(r.IDs, "\n"))
		a.Note("added to %s, which has %s now", cmp.Or(r.Branch, show.ShortID(r.Context)), amount.Plural(r.Length, "message"))
		return err
	})
}

// items returns the items to add. in is the input for --jsonl and --file.
func items(o *threads.AppendOptions, in io.Reader) ([]lineage.Item, error) {
	if o.JSONL != "" {
		return lines(o, in)
	}
	item := lineage.Item{
		Kind: lineage.Message, Role: o.Role, Name: o.Name, Type: o.MediaType, SourceID: o.ID, Metadata: o.Metadata,
		Origin: lineage.Origin{ModelID: o.Model, UserID: o.User},
	}
	switch {
	case o.Document != "":
		item.Kind, item.Document, item.Revision = lineage.Document, o.Document, o.Revision
	case o.Asset != "":
		item.Kind, item.Filename = lineage.Asset, o.Asset
	}
	var err error
	if o.File != "" {
		err = fill(o, &item, in)
	} else {
		item.Body = []byte(o.Text)
		err = saysSomething(&item, "the text")
	}
	return []lineage.Item{item}, err
}

// fill sets the content of an item from a file or standard input.
func fill(o *threads.AppendOptions, item *lineage.Item, in io.Reader) error {
	if o.File == "-" && item.Kind == lineage.Message {
		return fillMessage(item, in)
	}
	if item.Type != "" {
		item.Reader = in
		return nil
	}
	head := bufio.NewReaderSize(in, app.HeadSize)
	b, err := head.Peek(app.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", o.File, err)
	}
	item.Type = app.MediaType(cmp.Or(app.TypeOfFile(o.File), app.TypeOfFile(o.Asset)), b)
	item.Reader = head
	return nil
}

// fillMessage sets the text of a message from standard input.
func fillMessage(item *lineage.Item, in io.Reader) error {
	body, err := app.ReadAll("standard input", in, app.MaxInput)
	if err != nil {
		return err
	}
	item.Type = cmp.Or(item.Type, app.MediaType("", body))
	item.Body = body
	if records.IsText(item.Type) {
		// A shell adds a newline that is not part of the message.
		item.Body = []byte(strings.TrimSuffix(strings.TrimSuffix(string(body), "\n"), "\r"))
	}
	return saysSomething(item, "standard input")
}

// saysSomething returns an error for a message with empty text, which usually comes from an unset variable or a
// program that printed nothing. Documents and files may be empty.
func saysSomething(item *lineage.Item, from string) error {
	if item.Kind != lineage.Message || len(item.Body) > 0 {
		return nil
	}
	return app.Hint(app.Usagef("%s is empty: the message would say nothing", from),
		`one that is meant to is a line of --jsonl: {"role":"tool","text":""}`)
}

// lines reads the messages of --jsonl.
func lines(o *threads.AppendOptions, in io.Reader) ([]lineage.Item, error) {
	var items []lineage.Item
	r := bufio.NewScanner(in)
	r.Buffer(make([]byte, 64<<10), app.MaxInput)
	for n := 1; r.Scan(); n++ {
		line := strings.TrimSpace(r.Text())
		if line == "" {
			continue
		}
		item, err := records.ParseItem([]byte(line), records.InputDefaults{Role: o.Role, Model: o.Model, User: o.User})
		if err != nil {
			return nil, app.Usagef("%s, line %d: %v", o.JSONL, n, err)
		}
		items = append(items, item)
	}
	if errors.Is(r.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line of more than %s: %w", o.JSONL, amount.Bytes(app.MaxInput), lineage.ErrTooLarge)
	}
	if r.Err() != nil {
		return nil, fmt.Errorf("read %s: %w", o.JSONL, r.Err())
	}
	if len(items) == 0 {
		return nil, app.Usagef("%s: no messages", o.JSONL)
	}
	return items, nil
}
