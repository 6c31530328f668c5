package backendtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Chooser draws the random numbers of an Author: a *rand.Rand, or Drawn.
type Chooser interface{ IntN(n int) int }

// Drawn is a Chooser that draws from rapid.
type Drawn struct{ T *rapid.T }

// IntN implements Chooser.
func (d Drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "choice") }

// Author generates commits that are valid in a given state of the model. It
// adds no content that is already stored, so that engines store commits
// unchanged, and it never uses an id twice, except that of a remnant.
type Author struct {
	Chooser
	Alike   Alike
	things  int               // number of ids used
	sourced map[string]uint64 // versions of messages with source ids of Alike
}

// Alike has ids that an engine may confuse, because it stores only a part of each. An Author with such ids prefers them.
type Alike struct {
	Bodies  [][]byte // with content ids that are alike
	Chunks  [][]byte // with keys that are alike
	Runs    []structure.RunID
	Sources []string // of messages
}

// next takes one of the first few of a list, or returns false.
func next[T any](a *Author, list *[]T) (one T, ok bool) {
	if len(*list) == 0 || a.IntN(4) == 0 {
		return one, false
	}
	i := a.IntN(min(len(*list), 3))
	one = (*list)[i]
	*list = slices.Delete(slices.Clone(*list), i, i+1)
	return one, true
}

// incarnation returns that of a new thread: 1 if homes matter, because source ids are alike in one home.
func (a *Author) incarnation() uint64 {
	if len(a.Alike.Sources) > 0 {
		return 1
	}
	return uint64(a.IntN(1 << 30))
}

// run returns an id for a run.
func (a *Author) run() structure.RunID {
	if id, ok := next(a, &a.Alike.Runs); ok {
		return id
	}
	return fresh[structure.RunID](a)
}

// source returns the source id of a message, and the number of its version.
func (a *Author) source() (id string, version uint64) {
	if len(a.Alike.Sources) == 0 || a.IntN(4) == 0 {
		return a.name("message"), uint64(1 + a.IntN(3))
	}
	id = oneOf(a, a.Alike.Sources)
	if a.sourced == nil {
		a.sourced = make(map[string]uint64)
	}
	a.sourced[id] += uint64(1 + a.IntN(100))
	return id, a.sourced[id]
}

func fresh[T ~[16]byte](a *Author) T {
	a.things++
	return structure.DeriveID[T]("crash", fmt.Sprint(a.things))
}

// Now returns the time of the next commit.
func (a *Author) Now() time.Time {
	return time.UnixMilli(1_700_000_000_000 + int64(a.things)).UTC()
}

func oneOf[T any](a *Author, list []T) T { return list[a.IntN(len(list))] }

// Next returns a commit that is valid after those of the model.
func (a *Author) Next(m *Model) *structure.Commit {
	records := a.records(m)
	a.things++
	return &structure.Commit{Time: a.Now(), Records: records}
}

func (a *Author) records(m *Model) []structure.Record {
	contexts := slices.SortedFunc(maps.Values(m.views), func(a, b backend.Context) int { return a.ID.Compare(b.ID) })
	if len(contexts) == 0 {
		return a.begin()
	}
	in := oneOf(a, contexts)
	switch a.IntN(20) {
	case 0:
		return a.begin()
	case 1, 15:
		return []structure.Record{a.fork(m, in.ID, in.Tip)}
	case 16:
		return a.below(m, in)
	case 2:
		return a.rewind(m, in)
	case 3:
		return []structure.Record{&structure.Branch{Thread: in.Thread, Name: a.name("branch"), Context: in.ID, CreatedAt: a.Now()}}
	case 4:
		if !in.Tip.IsZero() {
			return []structure.Record{&structure.Checkpoint{
				ID: fresh[structure.CheckpointID](a), Thread: in.Thread, Name: a.name("checkpoint"), Span: in.Tip, CreatedAt: a.Now(),
			}}
		}
	case 5:
		return a.summarize(m, in)
	case 6:
		return a.alternatives(m, in)
	case 7:
		t := m.threads[in.Thread]
		t.Title, t.Active, t.UpdatedAt = a.name("title"), in.ID, a.Now()
		t.Keeps = a.IntN(2) == 0
		return []structure.Record{&t}
	case 8, 9, 10:
		if r := a.deletion(m, in); r != nil {
			return []structure.Record{r}
		}
	case 11, 12, 13, 14:
		return a.value(m, in)
	}
	return a.extend(m, in)
}

// fork returns a new context below another, in any thread.
func (a *Author) fork(m *Model, parent structure.ContextID, at structure.SpanRef) *structure.Context {
	return &structure.Context{
		ID: fresh[structure.ContextID](a), Thread: oneOf(a, slices.SortedFunc(maps.Keys(m.threads), structure.ThreadID.Compare)),
		Parent: parent, Base: at, Tip: at, Overrides: a.overrides(), Metadata: []byte(`{"forked":true}`), CreatedAt: a.Now(),
	}
}

func (a *Author) overrides() (o structure.Overrides) {
	if a.IntN(2) == 0 {
		o.SystemPrompt = new(a.name("prompt"))
	}
	return o
}

// below forks a remnant that it states, or replaces a remnant or the overrides of a context.
func (a *Author) below(m *Model, in backend.Context) []structure.Record {
	remnants := slices.SortedFunc(maps.Values(m.remnants), func(a, b structure.Remnant) int { return a.ID.Compare(b.ID) })
	if len(remnants) == 0 || a.IntN(3) == 0 {
		in.Overrides = a.overrides()
		return []structure.Record{&in.Context}
	}
	r := oneOf(a, remnants)
	if a.IntN(3) == 0 {
		again := a.fork(m, r.Parent, structure.SpanRef{})
		again.ID = r.ID
		return []structure.Record{again}
	}
	if a.IntN(2) == 0 {
		r = structure.Remnant{ID: fresh[structure.ContextID](a), Parent: r.ID, Overrides: a.overrides()}
	}
	return []structure.Record{&r, a.fork(m, r.ID, structure.SpanRef{})}
}

func (a *Author) name(of string) string {
	a.things++
	return fmt.Sprint(of, " ", a.things)
}

func (a *Author) begin() []structure.Record {
	t := &structure.Thread{ID: fresh[structure.ThreadID](a), UserID: "ada", Title: "talk", Incarnation: a.incarnation(), CreatedAt: a.Now(), UpdatedAt: a.Now()}
	c := &structure.Context{ID: fresh[structure.ContextID](a), Thread: t.ID, CreatedAt: a.Now()}
	return []structure.Record{t, c, &structure.Branch{Thread: t.ID, Name: "main", Context: c.ID, CreatedAt: a.Now()}}
}

// extend appends spans to a context, in the run of its tip if the tip is the
// run's end.
func (a *Author) extend(m *Model, in backend.Context) []structure.Record {
	var records []structure.Record
	at := in.Tip
	if at.IsZero() || m.ends[at.Run] != at.Seq || m.closed[at.Run] {
		run := &structure.Run{ID: a.run(), Parent: at, Home: m.homeOf(in.Thread)}
		records = append(records, run)
		at = structure.SpanRef{Run: run.ID}
	}
	brought := map[content.ID]bool{}
	for range 1 + a.IntN(3) {
		at.Seq++
		var span *structure.Span
		records, span = a.span(records, m, at, brought)
		records = append(records, span)
	}
	return append(records, &structure.Tip{Context: in.ID, Span: at})
}

// span returns a span, preceded by the content that is not stored yet.
func (a *Author) span(records []structure.Record, m *Model, at structure.SpanRef, brought map[content.ID]bool) ([]structure.Record, *structure.Span) {
	span := &structure.Span{Ref: at}
	bring := func() content.ID {
		id, isNew := a.content(m)
		for _, r := range isNew {
			if b, ok := r.(*structure.Block); ok && brought[b.ID] {
				continue
			}
			records = append(records, r)
		}
		brought[id] = true
		return id
	}
	for i := range 1 + a.IntN(2) {
		u := structure.Usage{Kind: structure.MessageUsage, Content: bring(), Role: "user", CreatedAt: a.Now().Add(-time.Duration(a.things*31%97) * time.Millisecond)}
		switch a.IntN(6) {
		case 0:
			u.Form, u.Extras = bring(), [][]byte{[]byte(a.name("extra"))}
		case 1:
			u.MetadataContent = bring()
		}
		if i == 1 {
			u.SourceID, u.Lookup = a.source()
		}
		span.Usages = append(span.Usages, u)
	}
	return records, span
}

// content chooses new or existing content.
func (a *Author) content(m *Model) (content.ID, []structure.Record) {
	if len(m.erased) > 0 && a.IntN(4) == 0 {
		b := m.blocks[oneOf(a, slices.SortedFunc(maps.Keys(m.erased), content.ID.Compare))]
		if b.Tree.IsZero() {
			return b.ID, []structure.Record{&b} // stores it again
		}
	}
	if len(m.blocks) > 0 && a.IntN(3) == 0 {
		return oneOf(a, slices.SortedFunc(maps.Keys(m.blocks), content.ID.Compare)), nil
	}
	if body, ok := next(a, &a.Alike.Bodies); ok {
		b := a.block(content.Sum(body), body)
		return b.ID, []structure.Record{b}
	}
	if body, ok := next(a, &a.Alike.Chunks); ok {
		return a.chunked(body)
	}
	size := []int{0, 20, 20, 20, 300, 300, 1500, 5000}[a.IntN(8)]
	body := bytes.Repeat([]byte(a.name("text")+"\n"), 1+size/6)[:size]
	if size == 0 {
		id := content.Sum(nil)
		if m.has(id) {
			return id, nil
		}
		return id, []structure.Record{a.block(id, body)}
	}
	if a.IntN(6) > 0 {
		b := a.block(content.Sum(body), body)
		return b.ID, []structure.Record{b}
	}
	return a.chunked(body)
}

// chunked returns a large block of one chunk.
func (a *Author) chunked(body []byte) (content.ID, []structure.Record) {
	b := a.block(content.Sum(body), body)
	key := content.KeyOf(body)
	b.Body, b.Tree = nil, content.Root{Key: key, Size: int64(len(body))}
	return b.ID, []structure.Record{&structure.Chunk{Key: key, Bytes: body}, b}
}

func (a *Author) block(id content.ID, body []byte) *structure.Block {
	return &structure.Block{
		Block: content.Block{ID: id, Type: content.TypeText, Size: int64(len(body)), Origin: content.BlockOrigin{Kind: content.OriginUser}, CreatedAt: a.Now()},
		Body:  body,
	}
}

func (a *Author) rewind(m *Model, in backend.Context) []structure.Record {
	var to structure.SpanRef
	if len(m.order) > 0 && a.IntN(4) > 0 {
		to = oneOf(a, m.order)
	}
	return []structure.Record{
		&structure.Tip{Context: in.ID, Span: to},
		&structure.Reflog{Context: in.ID, From: in.Tip, To: to, Reason: "rewind", At: a.Now()},
	}
}

func (a *Author) summarize(m *Model, in backend.Context) []structure.Record {
	body := []byte(a.name("summary"))
	b := a.block(content.Sum(body), body)
	return []structure.Record{b, &structure.Summary{
		ID: fresh[structure.SummaryID](a), Context: in.ID, Content: b.ID, To: in.Tip, Model: "small", CreatedAt: a.Now(),
	}}
}

func (a *Author) alternatives(m *Model, in backend.Context) []structure.Record {
	set := &structure.SpanSet{ID: fresh[structure.SpanSetID](a), Parent: in.Tip, Count: 2, CreatedAt: a.Now()}
	records := []structure.Record{set}
	brought := map[content.ID]bool{}
	for range 2 {
		run := &structure.Run{ID: a.run(), Parent: in.Tip, Home: m.homeOf(in.Thread)}
		records = append(records, run)
		var span *structure.Span
		records, span = a.span(records, m, structure.SpanRef{Run: run.ID, Seq: 1}, brought)
		span.Set = set.ID
		records = append(records, span)
	}
	return records
}

// deletion deletes something, or returns nil if there is nothing to delete.
func (a *Author) deletion(m *Model, in backend.Context) structure.Record {
	d := &structure.Deletion{At: a.Now()}
	switch a.IntN(8) {
	case 0, 1:
		for _, b := range m.branches {
			if b.Context == in.ID {
				return nil
			}
		}
		d.Subject, d.Context = structure.KindContext, in.ID
	case 2:
		d.Subject, d.Thread, d.Name = structure.KindBranch, in.Thread, firstName(m.branches, in.Thread)
	case 3:
		d.Subject, d.Thread, d.Name = structure.KindCheckpoint, in.Thread, firstName(m.checkpoints, in.Thread)
	case 4:
		if len(m.summaries) == 0 {
			return nil
		}
		r := oneOf(a, m.summaries)
		d.Subject, d.Context, d.Summary = structure.KindSummary, r.Context, r.ID
		return d
	case 5, 6:
		if len(m.order) == 0 {
			return nil
		}
		d.Subject, d.Content = structure.KindBlock, m.spans[oneOf(a, m.order)].Span.Usages[0].Content
		if d.Content == content.Sum(nil) {
			return nil // erased and empty content look the same
		}
		return d
	default:
		if len(m.threads) < 2 {
			return nil
		}
		d.Subject, d.Thread = structure.KindThread, in.Thread
		return d
	}
	if d.Subject != structure.KindContext && d.Name == "" {
		return nil
	}
	return d
}

func firstName[V any](of map[named]V, thread structure.ThreadID) (first string) {
	for n := range of {
		if n.thread == thread && (first == "" || n.name < first) {
			first = n.name
		}
	}
	return first
}

// value sets or deletes a value.
func (a *Author) value(m *Model, in backend.Context) []structure.Record {
	v := &structure.Value{At: a.Now()}
	if a.IntN(2) == 0 { // older than any reflog that is kept
		v.At = v.At.Add(-365 * 24 * time.Hour)
	}
	v.Key = oneOf(a, []string{"k", "kl", "l"})
	switch a.IntN(8) {
	case 0:
		v.Owner = structure.Owner{Scope: structure.StoreScope}
	case 1:
		v.Owner = structure.Owner{Scope: structure.UserScope, Name: oneOf(a, []string{"a", "ab"})}
	case 2:
		v.Owner = structure.Owner{Scope: structure.ThreadScope, Thread: in.Thread}
		v.Incarnation = m.threads[in.Thread].Incarnation
	default:
		v.Owner = structure.Owner{Scope: structure.ContextScope, Context: in.ID}
		if v.Seen = in.Tip; a.IntN(4) == 0 && len(m.order) > 0 {
			v.Seen = oneOf(a, m.order)
		}
	}
	switch a.IntN(6) {
	case 0:
		return []structure.Record{v}
	case 1, 2:
		id, records := a.content(m)
		v.Content = id
		return append(records, v)
	}
	v.JSON = []byte(fmt.Sprintf("%q", a.name("value")))
	a.things++
	if a.IntN(4) > 0 {
		return []structure.Record{v}
	}
	replaced := *v // in the same commit
	replaced.JSON = []byte(fmt.Sprintf("%q", a.name("replaced value")))
	return []structure.Record{&replaced, v}
}
