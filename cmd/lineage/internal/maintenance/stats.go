package maintenance

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func StatsCommand(a *app.App) *cobra.Command {
	exact := false
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show how much is stored, and the size of copies",
		Long: `Shows how much is stored: the bytes of all messages (logical), the same bytes counted once (unique),
and the size of all files of the store (on disk), with their parts: the journal with its packs, the index,
and other files, such as the search index. 'as copies' is the size of the messages, not compressed, if every
fork and branch held a copy of its history. It is compared with the journal and the index. 'not packed' is the
part of the journal that 'lineage pack' would compress; it is shown while it is worth it.`,
		Example: `  lineage stats
  lineage stats --json`,
		Args: cobra.NoArgs,
		RunE: a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.Session, _ []string) error { return runStats(ctx, s, exact) }),
	}
	c.Flags().BoolVar(&exact, "exact", false, "count the copies by reading every message, however many there are")
	return c
}

// exactUpTo is how many messages are read to count copies unless --exact asks for it.
const exactUpTo = 20_000

func runStats(ctx context.Context, s *app.Session, exact bool) error {
	stats, err := s.Store.Stats(ctx)
	if err != nil {
		return err
	}
	r := records.Stats{Stats: stats, CopiedExact: exact || stats.Usages <= exactUpTo}
	if err := countCopies(ctx, s, &r); err != nil {
		return err
	}
	if s.JSON {
		return s.Emit(&r)
	}
	list := s.List("", "", "")
	row := func(name string, c screen.Cell, note string) {
		list.Row(app.PlainCell(name), c, screen.Cell{Text: note, Style: screen.Dim})
	}
	row("threads", app.CountCell(r.Threads), "")
	row("contexts", app.CountCell(r.Contexts), fmt.Sprintf("%s of them branches", screen.Count(r.Branches)))
	row("messages", app.CountCell(r.Usages), "")
	row("logical", app.SizeCell(r.LogicalBytes), "the bytes of all messages")
	row("unique", app.SizeCell(r.UniqueBytes), "the same bytes counted once"+times(r.LogicalBytes, r.UniqueBytes))
	row("on disk", app.SizeCell(r.StoredBytes), fmt.Sprintf("journal %s, index %s, other files %s",
		screen.Bytes(journalBytes(&r)), screen.Bytes(r.IndexBytes), screen.Bytes(r.OtherBytes)))
	about := ""
	if !r.CopiedExact {
		about = "about "
	}
	row("as copies", app.SizeCell(r.CopiedBytes), fmt.Sprintf("%s%s, if every context held a copy of its history%s",
		about, screen.Plural(r.CopiedMessages, "message"), comparison(&r)))
	if packingDue(&r) {
		row("not packed", app.SizeCell(r.UnpackedBytes), "'lineage pack' compresses it")
	}
	return list.End("")
}

func journalBytes(r *records.Stats) uint64 { return r.StoredBytes - r.IndexBytes - r.OtherBytes }

// minDue is how much has to be unpacked before packing is worth it.
const minDue = 64 << 10

// packingDue reports whether packing would make the store much smaller.
func packingDue(r *records.Stats) bool {
	return r.UnpackedBytes >= minDue && r.UnpackedBytes >= journalBytes(r)/4
}

// comparison compares the copies with the journal and the index. Other files are left out: copies that can be searched
// would need a search index too.
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

// times describes by how much one size exceeds another, if it does.
func times(more, less uint64) string {
	if less == 0 || more < less+less/20 {
		return ""
	}
	return fmt.Sprintf(": %.1f times less", float64(more)/float64(less))
}

// countCopies counts what copies of all histories would hold.
func countCopies(ctx context.Context, s *app.Session, r *records.Stats) error {
	line := s.Progress("counting", func(n int64) string { return screen.Plural(n, "context") })
	defer line.Done()
	var tips []lineage.SpanRef
	done := int64(0)
	for c, err := range s.Store.View().Contexts(ctx, lineage.ThreadID{}, lineage.ContextID{}) {
		if err != nil {
			return err
		}
		length, err := s.Store.Position(ctx, c.Tip)
		if err != nil {
			return err
		}
		r.CopiedMessages += length
		if length > 0 && r.CopiedExact {
			tips = append(tips, c.Tip)
		}
		done++
		line.Show(done, int64(r.Contexts))
	}
	if !r.CopiedExact && r.Spans > 0 {
		r.CopiedBytes = uint64(float64(r.CopiedMessages) / float64(r.Spans) * float64(r.LogicalBytes))
	}
	sizes, err := historySizes(ctx, s, tips)
	if err != nil {
		return err
	}
	for _, tip := range tips {
		r.CopiedBytes += sizes[tip.Run][tip.Seq-1]
	}
	return nil
}

// historySizes returns the bytes of the history up to each span that the histories of some tips have. It reads every
// span once.
func historySizes(ctx context.Context, s *app.Session, tips []lineage.SpanRef) (map[structure.RunID][]uint64, error) {
	reach := make(backend.Reach)
	for _, tip := range tips {
		if err := reach.Follow(ctx, s.Store.View(), tip); err != nil {
			return nil, err
		}
	}
	sizes := make(map[structure.RunID][]uint64)
	for _, e := range reach.Extents() {
		sum := uint64(0)
		if parent := e.Run.Parent; !parent.IsZero() {
			sum = sizes[parent.Run][parent.Seq-1]
		}
		sizes[e.Run.ID] = make([]uint64, e.Last)
		for entry, err := range s.Store.History(ctx, lineage.SpanRef{Run: e.Run.ID, Seq: e.Last}, lineage.Window{Last: e.Last}) {
			if err != nil {
				return nil, err
			}
			sum += uint64(entry.Size)
			sizes[e.Run.ID][entry.Span.Seq-1] = sum
		}
	}
	return sizes, nil
}
