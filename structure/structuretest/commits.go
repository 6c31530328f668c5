package structuretest

import (
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// PlainRecords generates records whose binary form is independent of other records:
// all except blocks, chunks, spans and tips.
func PlainRecords() *rapid.Generator[structure.Record] {
	return rapid.OneOf(
		recordsOf(Threads()), recordsOf(Contexts()), recordsOf(Runs()), recordsOf(SpanSets()), recordsOf(Branches()),
		recordsOf(Checkpoints()), recordsOf(Summaries()), recordsOf(Reflogs()), recordsOf(Deletions()), recordsOf(Cuts()), recordsOf(Values()), recordsOf(Remnants()),
	)
}

func recordsOf[R structure.Record](g *rapid.Generator[R]) *rapid.Generator[structure.Record] {
	return rapid.Map(g, func(r R) structure.Record { return r })
}

// Commits generates commits without a number. Their spans use blocks of the same
// commit, other blocks, and content of earlier spans; blocks repeat, spans follow
// each other and tips follow spans.
func Commits() *rapid.Generator[*structure.Commit] {
	return rapid.Custom(func(t *rapid.T) *structure.Commit {
		d := draft{commit: &structure.Commit{Time: Times().Draw(t, "time")}}
		for range rapid.IntRange(0, 12).Draw(t, "records") {
			d.add(t)
		}
		return d.commit
	})
}

// draft is a commit under construction.
type draft struct {
	commit *structure.Commit
	blocks []*structure.Block
	named  []content.ID // by blocks and spans
	last   structure.SpanRef
}

func (d *draft) add(t *rapid.T) {
	var r structure.Record
	switch rapid.IntRange(0, 9).Draw(t, "record") {
	case 0, 1:
		b := Blocks().Draw(t, "block")
		d.blocks, d.named = append(d.blocks, b), append(d.named, b.ID)
		r = b
	case 2:
		b := Blocks().Draw(t, "block")
		if len(d.blocks) > 0 {
			b = rapid.SampledFrom(d.blocks).Draw(t, "block again")
		}
		d.blocks, d.named = append(d.blocks, b), append(d.named, b.ID)
		r = b
	case 3, 4, 5:
		s := Spans(d.content()).Draw(t, "span")
		if d.last.Seq != 0 && d.last.Seq+1 != 0 && rapid.Bool().Draw(t, "follows") {
			s.Ref = structure.SpanRef{Run: d.last.Run, Seq: d.last.Seq + 1}
		}
		d.last = s.Ref
		for i := range s.Usages {
			for _, id := range s.Usages[i].Named(nil) {
				d.named = append(d.named, *id)
			}
		}
		r = s
	case 6:
		tip := Tips().Draw(t, "tip")
		if rapid.Bool().Draw(t, "of the last span") {
			tip.Span = d.last
		}
		r = tip
	case 7:
		r = Chunks().Draw(t, "chunk")
	default:
		r = PlainRecords().Draw(t, "plain")
	}
	d.commit.Records = append(d.commit.Records, r)
}

// content generates ids, including those that the commit names so far.
func (d *draft) content() *rapid.Generator[content.ID] {
	if len(d.named) == 0 {
		return ContentIDs()
	}
	return rapid.OneOf(rapid.SampledFrom(d.named), ContentIDs())
}
