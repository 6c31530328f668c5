package main

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

// destruction is a change that cannot be undone and has not been made.
type destruction struct {
	// what describes the change: "delete thread …". It is empty if there is nothing to delete.
	what string
	do   func(context.Context) error
}

var errDeclined = errors.New("nothing was changed")

// yesFlag adds the flag that answers the question of destroy.
func yesFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVarP(yes, "yes", "y", false, "do it without asking; needed where there is no terminal")
}

// destroy destroys something once a person has agreed, on a terminal or by --yes. find finds it in the store or database
// that open opens. While the person thinks, nothing is open; what has changed when the answer comes stays.
func destroy[T any](
	ctx context.Context, a *app, yes bool, mode openMode, open func(context.Context, openMode, func(context.Context, T) error) error,
	find func(context.Context, T) (*destruction, error),
) error {
	look := func(mode openMode, use func(context.Context, *destruction) error) error {
		return open(ctx, mode, func(ctx context.Context, in T) error {
			found, err := find(ctx, in)
			if err != nil {
				return err
			}
			return use(ctx, found)
		})
	}
	asked := ""
	if !yes {
		err := look(mode|reading, func(_ context.Context, found *destruction) error {
			asked = found.what
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
	return look(mode|changing, func(ctx context.Context, found *destruction) error {
		if !yes && found.what != asked {
			return hint(fmt.Errorf("it would now %s: %w", found.what, lineage.ErrConflict), "it changed while you were asked, and nothing was deleted")
		}
		return found.do(ctx)
	})
}

// agree asks whether to make a change that cannot be undone.
func (a *app) agree(ctx context.Context, what string) error {
	return a.ask(ctx, what, " It cannot be undone.")
}

// ask asks whether to do something.
func (a *app) ask(ctx context.Context, what, more string) error {
	f, ok := a.stdin.(*os.File)
	if a.json || !a.err.Terminal || !ok || !term.IsTerminal(int(f.Fd())) {
		return hint(usagef("this would %s: it needs --yes if there is no terminal to ask at", what), "nothing was changed")
	}
	if err := a.flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.err.W, "This will %s.%s\nContinue? [y/N] ", screen.Line(what), more)
	answer, err := bufio.NewReader(awaited.NewReader(ctx, a.stdin)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
