package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

// maxCompletions bounds how many names are offered to a shell.
const maxCompletions = 500

// completeArguments makes shells complete the arguments of a command, by the words
// for them in the usage.
func (a *app) completeArguments(c *cobra.Command) {
	_, arguments, _ := strings.Cut(c.Use, " ")
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(arguments, word) })
	}
	switch {
	case len(c.ValidArgs) > 0:
	case has("THREAD"):
		c.ValidArgsFunction = a.completion((*session).threadNames)
	case c.Name() == "merge", has("CONTEXT", "BRANCH", "[NAME]", "POSITION", "MESSAGE", "CONTENT", "A [B]", "ALTERNATIVE"), c.Name() == "delete":
		c.ValidArgsFunction = a.completion(func(s *session, ctx context.Context) ([]string, error) { return s.refs.Names(ctx) })
	case c.Name() == "restore-checkpoint":
		c.ValidArgsFunction = a.completion(func(s *session, ctx context.Context) ([]string, error) { return s.refs.Checkpoints(ctx) })
	}
}

// completion offers the names that list returns, each with a description after a tab or without one. A store that cannot
// be opened at once has none.
func (a *app) completion(list func(*session, context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a.wait = 0
		a.err = screen.Of(io.Discard, a.getenv)
		var names []cobra.Completion
		err := a.open(c.Context(), reading, func(ctx context.Context, s *session) error {
			all, err := list(s, ctx)
			for _, name := range all {
				value, _, _ := strings.Cut(name, "\t")
				if strings.HasPrefix(value, begun) && len(names) < maxCompletions && screen.Line(value) == value {
					names = append(names, name)
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// threadNames returns the ids of threads, with their titles.
func (s *session) threadNames(ctx context.Context) ([]string, error) {
	var names []string
	for t, err := range s.store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		name := refs.Short(t.ID)
		if t.SourceID != "" && !strings.Contains(t.SourceID, "\t") {
			name = t.SourceID
		}
		if t.Title != "" {
			name = cobra.CompletionWithDesc(name, screen.Cut(screen.Line(t.Title), 60))
		}
		names = append(names, name)
		if len(names) == maxCompletions*10 {
			break
		}
	}
	return names, nil
}
