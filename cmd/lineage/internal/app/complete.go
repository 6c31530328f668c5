package app

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

// maxCompletions limits the names that are offered to a shell.
const maxCompletions = 500

// CompleteArguments makes shells complete the arguments of a command. The words for the arguments in the usage
// determine the names.
func (a *App) CompleteArguments(c *cobra.Command) {
	_, arguments, _ := strings.Cut(c.Use, " ")
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(arguments, word) })
	}
	switch {
	case len(c.ValidArgs) > 0:
	case has("THREAD"):
		c.ValidArgsFunction = a.Completion((*OpenStore).ThreadNames)
	case c.Name() == "merge", has("CONTEXT", "BRANCH", "[NAME]", "POSITION", "MESSAGE", "CONTENT", "A [B]", "ALTERNATIVE"), c.Name() == "delete":
		c.ValidArgsFunction = a.Completion(func(s *OpenStore, ctx context.Context) ([]string, error) { return s.Refs.Names(ctx) })
	case c.Name() == "restore-checkpoint":
		c.ValidArgsFunction = a.Completion(func(s *OpenStore, ctx context.Context) ([]string, error) { return s.Refs.Checkpoints(ctx) })
	}
}

// Completion returns a function that offers the names that list returns. A name may have a description after a tab.
// If the store cannot be opened at once, no names are offered.
func (a *App) Completion(list func(*OpenStore, context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a.Wait = 0
		a.Err = screen.Of(io.Discard, a.getenv)
		var names []cobra.Completion
		err := a.Open(c.Context(), Reading, func(ctx context.Context, s *OpenStore) error {
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

// ThreadNames returns the ids of threads, with their titles.
func (s *OpenStore) ThreadNames(ctx context.Context) ([]string, error) {
	var names []string
	for t, err := range s.Store.View().Threads(ctx, lineage.ThreadID{}) {
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
