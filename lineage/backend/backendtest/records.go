package backendtest

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// moment returns the nth time, in the precision of records.
func moment(n int64) time.Time { return time.UnixMilli(1_700_000_000_000 + n).UTC() }

// id returns the id for a name.
func id[T ~[16]byte](name string) T { return structure.DeriveID[T]("backendtest", name) }

func at(run string, seq uint64) structure.SpanRef {
	return structure.SpanRef{Run: id[structure.RunID](run), Seq: seq}
}

func text(body string) *structure.Block {
	return &structure.Block{
		Block: content.Block{
			ID: content.Sum([]byte(body)), Type: content.TypeText, Size: int64(len(body)),
			Origin: content.BlockOrigin{Kind: content.OriginUser}, CreatedAt: moment(0),
		},
		Body: []byte(body),
	}
}

func chunk(b string) *structure.Chunk {
	return &structure.Chunk{Key: content.KeyOf([]byte(b)), Bytes: []byte(b)}
}

func thread(name string) *structure.Thread {
	return &structure.Thread{
		ID: id[structure.ThreadID](name), UserID: "ada", Title: name,
		Metadata: []byte(`{"of":"thread"}`), CreatedAt: moment(1), UpdatedAt: moment(2),
	}
}

// view returns a context of a thread.
func view(name, thread string, tip structure.SpanRef) *structure.Context {
	return &structure.Context{
		ID: id[structure.ContextID](name), Thread: id[structure.ThreadID](thread),
		Base: tip, Tip: tip, CreatedAt: moment(3),
	}
}

func move(context string, to structure.SpanRef) *structure.Tip {
	return &structure.Tip{Context: id[structure.ContextID](context), Span: to}
}

func run(name string, parent structure.SpanRef) *structure.Run {
	return &structure.Run{ID: id[structure.RunID](name), Parent: parent}
}

// says returns a span with a message for each body.
func says(ref structure.SpanRef, bodies ...string) *structure.Span {
	s := &structure.Span{Ref: ref}
	for i, body := range bodies {
		s.Usages = append(s.Usages, structure.Usage{
			Kind: structure.MessageUsage, Content: content.Sum([]byte(body)), Role: "user",
			CreatedAt: moment(int64(10 + i)),
		})
	}
	return s
}

// runOf returns a run that belongs to a thread.
func runOf(of, name string, parent structure.SpanRef) *structure.Run {
	r := run(name, parent)
	r.Home = thread(of).Home()
	return r
}

// told returns spans of a run starting at from, one for each body, and their
// blocks.
func told(run string, from uint64, bodies ...string) []structure.Record {
	var records []structure.Record
	for i, body := range bodies {
		records = append(records, text(body), says(at(run, from+uint64(i)), body))
	}
	return records
}

func set(name string, parent structure.SpanRef) *structure.SpanSet {
	return &structure.SpanSet{ID: id[structure.SpanSetID](name), Parent: parent, Count: 2, CreatedAt: moment(4)}
}

func branch(thread, name, context string) *structure.Branch {
	return &structure.Branch{
		Thread: id[structure.ThreadID](thread), Name: name,
		Context: id[structure.ContextID](context), CreatedAt: moment(5),
	}
}

func checkpoint(thread, name string, span structure.SpanRef) *structure.Checkpoint {
	return &structure.Checkpoint{
		ID: id[structure.CheckpointID](thread + name), Thread: id[structure.ThreadID](thread),
		Name: name, Span: span, CreatedAt: moment(6),
	}
}

func summary(name, context, body string, to structure.SpanRef) *structure.Summary {
	return &structure.Summary{
		ID: id[structure.SummaryID](name), Context: id[structure.ContextID](context),
		Content: content.Sum([]byte(body)), To: to, Model: "small", Embedding: []byte{1, 2}, CreatedAt: moment(7),
	}
}

func reflog(context string, from, to structure.SpanRef) *structure.Reflog {
	return &structure.Reflog{Context: id[structure.ContextID](context), From: from, To: to, Reason: "rewind", At: moment(8)}
}

func deleteThread(name string) *structure.Deletion {
	return &structure.Deletion{Subject: structure.KindThread, Thread: id[structure.ThreadID](name), At: moment(9)}
}

func deleteContext(name string) *structure.Deletion {
	return &structure.Deletion{Subject: structure.KindContext, Context: id[structure.ContextID](name), At: moment(9)}
}

// deleteName deletes a branch or checkpoint.
func deleteName(kind structure.Kind, thread, name string) *structure.Deletion {
	return &structure.Deletion{Subject: kind, Thread: id[structure.ThreadID](thread), Name: name, At: moment(9)}
}

func deleteSummary(context, name string) *structure.Deletion {
	return &structure.Deletion{
		Subject: structure.KindSummary, Context: id[structure.ContextID](context),
		Summary: id[structure.SummaryID](name), At: moment(9),
	}
}

func erase(body string) *structure.Deletion {
	return &structure.Deletion{Subject: structure.KindBlock, Content: content.Sum([]byte(body)), At: moment(9)}
}

// talk is a small store: a thread with a context on a run of three spans.
func talk() []structure.Record {
	records := []structure.Record{thread("t"), runOf("t", "r", structure.SpanRef{})}
	records = append(records, told("r", 1, "one", "two", "three")...)
	return append(records, view("c", "t", at("r", 3)), branch("t", "main", "c"))
}
