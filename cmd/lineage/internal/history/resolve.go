package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/records"
)

type resolveOptions struct {
	last   uint64
	budget int
	format string
}

func ResolveCommand(a *app.App) *cobra.Command {
	o := &resolveOptions{}
	c := &cobra.Command{
		Use:   "resolve [CONTEXT]",
		Short: "Print the messages to send to a model",
		Long: `Prints the messages of a context to send to a model: the system prompt in force and all of the history,
the last messages (--last), or what fits in a budget of tokens (--budget), with summaries
standing in for what does not fit. Neither begins with the result of a tool whose call is left
out. --format renders it as text, xml, markdown, toml or toon, or writes it as the request of an API:
openai (chat completions), responses (OpenAI) or anthropic (Messages). What the API has no place for
is listed on standard error.`,
		Example: `  lineage resolve --budget 2000
  lineage resolve cheap --last 2 --format xml
  lineage resolve --format anthropic
  lineage resolve --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.OnContext(app.Reading, func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
			return runResolve(ctx, s, found, o)
		}),
	}
	f := c.Flags()
	f.Uint64VarP(&o.last, "last", "n", 0, "at most the last so many messages")
	f.IntVar(&o.budget, "budget", 0, "the maximum number of tokens, by estimate")
	f.StringVar(&o.format, "format", "text", "text, xml, markdown, toml, toon, openai, responses or anthropic")
	return c
}

// renderers maps formats to renderers. Text is printed message by message.
var renderers = map[string]engine.Renderer{
	"text": nil, "xml": engine.XMLRenderer{}, "markdown": engine.MarkdownRenderer{}, "toml": engine.TOMLRenderer{}, "toon": engine.TOONRenderer{},
}

// requests lists the formats that are API dialects.
var requests = []message.Dialect{message.OpenAI, message.Responses, message.Anthropic}

func runResolve(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *resolveOptions) error {
	renderer, known := renderers[o.format]
	request := slices.Contains(requests, message.Dialect(o.format))
	if !known && !request {
		return app.Usagef("--format %q: must be text, xml, markdown, toml, toon, openai, responses or anthropic", o.format)
	}
	if o.budget < 0 {
		return app.Usagef("--budget %d: must be 0 or more", o.budget)
	}
	if s.JSON && o.format != "text" {
		return app.Usagef("--json prints records: --format %s is not for it", o.format)
	}
	options := lineage.ResolveOptions{Last: o.last, Budget: o.budget}
	if request {
		return printRequest(ctx, s, found.Context, message.Dialect(o.format), options)
	}
	resolved, err := found.Context.Resolve(ctx, options)
	if err != nil {
		return err
	}
	switch {
	case s.JSON:
	case renderer != nil:
		return renderResolved(ctx, s, resolved, renderer)
	case resolved.SystemPrompt != "":
		s.Printf("%s\n    %s\n\n", s.Out.Paint(screen.OfRole("system")+";1", "system prompt"), screen.Line(resolved.SystemPrompt))
	}
	for i := range resolved.Parts {
		if err := printPart(ctx, s, &resolved.Parts[i]); err != nil {
			return err
		}
	}
	if s.JSON {
		return s.Emit(&records.Resolved{
			SystemPrompt: resolved.SystemPrompt, Model: resolved.Model, Parts: len(resolved.Parts), Tokens: resolved.Tokens,
			Omitted: resolved.Omitted, Digest: resolved.Digest.String(),
		})
	}
	if resolved.Omitted > 0 && o.budget > 0 {
		s.Warn("%s did not fit and have no summary that fits; 'lineage summarize' creates summaries",
			amount.Plural(resolved.Omitted, "message"))
	}
	s.Note("about %s tokens", amount.Count(resolved.Tokens))
	return nil
}

// printPart prints a message to send, or a summary that replaces several.
func printPart(ctx context.Context, s *app.OpenStore, p *lineage.Part) error {
	if p.Entry == nil {
		r := records.Part{Tokens: p.Tokens, Summary: records.NewSummary(p.Summary)}
		return s.Print(&r, "%s\n%s\n", s.Out.Paint(screen.Purple+";1", fmt.Sprintf("%d-%d  summary", r.Summary.First, r.Summary.Last)), s.Indented("    ", r.Summary.Text))
	}
	m, err := show.Message(ctx, s, p.Entry, records.MaxText)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.Emit(&records.Part{Tokens: p.Tokens, Message: &m.Message})
	}
	return show.PrintMessage(s.App, m, nil)
}

// printRequest writes a context as a request for an API.
func printRequest(ctx context.Context, s *app.OpenStore, c *lineage.Context, to message.Dialect, o lineage.ResolveOptions) error {
	request, err := c.Request(ctx, to, o)
	if err != nil {
		return err
	}
	var lost show.Losses
	for _, l := range request.Losses {
		lost.Add(l)
	}
	lost.Warn(s.App)
	_, err = fmt.Fprintf(screen.NewJSONSanitizer(s.Raw()), "%s\n", request.Body())
	return err
}

// renderResolved writes everything as fragments, one per part.
func renderResolved(ctx context.Context, s *app.OpenStore, resolved *lineage.Resolved, renderer engine.Renderer) error {
	var fragments []engine.Fragment
	if resolved.SystemPrompt != "" {
		fragments = append(fragments, engine.New("system_prompt", resolved.SystemPrompt))
	}
	var messages []any
	for i := range resolved.Parts {
		p := &resolved.Parts[i]
		if p.Entry == nil {
			messages = append(messages, engine.Object{{Name: "summary", Value: p.Summary.Text}})
			continue
		}
		text := p.Text()
		if p.Entry.Erased {
			text = "(erased)"
		}
		messages = append(messages, engine.Object{{Name: "role", Value: show.Speaker(p.Entry)}, {Name: "text", Value: text}})
	}
	if len(messages) > 0 {
		fragments = append(fragments, engine.New("messages", messages))
	}
	text, err := renderer.Render(fragments...)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	_, err = fmt.Fprintln(s.Raw(), text)
	return err
}
