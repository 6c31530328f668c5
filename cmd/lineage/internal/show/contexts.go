package show

import (
	"context"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// Created prints a context that a command created. Its id is on a line of its own, for scripts.
func Created(ctx context.Context, s *app.OpenStore, c *lineage.Context) error {
	if s.JSON {
		r, err := records.OfContext(ctx, s.Store, c)
		if err != nil {
			return err
		}
		return s.Emit(r)
	}
	s.Printf("%s\n", c.ID())
	return nil
}

// NameOf returns the name of a context for people: its branch, or its short id.
func NameOf(found *refs.Ref) string {
	switch {
	case found.Branch != "":
		return found.Branch
	case found.Context != nil:
		return refs.Short(found.Context.ID())
	}
	return refs.ShortSpan(found.Span)
}

// Moved prints the tip of a context that a command moved.
func Moved(ctx context.Context, s *app.OpenStore, found *refs.Ref, from lineage.SpanRef) error {
	to, err := found.Context.Tip(ctx)
	if err != nil {
		return err
	}
	length, err := s.Store.Position(ctx, to)
	if err != nil {
		return err
	}
	r := &records.Moved{Context: found.Context.ID().String(), Branch: found.Branch, From: records.SpanID(from), To: records.SpanID(to), Length: length}
	verb := "is"
	if from == to {
		verb = "stays"
	}
	return s.Print(r, "%s %s at message %d, %s\n", NameOf(found), verb, length, refs.ShortSpan(to))
}

// PrintBranch prints a branch that a command created or changed, unless err is set. ofActive describes it if it is
// the active one.
func PrintBranch(a *app.App, b *records.Branch, ofActive string, err error) error {
	if err != nil {
		return err
	}
	what := "branch"
	if b.Active {
		what = ofActive
	}
	return a.Print(b, "%s %s, %s\n", what, screen.Line(b.Name), amount.Plural(b.Length, "message"))
}

// Sent prints a message that one context sent to another.
func Sent(s *app.OpenStore, from, to string, ref lineage.SpanRef) error {
	err := s.Print(&records.Sent{From: from, To: to, ID: ref.String()}, "%s\n", ref)
	s.Note("added to context %s", to)
	return err
}
