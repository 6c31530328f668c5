package conversation

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/amount"
)

// timeFormat is how times are shown, in UTC.
const timeFormat = "2006-01-02 15:04:05 UTC"

// FormatBranches returns all branches for a terminal, the one that was last updated
// first and the current one marked with a star.
func (c *Conversation) FormatBranches(ctx context.Context) (string, error) {
	branches, err := c.Branches(ctx)
	if err != nil {
		return "", err
	}
	var s strings.Builder
	for _, b := range branches {
		mark := "  "
		if b.Current {
			mark = "* "
		}
		fmt.Fprintf(&s, "%s%s\n    ", mark, title(&b))
		if b.ParentID != "" {
			fmt.Fprintf(&s, "from %s at %d · ", printable(b.ParentID), b.ParentMessageIndex)
		}
		fmt.Fprintf(&s, "%s · %s\n", amount.Plural(b.MessageCount, "message"), b.UpdatedAt.UTC().Format(timeFormat))
	}
	return s.String(), nil
}

// FormatTree returns the branches as a tree for a terminal, the current one marked
// with a star.
func (c *Conversation) FormatTree(ctx context.Context) (string, error) {
	roots, err := c.Tree(ctx)
	if err != nil {
		return "", err
	}
	var s strings.Builder
	for _, root := range roots {
		writeTree(&s, root, "", "")
	}
	return s.String(), nil
}

// writeTree writes a branch after one prefix and its children after another.
func writeTree(s *strings.Builder, t *Tree, first, rest string) {
	fmt.Fprintf(s, "%s%s · %s", first, title(&t.Branch), amount.Plural(t.MessageCount, "message"))
	if t.Current {
		s.WriteString(" *")
	}
	s.WriteByte('\n')
	for i, child := range t.Children {
		if i < len(t.Children)-1 {
			writeTree(s, child, rest+"├── ", rest+"│   ")
		} else {
			writeTree(s, child, rest+"└── ", rest+"    ")
		}
	}
}

func title(b *Branch) string { return printable(b.Name) + " [" + printable(b.ID) + "]" }

// printable escapes what a terminal would act on or not show: control and formatting
// characters, line breaks, bytes that are no text.
func printable(s string) string {
	quoted := strconv.Quote(s)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}
