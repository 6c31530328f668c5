package judge_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/judge/judgetest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func moment(n uint64) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(n)).UTC() }

func id[T ~[16]byte](name string) T { return structure.DeriveID[T]("judge", name) }

// drawer draws records with ids from small sets, so that many coincide.
type drawer struct{ *rapid.T }

func (d drawer) of(what string, names ...string) string {
	return rapid.SampledFrom(names).Draw(d.T, what)
}

func (d drawer) thread() structure.ThreadID { return id[structure.ThreadID](d.of("thread", "a", "b")) }

func (d drawer) context() structure.ContextID {
	return id[structure.ContextID](d.of("context", "a", "b", "c", "d"))
}

func (d drawer) run() structure.RunID { return id[structure.RunID](d.of("run", "a", "b", "c")) }

func (d drawer) body() string { return d.of("body", "", "one", "two") }

func (d drawer) ref() structure.SpanRef {
	if rapid.Bool().Draw(d.T, "empty") {
		return structure.SpanRef{}
	}
	return structure.SpanRef{Run: d.run(), Seq: rapid.Uint64Range(0, 3).Draw(d.T, "place")}
}

func (d drawer) maybe() bool { return rapid.IntRange(0, 3).Draw(d.T, "maybe") == 0 }

func (d drawer) record() structure.Record {
	switch rapid.IntRange(0, 20).Draw(d.T, "record") {
	case 0, 1:
		t := &structure.Thread{ID: d.thread(), Title: d.body(), Incarnation: rapid.Uint64Range(0, 1).Draw(d.T, "incarnation"), CreatedAt: moment(0), UpdatedAt: moment(0)}
		if d.maybe() {
			t.Active = d.context()
		}
		return t
	case 2, 3:
		c := &structure.Context{ID: d.context(), Tip: d.ref(), CreatedAt: moment(0)}
		if !d.maybe() {
			c.Thread = d.thread()
		}
		if rapid.Bool().Draw(d.T, "forked") {
			c.Parent, c.Overrides = d.context(), d.overrides()
		}
		if d.maybe() {
			c.Set = id[structure.SpanSetID]("set")
		}
		if d.maybe() {
			c.Base = c.Tip
		}
		return c
	case 4, 5:
		return &structure.Tip{Context: d.context(), Span: d.ref()}
	case 6:
		r := &structure.Run{ID: d.run(), Parent: d.ref()}
		if !d.maybe() {
			r.Home = structure.Home{Thread: d.thread(), Incarnation: rapid.Uint64Range(0, 1).Draw(d.T, "incarnation")}
		}
		return r
	case 7, 8:
		u := structure.Usage{
			Kind: structure.MessageUsage, Role: "user", Content: content.Sum([]byte(d.body())),
			CreatedAt: moment(rapid.Uint64Range(0, 3).Draw(d.T, "said")),
		}
		if d.maybe() {
			u.SourceID, u.Lookup = d.of("source", "a", "b"), rapid.Uint64Range(0, 2).Draw(d.T, "lookup")
		}
		s := &structure.Span{Ref: structure.SpanRef{Run: d.run(), Seq: rapid.Uint64Range(1, 3).Draw(d.T, "place")}, Usages: []structure.Usage{u}}
		if d.maybe() {
			s.Set = id[structure.SpanSetID]("set")
		}
		return s
	case 9:
		return &structure.SpanSet{ID: id[structure.SpanSetID]("set"), Parent: d.ref(), CreatedAt: moment(0)}
	case 10:
		return &structure.Branch{Thread: d.thread(), Name: d.of("name", "x", "y"), SourceID: d.of("source", "", "a", "b"), Context: d.context(), CreatedAt: moment(0)}
	case 11:
		return &structure.Checkpoint{ID: id[structure.CheckpointID]("k"), Thread: d.thread(), Name: d.of("name", "x", "y"), SourceID: d.of("source", "", "a", "b"), Span: d.ref(), CreatedAt: moment(0)}
	case 12:
		return &structure.Summary{ID: id[structure.SummaryID](d.of("summary", "a", "b")), Context: d.context(), Content: content.Sum([]byte(d.body())), From: d.ref(), To: d.ref(), CreatedAt: moment(0)}
	case 13:
		return &structure.Reflog{Context: d.context(), From: d.ref(), To: d.ref(), At: moment(0)}
	case 14:
		return d.content()
	case 15, 16, 17:
		return d.value()
	case 18:
		r := &structure.Remnant{ID: d.context(), Overrides: d.overrides()}
		if d.maybe() {
			r.Parent = d.context()
		}
		return r
	}
	return d.deletion()
}

func (d drawer) overrides() (o structure.Overrides) {
	if d.maybe() {
		prompt := d.body()
		o.SystemPrompt = &prompt
	}
	return o
}

func (d drawer) valueKey() structure.ValueKey {
	k := structure.ValueKey{Key: d.of("key", "k", "l")}
	switch k.Owner.Scope = structure.Scope(rapid.IntRange(1, 5).Draw(d.T, "scope")); k.Owner.Scope {
	case structure.ApplicationScope, structure.UserScope:
		k.Owner.Name = d.of("owner", "a", "b")
	case structure.ThreadScope:
		k.Owner.Thread = d.thread()
	case structure.ContextScope:
		k.Owner.Context = d.context()
	}
	return k
}

func (d drawer) value() structure.Record {
	v := &structure.Value{ValueKey: d.valueKey(), At: moment(0)}
	switch v.Owner.Scope {
	case structure.ThreadScope:
		v.Incarnation = rapid.Uint64Range(0, 1).Draw(d.T, "incarnation")
	case structure.ContextScope:
		if v.Seen = d.ref(); d.maybe() {
			v.Seen = structure.CollectedSpan
		}
	}
	switch d.of("form", "json", "json", "content", "deleted") {
	case "json":
		v.JSON = []byte(d.of("value", "1", "2", `{"a":[]}`, "not JSON"))
	case "content":
		v.Content = content.Sum([]byte(d.body()))
	}
	return v
}

func (d drawer) content() structure.Record {
	body := []byte(d.body())
	if len(body) > 0 && rapid.Bool().Draw(d.T, "chunk") {
		return &structure.Chunk{Key: content.KeyOf(body), Bytes: body}
	}
	if len(body) > 0 && d.maybe() {
		return &structure.Block{
			Block: content.Block{ID: content.Sum(body), Size: int64(len(body)), CreatedAt: moment(0)},
			Tree:  content.Root{Key: content.KeyOf(body), Size: int64(len(body))},
		}
	}
	return structure.NewBlock(content.TypeText, content.BlockOrigin{}, moment(0), body)
}

func (d drawer) deletion() structure.Record {
	del := &structure.Deletion{At: moment(0)}
	switch rapid.IntRange(0, 5).Draw(d.T, "deletion") {
	case 0:
		del.Subject, del.Thread = structure.KindThread, d.thread()
	case 1, 6:
		del.Subject, del.Context = structure.KindContext, d.context()
	case 2:
		del.Subject, del.Thread, del.Name = structure.KindBranch, d.thread(), d.of("name", "x", "y")
	case 3:
		del.Subject, del.Thread, del.Name = structure.KindCheckpoint, d.thread(), d.of("name", "x", "y")
	case 4:
		del.Subject, del.Context, del.Summary = structure.KindSummary, d.context(), id[structure.SummaryID](d.of("summary", "a", "b"))
	default:
		del.Subject, del.Content = structure.KindBlock, content.Sum([]byte(d.body()))
	}
	return del
}

func (d drawer) options(s *rows) (o backend.Options) {
	if d.maybe() {
		expect := backend.Expect{Context: d.context()}
		expect.Tip = s.contexts[expect.Context].Tip
		o.Tips = []backend.Expect{expect}
	}
	if d.maybe() {
		thread := d.thread()
		o.Threads = []backend.ExpectThread{{ID: thread, Was: s.threads[thread]}}
	}
	if d.maybe() {
		name := judge.Name{Thread: d.thread(), Name: d.of("name", "x", "y")}
		o.Branches = []backend.ExpectBranch{{Thread: name.Thread, Name: name.Name, Was: s.branches[name]}}
		o.Checkpoints = []backend.ExpectCheckpoint{{Thread: name.Thread, Name: name.Name, Was: s.checkpoints[name]}}
	}
	if d.maybe() {
		key := d.valueKey()
		o.Values = []backend.ExpectValue{{Key: key, Commit: s.values[key].commit}}
	}
	if d.maybe() {
		expect := backend.ExpectSource{SourceID: d.of("source", "a", "b")}
		if d.maybe() {
			expect.Thread = d.thread()
		}
		for found := range s.Find(expect.SourceID, expect.Thread) {
			expect.Spans = append(expect.Spans, found.Span)
		}
		o.Sources = []backend.ExpectSource{expect}
	}
	return o
}

// court judges the same commits as new ones, record by record, and, if accepted, in replay.
type court struct {
	t        require.TestingT
	judge    judge.Judge
	number   uint64
	rows     *rows
	replayed *rows
}

func newCourt(t require.TestingT) *court {
	return &court{t: t, rows: newRows(), replayed: newRows()}
}

// decide judges records and applies their effects unless they are refused.
func (c *court) decide(o backend.Options, records ...structure.Record) error {
	source := &structure.Commit{Time: moment(c.number), Records: records}
	whole := judge.Case{Commit: source, WholeTrees: c.number%2 == 0}
	view := c.named(c.rows, judge.Keys(whole, o))
	var p judge.Preparation
	if err := p.Begin(source); err != nil {
		return err
	}
	if err := judge.Expect(view, o); err != nil {
		return err
	}
	if _, err := p.DropKnown(view); err != nil || len(p.Commit.Records) == 0 {
		return err
	}
	p.Commit.Number = c.number + 1
	whole.Commit, whole.View = &p.Commit, view
	// Remnants are stated together with their children.
	together := slices.ContainsFunc(p.Commit.Records, func(r structure.Record) bool { return r.Kind() == structure.KindRemnant })
	stepwise, refused := c.stepwise(whole)
	defer c.judge.Release()
	effects, err := c.judge.Judge(context.Background(), whole)
	if err != nil {
		require.True(c.t, together || refused != nil, "%v", err)
		return err
	}
	require.True(c.t, together || refused == nil, "%v", refused)
	c.number++
	c.rows.take(c.number, effects, 0)
	c.judge.Release()
	if !together {
		require.Equal(c.t, stepwise, c.rows)
	}

	again := judge.Case{Commit: &p.Commit, Replay: true}
	again.View = c.named(c.replayed, judge.Keys(again, backend.Options{}))
	effects, err = c.judge.Judge(context.Background(), again)
	require.NoError(c.t, err)
	c.replayed.take(c.number, effects, 0)
	require.Equal(c.t, c.rows, c.replayed)
	c.rows.requireCounted(c.t)
	c.rows.requireLines(c.t)
	return nil
}

// stepwise judges the records of a commit one by one, each in the state after those before
// it.
func (c *court) stepwise(whole judge.Case) (*rows, error) {
	s := c.rows.clone()
	var one judge.Judge
	for i := range whole.Commit.Records {
		commit := *whole.Commit
		commit.Records = commit.Records[i : i+1]
		effects, err := one.Judge(context.Background(), judge.Case{Commit: &commit, View: s, WholeTrees: whole.WholeTrees})
		if err != nil {
			return nil, err
		}
		s.take(commit.Number, effects, i)
		one.Release()
	}
	return s, nil
}

func (c *court) named(s *rows, keys []judge.Key) *judgetest.Named {
	return &judgetest.Named{View: s, Keys: keys, Fail: func(k judge.Key) {
		require.Failf(c.t, "a key is not named", "%+v", k)
	}}
}

// beginning returns the records of a first commit.
func beginning() []structure.Record {
	a, b := id[structure.ThreadID]("a"), id[structure.ThreadID]("b")
	at := structure.SpanRef{Run: id[structure.RunID]("a"), Seq: 1}
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, moment(0), []byte("one"))
	return []structure.Record{
		&structure.Thread{ID: a}, &structure.Thread{ID: b}, block,
		&structure.Run{ID: at.Run}, &structure.Span{Ref: at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID}}},
		&structure.Context{ID: id[structure.ContextID]("a"), Thread: a}, &structure.Context{ID: id[structure.ContextID]("b"), Thread: b, Tip: at},
	}
}

// Replaying accepted commits gives the same state, and so does judging records one by one.
// The judge reads only what the keys name, and the counters are right.
func TestReplayGivesTheSameState(t *testing.T) {
	allowed := 0
	rapid.Check(t, func(t *rapid.T) {
		d, c := drawer{t}, newCourt(t)
		require.NoError(t, c.decide(backend.Options{}, beginning()...))
		for range rapid.IntRange(1, 30).Draw(t, "commits") {
			var records []structure.Record
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				records = append(records, d.record())
			}
			if c.decide(d.options(c.rows), records...) == nil {
				allowed++
			}
		}
	})
	require.NotZero(t, allowed)
}

// A large commit, whose tables become maps, has the effects of its records one by one.
func TestLargeCommitEqualsItsRecords(t *testing.T) {
	one := newCourt(t)
	th := &structure.Thread{ID: id[structure.ThreadID]("t"), CreatedAt: moment(0), UpdatedAt: moment(0)}
	records := []structure.Record{th}
	for i := range 100 {
		c := &structure.Context{ID: id[structure.ContextID](fmt.Sprint(i)), Thread: th.ID, CreatedAt: moment(0)}
		records = append(records, c, &structure.Branch{Thread: th.ID, Name: fmt.Sprint(i), Context: c.ID, CreatedAt: moment(0)})
		if i%3 == 0 {
			records = append(records,
				&structure.Deletion{Subject: structure.KindBranch, Thread: th.ID, Name: fmt.Sprint(i)},
				&structure.Deletion{Subject: structure.KindContext, Context: c.ID})
		}
	}
	require.NoError(t, one.decide(backend.Options{}, records...))
	gone := &structure.Deletion{Subject: structure.KindThread, Thread: th.ID}
	require.NoError(t, one.decide(backend.Options{}, gone))
	require.Empty(t, one.rows.contexts)
	require.Empty(t, one.rows.branches)
	require.NoError(t, newCourt(t).decide(backend.Options{}, append(records, gone)...))
}

// A context that is deleted and created again in one commit inherits nothing.
func TestRecreatedInOneCommit(t *testing.T) {
	c := newCourt(t)
	a, b := &structure.Thread{ID: id[structure.ThreadID]("a")}, &structure.Thread{ID: id[structure.ThreadID]("b")}
	of := func(th *structure.Thread) *structure.Context {
		return &structure.Context{ID: id[structure.ContextID]("c"), Thread: th.ID}
	}
	at := of(a).ID
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, moment(0), []byte("x"))
	sum := &structure.Summary{ID: id[structure.SummaryID]("s"), Context: at, Content: block.ID}
	gone := &structure.Deletion{Subject: structure.KindContext, Context: at}
	require.NoError(t, c.decide(backend.Options{}, a, b, block, of(a), sum, &structure.Reflog{Context: at}, &structure.Tip{Context: at}))
	require.NoError(t, c.decide(backend.Options{}, gone, of(b), sum))
	require.Equal(t, b.ID, c.rows.contexts[at].Thread)
	require.Len(t, c.rows.summaries, 1)
	require.Empty(t, c.rows.reflog)
	unsummed := &structure.Deletion{Subject: structure.KindSummary, Context: at, Summary: sum.ID}
	require.ErrorIs(t, c.decide(backend.Options{}, gone, of(b), unsummed), backend.ErrNotFound)
	require.NoError(t, c.decide(backend.Options{}, unsummed, sum))
	require.ErrorIs(t, c.decide(backend.Options{}, unsummed, unsummed), backend.ErrNotFound)
	require.NoError(t, c.decide(backend.Options{}, &structure.Deletion{Subject: structure.KindThread, Thread: a.ID}))
	require.Contains(t, c.rows.contexts, at, "it is in the other thread")
	require.NoError(t, c.decide(backend.Options{}, &structure.Deletion{Subject: structure.KindThread, Thread: b.ID}, b, of(b)))
	require.Contains(t, c.rows.contexts, at)
}

// The values of a thread or context are deleted with it, including those set in the same
// commit, even if the commit creates it again.
func TestValuesAreDeletedWithTheirOwners(t *testing.T) {
	th := &structure.Thread{ID: id[structure.ThreadID]("t"), Incarnation: 1}
	branch := &structure.Context{ID: id[structure.ContextID]("c"), Thread: th.ID}
	value := func(owner structure.Owner, incarnation uint64, json string) *structure.Value {
		return &structure.Value{ValueKey: structure.ValueKey{Owner: owner, Key: json}, Incarnation: incarnation, JSON: []byte(json)}
	}
	inThread := structure.Owner{Scope: structure.ThreadScope, Thread: th.ID}
	inContext := structure.Owner{Scope: structure.ContextScope, Context: branch.ID}
	again := *th
	again.Incarnation++
	noThread := &structure.Deletion{Subject: structure.KindThread, Thread: th.ID}
	noContext := &structure.Deletion{Subject: structure.KindContext, Context: branch.ID}
	key := func(owner structure.Owner, k string) structure.ValueKey {
		return structure.ValueKey{Owner: owner, Key: k}
	}
	for name, tt := range map[string]struct {
		records []structure.Record
		left    []structure.ValueKey
	}{
		"thread deleted":  {[]structure.Record{value(inThread, 1, "2"), value(inContext, 0, "2"), noThread}, nil},
		"context deleted": {[]structure.Record{value(inThread, 1, "2"), value(inContext, 0, "2"), noContext}, []structure.ValueKey{key(inThread, "1"), key(inThread, "2")}},
		"both made again": {
			[]structure.Record{value(inThread, 1, "2"), noThread, &again, branch, value(inThread, 2, "3"), value(inContext, 0, "3")},
			[]structure.ValueKey{key(inThread, "3"), key(inContext, "3")},
		},
		"context made again": {
			[]structure.Record{value(inContext, 0, "2"), noContext, branch, value(inContext, 0, "3"), noContext, branch, value(inContext, 0, "4")},
			[]structure.ValueKey{key(inThread, "1"), key(inContext, "4")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			require.NoError(t, c.decide(backend.Options{}, th, branch, value(inThread, 1, "1"), value(inContext, 0, "1")))
			require.NoError(t, c.decide(backend.Options{}, tt.records...))
			require.ElementsMatch(t, tt.left, slices.Collect(maps.Keys(c.rows.values)))
		})
	}
	c := newCourt(t)
	require.ErrorIs(t, c.decide(backend.Options{}, value(inThread, 1, "1")), backend.ErrNotFound)
	require.NoError(t, c.decide(backend.Options{}, &again))
	require.ErrorIs(t, c.decide(backend.Options{}, value(inThread, 1, "1")), backend.ErrConflict)
}

// A context with a name in the same commit is deleted only if the name is removed.
func TestNamedInTheSameCommit(t *testing.T) {
	c := newCourt(t)
	th := &structure.Thread{ID: id[structure.ThreadID]("a")}
	own := &structure.Context{ID: id[structure.ContextID]("c"), Thread: th.ID}
	branch := &structure.Branch{Thread: th.ID, Name: "main", Context: own.ID}
	unnamed := &structure.Deletion{Subject: structure.KindBranch, Thread: th.ID, Name: "main"}
	gone := &structure.Deletion{Subject: structure.KindContext, Context: own.ID}
	require.ErrorIs(t, c.decide(backend.Options{}, th, own, branch, gone), backend.ErrConflict)
	require.NoError(t, c.decide(backend.Options{}, th, own, branch, unnamed, gone))
	require.NoError(t, c.decide(backend.Options{}, own, branch))
	require.ErrorIs(t, c.decide(backend.Options{}, gone), backend.ErrConflict)
	require.NoError(t, c.decide(backend.Options{}, unnamed, gone))
}

// The last message of a thread is the latest by its own time, in all runs that belong to the
// thread, in contexts or not.
func TestLastMessages(t *testing.T) {
	c := newCourt(t)
	th := &structure.Thread{ID: id[structure.ThreadID]("a"), Incarnation: 7}
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, moment(0), []byte("x"))
	run := &structure.Run{ID: id[structure.RunID]("r"), Home: th.Home()}
	stray := &structure.Run{ID: id[structure.RunID]("s")}
	said := func(in *structure.Run, place uint64, at ...uint64) structure.Record {
		s := &structure.Span{Ref: structure.SpanRef{Run: in.ID, Seq: place}}
		for _, at := range at {
			s.Usages = append(s.Usages, structure.Usage{Kind: structure.MessageUsage, Role: "user", Content: block.ID, CreatedAt: moment(at)})
		}
		return s
	}
	require.NoError(t, c.decide(backend.Options{}, th, block, run, stray, said(run, 1, 3, 5, 4), said(run, 2, 2), said(stray, 1, 9)))
	require.Equal(t, map[structure.Home]int64{th.Home(): moment(5).UnixMilli()}, c.rows.messages)
	require.NoError(t, c.decide(backend.Options{}, said(run, 3, 4)))
	require.Equal(t, moment(5).UnixMilli(), c.rows.messages[th.Home()])
	require.NoError(t, c.decide(backend.Options{}, said(run, 4, 6)))
	require.Equal(t, moment(6).UnixMilli(), c.rows.messages[th.Home()])
}
