package structure_test

import (
	"bytes"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

var sampleTime = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// id returns an id that is recognizable in a dump.
func id[T ~[16]byte](n byte) T { return T(bytes.Repeat([]byte{n}, 16)) }

func at(run byte, seq uint64) structure.SpanRef {
	return structure.SpanRef{Run: id[structure.RunID](run), Seq: seq}
}

func text(body string) *structure.Block {
	return &structure.Block{
		Block: content.Block{
			ID: content.Sum([]byte(body)), Type: content.TypeText, Size: int64(len(body)), CreatedAt: sampleTime,
		},
		Body: []byte(body),
	}
}

// messageCommit returns the commit of an ordinary Extend: a block, the span that uses
// it, and the tip on that span.
func messageCommit() *structure.Commit {
	b := text("the quick brown fox jumps over the lazy dog")
	b.Origin = content.BlockOrigin{Kind: content.OriginUser}
	return &structure.Commit{Time: sampleTime, Records: []structure.Record{
		b,
		&structure.Span{Ref: at(1, 7), Usages: []structure.Usage{
			{Kind: structure.MessageUsage, Content: b.ID, Role: "user", By: content.Attribution{UserID: "ada"}, CreatedAt: sampleTime},
		}},
		&structure.Tip{Context: id[structure.ContextID](2), Span: at(1, 7)},
	}}
}

// sampleCommit returns a commit with every kind and form of record.
func sampleCommit() *structure.Commit {
	question, answer := text("question"), text("answer")
	question.Origin = content.BlockOrigin{Kind: content.OriginImport, ParentID: content.Sum([]byte("draft"))}
	answer.Type = "application/x-unknown"
	cut := &structure.Block{
		Block: content.Block{ID: content.Sum([]byte("large")), Type: content.TypePDF, Size: 1 << 33, CreatedAt: time.Time{}},
		Tree:  content.Root{Key: content.KeyOf([]byte("root")), Height: 2, Size: 1 << 33},
	}
	c := &structure.Commit{Time: sampleTime}
	c.Records = append(c.Records, samplePlain()...)
	c.Records = append(c.Records, question, answer, cut, text(""),
		&structure.Chunk{Key: content.KeyOf([]byte("chunk")), Bytes: []byte("chunk")},
		&structure.Span{Ref: at(1, 1), Usages: sampleUsages(question.ID, cut.ID)},
		&structure.Span{Ref: at(1, 2), Set: id[structure.SpanSetID](0x20), Usages: []structure.Usage{
			{Kind: structure.MessageUsage, Content: answer.ID, Role: "assistant", CreatedAt: sampleTime},
		}},
		&structure.Tip{Context: id[structure.ContextID](2), Span: at(1, 2)},
		&structure.Tip{Context: id[structure.ContextID](3), Span: at(1, 1)},
		&structure.Tip{Context: id[structure.ContextID](4)},
		&structure.Span{Ref: at(9, 1<<40), Usages: []structure.Usage{
			{Kind: structure.MessageUsage, Content: content.Sum([]byte("elsewhere")), Role: "narrator"},
		}},
		&structure.Block{Block: content.Block{
			ID: content.Sum([]byte("secret")), Type: content.TypeText, Size: 6, Origin: question.Origin, CreatedAt: sampleTime,
		}},
		&structure.Cut{Run: id[structure.RunID](1)},
	)
	c.Records = append(c.Records, sampleValues()...)
	c.Records = append(c.Records, sampleRemnants()...)
	return c
}

func sampleUsages(local, cut content.ID) []structure.Usage {
	return []structure.Usage{
		{Kind: structure.MessageUsage, Content: local, Role: "user", Name: "ada", CreatedAt: sampleTime.Add(-time.Second)},
		{Kind: structure.DocumentUsage, Content: cut, Document: "plan", Revision: 300, CreatedAt: sampleTime},
		{
			Kind: structure.AssetUsage, Content: content.Sum([]byte("elsewhere")), Filename: "雪.png",
			Type: content.TypePNG, Origin: &content.BlockOrigin{Kind: content.OriginTool}, SourceID: "m-1",
			By:     content.Attribution{UserID: "ada", ModelID: "model", SourceID: "file.json"},
			Lookup: 1, Metadata: []byte(`{}`), CreatedAt: sampleTime.Add(time.Hour),
		},
		{Kind: structure.MessageUsage, Content: local, Role: "", Metadata: []byte{}, Origin: &content.BlockOrigin{}, CreatedAt: sampleTime},
		{Kind: structure.MessageUsage, Content: local, Role: "user", SourceID: "m-1", Lookup: 2, CreatedAt: sampleTime},
		{Kind: structure.MessageUsage, Content: local, Role: "user", SourceID: "m-2", CreatedAt: sampleTime},
		{
			Kind: structure.MessageUsage, Content: local, Role: "assistant", Piece: structure.ReasoningPiece, Form: local,
			Extras: [][]byte{[]byte("call-1"), {}}, MetadataContent: local, CreatedAt: sampleTime,
		},
		{
			Kind: structure.PartUsage, Content: cut, Piece: structure.InputPiece, Name: "search",
			MetadataContent: content.Sum([]byte("elsewhere")), CreatedAt: sampleTime,
		},
		{Kind: structure.MessageUsage, Content: local, Role: "user", Opaque: true, CreatedAt: sampleTime},
		{Kind: structure.MessageUsage, Content: local, Role: "user", Form: content.Sum([]byte("elsewhere")), CreatedAt: sampleTime},
	}
}

func valueKey(owner structure.Owner, key string) structure.ValueKey {
	return structure.ValueKey{Owner: owner, Key: key}
}

// sampleValues has a value of every scope and form. They come after the records that the format
// had before, as remnants come after them.
func sampleValues() []structure.Record {
	user := structure.Owner{Scope: structure.UserScope, Name: "ada"}
	context := structure.Owner{Scope: structure.ContextScope, Context: id[structure.ContextID](2)}
	return []structure.Record{
		&structure.Value{ValueKey: valueKey(structure.Owner{Scope: structure.StoreScope}, "k"), JSON: []byte("1"), At: sampleTime},
		&structure.Value{
			ValueKey: valueKey(structure.Owner{Scope: structure.ApplicationScope, Name: "app"}, "theme"), JSON: []byte(`{"dark": true}`), At: sampleTime,
		},
		&structure.Value{ValueKey: valueKey(user, "naïve 雪"), Content: content.Sum([]byte("elsewhere")), At: sampleTime},
		&structure.Value{ValueKey: valueKey(user, "theme"), At: sampleTime.Add(time.Second)},
		&structure.Value{
			ValueKey:    valueKey(structure.Owner{Scope: structure.ThreadScope, Thread: id[structure.ThreadID](0x10)}, "k"),
			Incarnation: 0x1234, JSON: []byte("null"), At: sampleTime,
		},
		&structure.Value{ValueKey: valueKey(context, "k"), JSON: []byte("[]"), Seen: at(1, 2), At: sampleTime},
		&structure.Value{ValueKey: valueKey(context, "l"), Seen: structure.CollectedSpan, At: sampleTime},
	}
}

func sampleRemnants() []structure.Record {
	prompt, empty := "You count birds.", ""
	return []structure.Record{
		&structure.Remnant{
			ID: id[structure.ContextID](5), Parent: id[structure.ContextID](2),
			Overrides: structure.Overrides{SystemPrompt: &prompt, Model: &empty, JSON: []byte(`{"t":0}`)},
		},
		&structure.Remnant{ID: id[structure.ContextID](6)},
	}
}

func samplePlain() []structure.Record {
	thread, context := id[structure.ThreadID](0x10), id[structure.ContextID](2)
	empty, model := "", "model"
	return []structure.Record{
		&structure.Thread{
			ID: thread, SourceID: "chat-1", UserID: "ada", Title: "Naïve 雪", Metadata: []byte(`{"a": 1}`),
			Active: context, Incarnation: 0x1234, Keeps: true, Named: 300, CreatedAt: sampleTime, UpdatedAt: sampleTime.Add(time.Millisecond),
		},
		&structure.Thread{ID: thread, Metadata: []byte{}, CreatedAt: time.UnixMilli(-1).UTC()},
		&structure.Run{ID: id[structure.RunID](1)},
		&structure.Run{ID: id[structure.RunID](9), Parent: at(1, 300), Home: structure.Home{Thread: thread, Incarnation: 0x1234}},
		&structure.Context{
			ID: context, Thread: thread, Parent: id[structure.ContextID](3), Base: at(1, 1), Tip: at(1, 2),
			Set:       id[structure.SpanSetID](0x20),
			Overrides: structure.Overrides{SystemPrompt: &empty, Model: &model, JSON: []byte(`{"t":0}`)},
			Metadata:  []byte(`[]`), CreatedAt: sampleTime,
		},
		&structure.Context{ID: id[structure.ContextID](3), Thread: thread, CreatedAt: sampleTime},
		&structure.SpanSet{ID: id[structure.SpanSetID](0x20), Parent: at(1, 1), Count: 3, CreatedAt: sampleTime},
		&structure.Branch{Thread: thread, Name: "main", Context: context, Order: 1, CreatedAt: sampleTime},
		&structure.Branch{Thread: thread, Name: "side", SourceID: "b-1", Context: context, Order: 300, CreatedAt: sampleTime},
		&structure.Checkpoint{
			ID: id[structure.CheckpointID](0x40), Thread: thread, Name: "before", Span: at(1, 1), Order: 2, CreatedAt: sampleTime,
		},
		&structure.Checkpoint{
			ID: id[structure.CheckpointID](0x41), Thread: thread, Name: "after", SourceID: "k-1", Span: at(1, 2), CreatedAt: sampleTime,
		},
		&structure.Summary{
			ID: id[structure.SummaryID](0x50), Context: context, Content: content.Sum([]byte("summary")), From: at(1, 1),
			To: at(1, 2), Level: 1, Parts: []structure.SummaryID{id[structure.SummaryID](0x51), id[structure.SummaryID](0x52)},
			Model: "model", Embedding: []byte{1, 2, 3, 4}, CreatedAt: sampleTime,
		},
		&structure.Summary{ID: id[structure.SummaryID](0x51), To: at(1, 1), CreatedAt: sampleTime},
		&structure.Reflog{Context: context, From: at(1, 2), To: at(1, 1), Reason: "rewind", At: sampleTime},
		&structure.Deletion{Subject: structure.KindThread, Thread: thread, At: sampleTime},
		&structure.Deletion{Subject: structure.KindContext, Context: context, At: sampleTime},
		&structure.Deletion{Subject: structure.KindBranch, Thread: thread, Name: "old", At: sampleTime},
		&structure.Deletion{Subject: structure.KindCheckpoint, Thread: thread, Name: "before", At: sampleTime},
		&structure.Deletion{Subject: structure.KindSummary, Context: context, Summary: id[structure.SummaryID](0x51), At: sampleTime},
		&structure.Deletion{Subject: structure.KindBlock, Content: content.Sum([]byte("secret")), At: sampleTime},
	}
}
