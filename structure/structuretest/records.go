package structuretest

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Blocks generates blocks with their body or with the root of its chunks.
func Blocks() *rapid.Generator[*structure.Block] {
	return rapid.Custom(func(t *rapid.T) *structure.Block {
		b := &structure.Block{Block: content.Block{
			Type: MediaTypes().Draw(t, "type"), Origin: BlockOrigins().Draw(t, "origin"), CreatedAt: Times().Draw(t, "created"),
		}}
		if rapid.Bool().Draw(t, "cut") {
			b.Tree.Key = content.KeyOf(ByteStrings().Draw(t, "root"))
			b.Tree.Height = rapid.Byte().Draw(t, "height")
			b.Tree.Size = rapid.Int64Range(1, 1<<62).Draw(t, "size")
			b.ID, b.Size = ContentIDs().Draw(t, "id"), b.Tree.Size
			return b
		}
		if rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
			b.ID, b.Size = ContentIDs().Draw(t, "id"), rapid.Int64Range(1, 1<<62).Draw(t, "size")
			return b
		}
		b.Body = ByteStrings().Draw(t, "body")
		b.ID, b.Size = content.Sum(b.Body), int64(len(b.Body))
		return b
	})
}

// Chunks generates chunks.
func Chunks() *rapid.Generator[*structure.Chunk] {
	return rapid.Map(ByteStrings(), func(b []byte) *structure.Chunk {
		return &structure.Chunk{Key: content.KeyOf(b), Bytes: b}
	})
}

// Threads generates threads.
func Threads() *rapid.Generator[*structure.Thread] {
	return rapid.Custom(func(t *rapid.T) *structure.Thread {
		return &structure.Thread{
			ID:          OptionalIDs[structure.ThreadID]().Draw(t, "id"),
			SourceID:    Texts().Draw(t, "source id"),
			UserID:      Texts().Draw(t, "user"),
			Title:       Texts().Draw(t, "title"),
			Metadata:    OptionalByteStrings().Draw(t, "metadata"),
			Active:      OptionalIDs[structure.ContextID]().Draw(t, "active"),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Keeps:       rapid.Bool().Draw(t, "keeps"),
			Named:       rapid.Uint64().Draw(t, "named"),
			CreatedAt:   Times().Draw(t, "created"),
			UpdatedAt:   Times().Draw(t, "updated"),
		}
	})
}

// Contexts generates contexts.
func Contexts() *rapid.Generator[*structure.Context] {
	return rapid.Custom(func(t *rapid.T) *structure.Context {
		return &structure.Context{
			ID:        OptionalIDs[structure.ContextID]().Draw(t, "id"),
			Thread:    OptionalIDs[structure.ThreadID]().Draw(t, "thread"),
			Parent:    OptionalIDs[structure.ContextID]().Draw(t, "parent"),
			Base:      OptionalSpanRefs().Draw(t, "base"),
			Tip:       OptionalSpanRefs().Draw(t, "tip"),
			Set:       OptionalIDs[structure.SpanSetID]().Draw(t, "set"),
			Overrides: overrides(t),
			Metadata:  OptionalByteStrings().Draw(t, "metadata"),
			CreatedAt: Times().Draw(t, "created"),
		}
	})
}

func overrides(t *rapid.T) structure.Overrides {
	return structure.Overrides{
		SystemPrompt: rapid.Ptr(Texts(), true).Draw(t, "system prompt"),
		Model:        rapid.Ptr(Texts(), true).Draw(t, "model"),
		JSON:         OptionalByteStrings().Draw(t, "overrides"),
	}
}

// Remnants generates remnants of contexts.
func Remnants() *rapid.Generator[*structure.Remnant] {
	return rapid.Custom(func(t *rapid.T) *structure.Remnant {
		return &structure.Remnant{
			ID:        OptionalIDs[structure.ContextID]().Draw(t, "id"),
			Parent:    OptionalIDs[structure.ContextID]().Draw(t, "parent"),
			Overrides: overrides(t),
		}
	})
}

// Tips generates moves of a context.
func Tips() *rapid.Generator[*structure.Tip] {
	return rapid.Custom(func(t *rapid.T) *structure.Tip {
		return &structure.Tip{
			Context: OptionalIDs[structure.ContextID]().Draw(t, "context"), Span: OptionalSpanRefs().Draw(t, "span"),
		}
	})
}

// Runs generates runs.
func Runs() *rapid.Generator[*structure.Run] {
	return rapid.Custom(func(t *rapid.T) *structure.Run {
		r := &structure.Run{
			ID: OptionalIDs[structure.RunID]().Draw(t, "id"), Parent: OptionalSpanRefs().Draw(t, "parent"),
		}
		if rapid.Bool().Draw(t, "in a thread") {
			r.Home = structure.Home{Thread: IDs[structure.ThreadID]().Draw(t, "thread"), Incarnation: rapid.Uint64().Draw(t, "incarnation")}
		}
		return r
	})
}

// Usages generates usages of the given content.
func Usages(of *rapid.Generator[content.ID]) *rapid.Generator[structure.Usage] {
	roles := rapid.OneOf(rapid.SampledFrom([]string{"user", "assistant", "system", "tool", "developer", "function"}), Texts())
	return rapid.Custom(func(t *rapid.T) structure.Usage {
		u := structure.Usage{
			Kind:      rapid.SampledFrom([]structure.UsageKind{structure.MessageUsage, structure.DocumentUsage, structure.AssetUsage, structure.PartUsage}).Draw(t, "usage kind"),
			Content:   of.Draw(t, "content"),
			CreatedAt: Times().Draw(t, "created"),
		}
		switch u.Kind {
		case structure.MessageUsage:
			u.Role, u.Name = roles.Draw(t, "role"), roles.Draw(t, "name")
		case structure.DocumentUsage:
			u.Document, u.Revision = Texts().Draw(t, "document"), rapid.Uint64().Draw(t, "revision")
		case structure.AssetUsage:
			u.Filename = Texts().Draw(t, "filename")
		case structure.PartUsage:
			u.Name = roles.Draw(t, "name")
		}
		if u.Kind == structure.MessageUsage || u.Kind == structure.PartUsage {
			u.Piece = structure.PieceKind(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 5)).Draw(t, "piece"))
		}
		if rapid.Bool().Draw(t, "bare") {
			return u
		}
		u.Type = MediaTypes().Draw(t, "type")
		u.By = Attributions().Draw(t, "by")
		u.Origin = rapid.Ptr(BlockOrigins(), true).Draw(t, "origin")
		if u.SourceID = Texts().Draw(t, "source id"); u.SourceID != "" {
			u.Lookup = rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, 2, 300}), rapid.Uint64()).Draw(t, "lookup")
		}
		if rapid.IntRange(0, 3).Draw(t, "metadata aside") == 0 {
			u.MetadataContent = of.Draw(t, "metadata content")
		} else {
			u.Metadata = OptionalByteStrings().Draw(t, "metadata")
		}
		if u.Kind == structure.MessageUsage {
			if u.Opaque = rapid.IntRange(0, 3).Draw(t, "opaque") == 0; !u.Opaque {
				u.Form = of.Draw(t, "form")
			}
		}
		if !u.Form.IsZero() && rapid.Bool().Draw(t, "extras") {
			times := rapid.SampledFrom([][]byte{ // as messages spell them, or nearly so
				strconv.AppendInt(nil, u.CreatedAt.Unix(), 10), strconv.AppendInt(nil, u.CreatedAt.UnixMilli(), 10), strconv.AppendInt([]byte("0"), u.CreatedAt.Unix(), 10),
				u.CreatedAt.AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), u.CreatedAt.AppendFormat(nil, `"2006-01-02T15:04:05Z"`),
			})
			u.Extras = rapid.SliceOfN(rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 12), times), 1, 5).Draw(t, "extras")
		}
		return u
	})
}

// Spans generates spans whose usages are of the given content.
func Spans(of *rapid.Generator[content.ID]) *rapid.Generator[*structure.Span] {
	return rapid.Custom(func(t *rapid.T) *structure.Span {
		s := &structure.Span{
			Ref:    SpanRefs().Draw(t, "ref"),
			Set:    OptionalIDs[structure.SpanSetID]().Draw(t, "set"),
			Usages: rapid.SliceOfN(Usages(of), 1, 4).Draw(t, "usages"),
		}
		for i := range s.Usages {
			part := s.Usages[i].Kind == structure.PartUsage
			if part && (i == 0 || s.Usages[i-1].Kind != structure.MessageUsage && s.Usages[i-1].Kind != structure.PartUsage) {
				s.Usages[i].Kind = structure.MessageUsage // parts follow their message
			}
		}
		return s
	})
}

// SpanSets generates span sets.
func SpanSets() *rapid.Generator[*structure.SpanSet] {
	return rapid.Custom(func(t *rapid.T) *structure.SpanSet {
		return &structure.SpanSet{
			ID:        OptionalIDs[structure.SpanSetID]().Draw(t, "id"),
			Parent:    OptionalSpanRefs().Draw(t, "parent"),
			Count:     rapid.Uint64().Draw(t, "count"),
			CreatedAt: Times().Draw(t, "created"),
		}
	})
}

// Branches generates branches.
func Branches() *rapid.Generator[*structure.Branch] {
	return rapid.Custom(func(t *rapid.T) *structure.Branch {
		return &structure.Branch{
			Thread:    OptionalIDs[structure.ThreadID]().Draw(t, "thread"),
			Name:      Texts().Draw(t, "name"),
			SourceID:  Texts().Draw(t, "source id"),
			Context:   OptionalIDs[structure.ContextID]().Draw(t, "context"),
			Order:     rapid.Uint64().Draw(t, "order"),
			CreatedAt: Times().Draw(t, "created"),
		}
	})
}

// Checkpoints generates checkpoints.
func Checkpoints() *rapid.Generator[*structure.Checkpoint] {
	return rapid.Custom(func(t *rapid.T) *structure.Checkpoint {
		return &structure.Checkpoint{
			ID:        OptionalIDs[structure.CheckpointID]().Draw(t, "id"),
			Thread:    OptionalIDs[structure.ThreadID]().Draw(t, "thread"),
			Name:      Texts().Draw(t, "name"),
			SourceID:  Texts().Draw(t, "source id"),
			Span:      OptionalSpanRefs().Draw(t, "span"),
			Order:     rapid.Uint64().Draw(t, "order"),
			CreatedAt: Times().Draw(t, "created"),
		}
	})
}

// Summaries generates summaries.
func Summaries() *rapid.Generator[*structure.Summary] {
	return rapid.Custom(func(t *rapid.T) *structure.Summary {
		s := &structure.Summary{
			ID:        OptionalIDs[structure.SummaryID]().Draw(t, "id"),
			Context:   OptionalIDs[structure.ContextID]().Draw(t, "context"),
			Content:   ContentIDs().Draw(t, "content"),
			From:      OptionalSpanRefs().Draw(t, "from"),
			To:        OptionalSpanRefs().Draw(t, "to"),
			Level:     rapid.Uint64().Draw(t, "level"),
			Model:     Texts().Draw(t, "model"),
			Embedding: OptionalByteStrings().Draw(t, "embedding"),
			CreatedAt: Times().Draw(t, "created"),
		}
		if rapid.Bool().Draw(t, "of summaries") {
			s.Parts = rapid.SliceOfN(OptionalIDs[structure.SummaryID](), 1, 5).Draw(t, "parts")
		}
		return s
	})
}

// Reflogs generates reflog entries.
func Reflogs() *rapid.Generator[*structure.Reflog] {
	return rapid.Custom(func(t *rapid.T) *structure.Reflog {
		return &structure.Reflog{
			Context: OptionalIDs[structure.ContextID]().Draw(t, "context"),
			From:    OptionalSpanRefs().Draw(t, "from"),
			To:      OptionalSpanRefs().Draw(t, "to"),
			Reason:  Texts().Draw(t, "reason"),
			At:      Times().Draw(t, "at"),
		}
	})
}

// Deletions generates deletions of every subject.
func Deletions() *rapid.Generator[*structure.Deletion] {
	subjects := rapid.SampledFrom([]structure.Kind{
		structure.KindThread, structure.KindContext, structure.KindBranch,
		structure.KindCheckpoint, structure.KindSummary, structure.KindBlock,
	})
	return rapid.Custom(func(t *rapid.T) *structure.Deletion {
		d := &structure.Deletion{Subject: subjects.Draw(t, "subject"), At: Times().Draw(t, "at")}
		switch d.Subject {
		case structure.KindThread:
			d.Thread = OptionalIDs[structure.ThreadID]().Draw(t, "thread")
		case structure.KindContext:
			d.Context = OptionalIDs[structure.ContextID]().Draw(t, "context")
		case structure.KindBranch, structure.KindCheckpoint:
			d.Thread, d.Name = OptionalIDs[structure.ThreadID]().Draw(t, "thread"), Texts().Draw(t, "name")
		case structure.KindSummary:
			d.Context = OptionalIDs[structure.ContextID]().Draw(t, "context")
			d.Summary = OptionalIDs[structure.SummaryID]().Draw(t, "summary")
		case structure.KindBlock:
			d.Content = ContentIDs().Draw(t, "content")
		}
		return d
	})
}

// Cuts generates cuts.
func Cuts() *rapid.Generator[*structure.Cut] {
	return rapid.Custom(func(t *rapid.T) *structure.Cut {
		return &structure.Cut{Run: OptionalIDs[structure.RunID]().Draw(t, "run")}
	})
}

// ValueKeys generates keys of values of every scope.
func ValueKeys() *rapid.Generator[structure.ValueKey] {
	names := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "ab", "theme", "naïve 雪 🧊", "\x01", strings.Repeat("k", structure.MaxValueName)}),
		rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != 0 && utf8.ValidRune(r) }), 1, 12, structure.MaxValueName),
	)
	return rapid.Custom(func(t *rapid.T) structure.ValueKey {
		k := structure.ValueKey{Owner: structure.Owner{Scope: structure.Scope(rapid.IntRange(1, 5).Draw(t, "scope"))}, Key: names.Draw(t, "key")}
		switch k.Owner.Scope {
		case structure.ApplicationScope, structure.UserScope:
			k.Owner.Name = names.Draw(t, "owner")
		case structure.ThreadScope:
			k.Owner.Thread = OptionalIDs[structure.ThreadID]().Draw(t, "thread")
		case structure.ContextScope:
			k.Owner.Context = OptionalIDs[structure.ContextID]().Draw(t, "context")
		}
		return k
	})
}

// Values generates values.
func Values() *rapid.Generator[*structure.Value] {
	inline := rapid.OneOf(
		rapid.SampledFrom([][]byte{[]byte("1"), []byte("null"), []byte(`{"a": [1, "雪"]}`), []byte("not JSON"), bytes.Repeat([]byte{0}, structure.MaxInlineValue)}),
		rapid.SliceOfN(rapid.Byte(), 1, 40),
	)
	return rapid.Custom(func(t *rapid.T) *structure.Value {
		v := &structure.Value{ValueKey: ValueKeys().Draw(t, "key"), At: Times().Draw(t, "at")}
		switch v.Owner.Scope {
		case structure.ThreadScope:
			v.Incarnation = rapid.Uint64().Draw(t, "incarnation")
		case structure.ContextScope:
			v.Seen = rapid.OneOf(OptionalSpanRefs(), rapid.Just(structure.CollectedSpan)).Draw(t, "seen")
		}
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
		case 1:
			v.Content = ContentIDs().Draw(t, "content")
		default:
			v.JSON = bytes.Clone(inline.Draw(t, "json"))
		}
		return v
	})
}
