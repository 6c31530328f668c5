package maintenance

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
)

func StatsCommand(a *app.App) *cobra.Command {
	exact := false
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show how much is stored, and the size of copies",
		Long: `Shows how much is stored: the bytes of all messages (logical), all content with the same bytes counted once
(unique: messages, and what is kept of session files to give them back), and the size of all files of the store (on disk), with their parts: the journal with its packs, the index,
and other files, such as the search index. 'as copies' is the size of the messages, not compressed, if every
fork and branch held a copy of its history. It is compared with the journal and the index. 'not packed' is the
part of the journal that 'lineage pack' would compress; it is shown while it is worth it.`,
		Example: `  lineage stats
  lineage stats --json`,
		Args: cobra.NoArgs,
		RunE: a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore, _ []string) error { return runStats(ctx, s, exact) }),
	}
	c.Flags().BoolVar(&exact, "exact", false, "count the copies by reading every message, however many there are")
	return c
}

func runStats(ctx context.Context, s *app.OpenStore, exact bool) error {
	line := s.Progress("counting", func(n int64) string { return amount.Plural(n, "context") })
	r, err := records.OfStats(ctx, s.Store, exact, line.Show)
	line.Done()
	if err != nil {
		return err
	}
	if s.JSON {
		return s.Emit(r)
	}
	list := s.List("", "", "")
	row := func(name string, c screen.Cell, note string) {
		list.Row(app.PlainCell(name), c, screen.Cell{Text: note, Style: screen.Dim})
	}
	row("threads", app.CountCell(r.Threads), "")
	row("contexts", app.CountCell(r.Contexts), fmt.Sprintf("%s of them branches", amount.Count(r.Branches)))
	row("messages", app.CountCell(r.Usages), "with what agents record beside them, document revisions and files")
	row("logical", app.SizeCell(r.LogicalBytes), "the bytes of all messages")
	row("unique", app.SizeCell(r.UniqueBytes), uniqueNote(r))
	row("on disk", app.SizeCell(r.StoredBytes), fmt.Sprintf("journal %s, index %s, other files %s",
		amount.Bytes(journalBytes(r)), amount.Bytes(r.IndexBytes), amount.Bytes(r.OtherBytes)))
	about := ""
	if !r.CopiedExact {
		about = "about "
	}
	row("as copies", app.SizeCell(r.CopiedBytes), fmt.Sprintf("%s%s, if every context held a copy of its history%s",
		about, amount.Plural(r.CopiedMessages, "message"), comparison(r)))
	if packingDue(r) {
		row("not packed", app.SizeCell(r.UnpackedBytes), "'lineage pack' compresses it")
	}
	return list.End("")
}

func journalBytes(r *records.Stats) uint64 { return r.StoredBytes - r.IndexBytes - r.OtherBytes }

// minDue is the minimum number of unpacked bytes for which packing is recommended.
const minDue = 64 << 10

// packingDue reports whether packing would make the store much smaller.
func packingDue(r *records.Stats) bool {
	return r.UnpackedBytes >= minDue && r.UnpackedBytes >= journalBytes(r)/4
}

// comparison compares the size of copies with the journal and the index. Other files are left out, because copies
// that can be searched would also need a search index.
func comparison(r *records.Stats) string {
	kept := journalBytes(r) + r.IndexBytes
	switch {
	case r.CopiedBytes == 0 || kept == 0:
		return ""
	case r.CopiedBytes < kept:
		return fmt.Sprintf("; journal and index take %.1f times as much", float64(kept)/float64(r.CopiedBytes))
	}
	return fmt.Sprintf("; journal and index take %.1f times less", float64(r.CopiedBytes)/float64(kept))
}

// uniqueNote explains the unique bytes. What is kept of session files can be more than what forks share.
func uniqueNote(r *records.Stats) string {
	if r.UniqueBytes > r.LogicalBytes {
		return "all content, counted once: messages, and what is kept of session files to give them back"
	}
	return "all content, with the same bytes counted once" + times(r.LogicalBytes, r.UniqueBytes)
}

// times describes by what factor one size exceeds another.
func times(more, less uint64) string {
	if less == 0 || more < less+less/20 {
		return ""
	}
	return fmt.Sprintf(": %.1f times less", float64(more)/float64(less))
}
