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
	// what describes the change: "delete thread …".
	what string
	do   func(context.Context) error
}

var errDeclined = errors.New("nothing was changed")

// yesFlag adds the flag that answers the question of destroy.
func yesFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVarP(yes, "yes", "y", false, "do it without asking; needed where there is no terminal")
}

// destroyer finds what a command destroys: in a store, or with inThreads in a store or a database.
type destroyer struct {
	mode      openMode
	inStore   func(context.Context, *session) (*destruction, error)
	inThreads func(context.Context, threads) (*destruction, error)
}

// open opens the store or database and passes on what would be destroyed there.
func (d *destroyer) open(ctx context.Context, a *app, mode openMode, use func(context.Context, *destruction) error) error {
	pass := func(ctx context.Context, found *destruction, err error) error {
		if err != nil {
			return err
		}
		return use(ctx, found)
	}
	if d.inThreads != nil {
		return a.openThreads(ctx, d.mode|mode, func(ctx context.Context, in threads) error {
			found, err := d.inThreads(ctx, in)
			return pass(ctx, found, err)
		})
	}
	return a.open(ctx, d.mode|mode, func(ctx context.Context, s *session) error {
		found, err := d.inStore(ctx, s)
		return pass(ctx, found, err)
	})
}

// destroy destroys something once a person has agreed, on a terminal or by --yes. While
// the person thinks, nothing is open; what has changed when the answer comes stays.
func (a *app) destroy(ctx context.Context, yes bool, d *destroyer) error {
	asked := ""
	if !yes {
		err := d.open(ctx, a, reading, func(_ context.Context, found *destruction) error {
			asked = found.what
			return nil
		})
		if err != nil {
			return err
		}
		if err := a.agree(ctx, asked); err != nil {
			return err
		}
	}
	return d.open(ctx, a, changing, func(ctx context.Context, found *destruction) error {
		if !yes && found.what != asked {
			return hint(fmt.Errorf("it would now %s: %w", found.what, lineage.ErrConflict), "it changed while you were asked, and nothing was deleted")
		}
		return found.do(ctx)
	})
}

// agree asks whether to make a change that cannot be undone.
func (a *app) agree(ctx context.Context, what string) error {
	f, ok := a.stdin.(*os.File)
	if a.json || !a.err.Terminal || !ok || !term.IsTerminal(int(f.Fd())) {
		return hint(usagef("this would %s: it needs --yes if there is no terminal to ask at", what), "nothing was changed")
	}
	if err := a.flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.err.W, "This will %s. It cannot be undone.\nContinue? [y/N] ", screen.Line(what))
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
