package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/awaited"
	"github.com/lineage-store/lineage/lineage"
)

// Destruction is a planned change that cannot be undone.
type Destruction struct {
	// What describes the change: "delete thread …". It is empty if there is nothing to delete.
	What string
	Do   func(context.Context) error
}

var errDeclined = errors.New("nothing was changed")

// YesFlag adds the flag that answers the question of Destroy.
func YesFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVarP(yes, "yes", "y", false, "do it without asking; needed where there is no terminal")
}

// Destroy makes a change that cannot be undone, after a person has agreed on a terminal or with --yes. find returns
// the change, in the store or database that open opens. Nothing is open while the person decides. If something has
// changed by then, nothing is deleted.
func Destroy[T any](
	ctx context.Context, a *App, yes bool, mode OpenMode, open func(context.Context, OpenMode, func(context.Context, T) error) error,
	find func(context.Context, T) (*Destruction, error),
) error {
	withChange := func(mode OpenMode, do func(context.Context, *Destruction) error) error {
		return open(ctx, mode, func(ctx context.Context, opened T) error {
			change, err := find(ctx, opened)
			if err != nil {
				return err
			}
			return do(ctx, change)
		})
	}
	asked := ""
	if !yes {
		err := withChange(mode|Reading, func(_ context.Context, change *Destruction) error {
			asked = change.What
			return nil
		})
		if err != nil {
			return err
		}
		if asked != "" {
			if err := a.agree(ctx, asked); err != nil {
				return err
			}
		}
	}
	return withChange(mode|Changing, func(ctx context.Context, change *Destruction) error {
		if !yes && change.What != asked {
			return Hint(fmt.Errorf("it would now %s: %w", change.What, lineage.ErrConflict), "it changed while you were asked, and nothing was deleted")
		}
		return change.Do(ctx)
	})
}

// agree asks whether to make a change that cannot be undone.
func (a *App) agree(ctx context.Context, what string) error {
	return a.Ask(ctx, what, " It cannot be undone.")
}

// Ask asks whether to do something.
func (a *App) Ask(ctx context.Context, what, more string) error {
	f, ok := a.Stdin.(*os.File)
	if a.JSON || !a.Err.Terminal || !ok || !term.IsTerminal(int(f.Fd())) {
		return Hint(Usagef("this would %s: it needs --yes if there is no terminal to ask at", what), "nothing was changed")
	}
	if err := a.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Err.W, "This will %s.%s\nContinue? [y/N] ", screen.Line(what), more)
	answer, err := bufio.NewReader(awaited.NewReader(ctx, a.Stdin)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
