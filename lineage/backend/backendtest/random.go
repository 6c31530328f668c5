package backendtest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// testRandom applies random commits, valid and invalid, and compares all query
// results with the model after each.
func testRandom(t *testing.T, c Config) {
	c.Reopen = false // the actions reopen the store
	rapid.Check(t, func(rt *rapid.T) {
		s := openStore(rt, c, t)
		defer func() { require.NoError(rt, s.Close()) }()
		s.apply(thread("a"), thread("b"), view("a", "a", structure.SpanRef{}), run("run 0", structure.SpanRef{}))
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				s.restart()
				s.check()
			case 1:
				s.randomWindow(rt)
			default:
				s.randomCommit(rt)
			}
		}
		equalFeed(rt, s.model.feedFrom(0), values(rt, s.Feed(background, from(1))))
		require.Empty(rt, verify(rt, s.Engine, rapid.IntRange(0, 3).Draw(rt, "deep") == 0))
	})
}

func (s *store) randomWindow(t *rapid.T) {
	w := structure.Window{
		From: rapid.Uint64Range(0, 12).Draw(t, "from"), To: rapid.Uint64Range(0, 12).Draw(t, "to"), Last: rapid.Uint64Range(0, 4).Draw(t, "last"),
	}
	tip := rapid.SampledFrom(s.seen.spans.list()).Draw(t, "tip")
	same(t, s.model.path(tip, w), path(t, s, tip, w))
}

// randomCommit applies a commit whose records use few names, so that many of them
// interact. The model may refuse it. No context is moved to its current tip: whether
// that counts as a move is up to the engine.
func (s *store) randomCommit(t *rapid.T) {
	d := draft{model: s.model.clone(), t: t, faulty: rapid.IntRange(0, 4).Draw(t, "faulty") == 0}
	d.model.number++
	for range rapid.IntRange(1, 9).Draw(t, "records") {
		d.add()
	}
	commit := s.commit(d.records...)
	var o backend.Options
	if rapid.IntRange(0, 3).Draw(t, "expects") == 0 {
		expect := backend.Expect{Context: d.context(), Tip: d.ref()}
		if v, ok := s.model.views[expect.Context]; ok && !d.faulty {
			expect.Tip = v.Tip
		}
		o.Tips = []backend.Expect{expect}
	}
	if rapid.IntRange(0, 3).Draw(t, "expects a context") == 0 {
		expect := backend.ExpectContext{ID: d.context()}
		if v, ok := s.model.views[expect.ID]; ok && !d.faulty {
			expect.Was = &v.Context
		}
		o.Contexts = []backend.ExpectContext{expect}
	}
	if rapid.IntRange(0, 3).Draw(t, "expects names") == 0 {
		d.expectNames(s.model, &o)
	}
	if rapid.IntRange(0, 3).Draw(t, "expects a source") == 0 {
		d.expectSource(s.model, &o)
	}
	if rapid.IntRange(0, 3).Draw(t, "expects a value") == 0 {
		d.expectValue(s.model, &o)
	}
	if _, err := s.model.clone().apply(commit, o); err != nil {
		s.refuseCommit(nil, commit, o)
		return
	}
	s.applyCommit(commit, o)
}

// run returns a run, usually with the current incarnation of its thread.
func (d *draft) run(name string) *structure.Run {
	r := run(name, d.ref())
	if rapid.IntRange(0, 3).Draw(d.t, "outside threads") == 0 {
		return r
	}
	thread := id[structure.ThreadID](d.name("thread"))
	if r.Home = (structure.Home{Thread: thread, Incarnation: d.model.threads[thread].Incarnation}); rapid.IntRange(0, 5).Draw(d.t, "another incarnation") == 0 {
		r.Home.Incarnation++
	}
	return r
}

// expectSource adds the expectation of a source id, right or wrong.
func (d *draft) expectSource(now *Model, o *backend.Options) {
	e := backend.ExpectSource{SourceID: d.source()}
	if rapid.Bool().Draw(d.t, "in one thread") {
		e.Thread = id[structure.ThreadID](d.name("thread"))
	}
	if !d.faulty || rapid.Bool().Draw(d.t, "as it is") {
		for _, one := range now.find(e.SourceID, e.Thread) {
			e.Spans = append(e.Spans, one.Span)
		}
	} else if rapid.Bool().Draw(d.t, "something") {
		e.Spans = []structure.SpanRef{d.ref()}
	}
	o.Sources = []backend.ExpectSource{e}
}

// expectNames adds the expectations of a name, right or wrong.
func (d *draft) expectNames(now *Model, o *backend.Options) {
	thread, name := id[structure.ThreadID](d.name("thread")), d.name("name")
	b := backend.ExpectBranch{Thread: thread, Name: name}
	if got, ok := now.branches[named{thread, name}]; ok && (!d.faulty || rapid.Bool().Draw(d.t, "as it is")) {
		b.Was = &got
	}
	k := backend.ExpectCheckpoint{Thread: thread, Name: name}
	if got, ok := now.checkpoints[named{thread, name}]; ok && (!d.faulty || rapid.Bool().Draw(d.t, "as it is")) {
		k.Was = &got
	}
	o.Branches, o.Checkpoints = []backend.ExpectBranch{b}, []backend.ExpectCheckpoint{k}
}

// draft is a random commit under construction. It applies the records to a
// model, so that later records can depend on earlier ones.
type draft struct {
	model   *Model
	t       *rapid.T
	records []structure.Record
	faulty  bool // may contain an invalid record
	broken  bool // contains one
}

func (d *draft) add() {
	r := d.next()
	after := d.model.clone()
	for _, one := range r {
		known, err := after.content(one, after, &outcome{})
		if err == nil && !known {
			err = after.record(&structure.Commit{}, one)
		}
		if err == nil {
			continue
		}
		if !d.faulty {
			return
		}
		d.broken = true
	}
	d.model, d.records = after, append(d.records, r...)
}

func (d *draft) next() []structure.Record {
	if d.broken {
		return []structure.Record{text("behind the fault")}
	}
	one := func(r structure.Record) []structure.Record { return []structure.Record{r} }
	switch rapid.IntRange(0, 22).Draw(d.t, "record") {
	case 0:
		th := structuretest.Threads().Draw(d.t, "thread")
		th.ID, th.Active = id[structure.ThreadID](d.name("thread")), structure.ContextID{}
		th.Incarnation = rapid.Uint64Range(0, 1).Draw(d.t, "incarnation")
		th.UserID = rapid.SampledFrom([]string{"", "ada", "grace"}).Draw(d.t, "user")
		if rapid.Bool().Draw(d.t, "with metadata") {
			th.Metadata = []byte(rapid.SampledFrom(metadata).Draw(d.t, "metadata"))
		}
		return one(th)
	case 1, 2:
		return one(d.view())
	case 3, 4:
		v := d.context()
		if to := d.ref(); d.model.views[v].Tip != to {
			return one(&structure.Tip{Context: v, Span: to})
		}
		return nil
	case 5, 6:
		return one(d.run(fmt.Sprint("run ", rapid.IntRange(0, 5).Draw(d.t, "run"))))
	case 7, 8, 9:
		return d.span()
	case 10:
		return one(set(d.name("set"), d.ref()))
	case 11:
		return one(&structure.Branch{
			Thread: id[structure.ThreadID](d.name("thread")), Name: d.name("branch"), SourceID: d.source(), Context: d.context(), CreatedAt: moment(1),
		})
	case 12:
		k := checkpoint(d.name("thread"), d.name("checkpoint"), d.ref())
		k.SourceID = d.source()
		return one(k)
	case 13:
		sum := summary(d.name("summary"), "", d.body(), d.ref())
		sum.Context = d.context()
		return one(sum)
	case 14:
		return one(&structure.Reflog{Context: d.context(), From: d.ref(), To: d.ref(), Reason: "moved", At: moment(1)})
	case 15:
		body := d.body()
		return []structure.Record{text(body), chunk(body)}
	case 16, 17, 18:
		return one(d.value())
	case 19:
		return d.remnant()
	default:
		return one(d.deletion())
	}
}

// remnant returns a remnant, usually with a fork.
func (d *draft) remnant() []structure.Record {
	r := structuretest.Remnants().Draw(d.t, "remnant")
	r.ID, r.Parent = d.context(), structure.ContextID{}
	if got, ok := d.model.remnants[r.ID]; ok {
		r.Parent = got.Parent
	} else if rapid.Bool().Draw(d.t, "below") {
		r.Parent = d.context()
	}
	if rapid.IntRange(0, 5).Draw(d.t, "alone") == 0 {
		return []structure.Record{r}
	}
	v := d.view()
	v.Parent = r.ID
	return []structure.Record{r, v}
}

func (d *draft) valueKey() structure.ValueKey {
	owner := rapid.SampledFrom([]structure.Owner{
		ofStore(), ofUser("a"), ofUser("b"), {Scope: structure.ApplicationScope, Name: "a"}, ofThread("a"), ofThread("b"),
		ofContext("a"), ofContext("b"), ofContext("c"), ofContext("a"), ofContext("b"), ofContext("c"),
	}).Draw(d.t, "owner")
	return structure.ValueKey{Owner: owner, Key: rapid.SampledFrom([]string{"k", "kl", "l"}).Draw(d.t, "key")}
}

// value returns a value, usually with the current incarnation of its thread.
func (d *draft) value() *structure.Value {
	v := &structure.Value{ValueKey: d.valueKey(), At: moment(1)}
	switch v.Owner.Scope {
	case structure.ThreadScope:
		if v.Incarnation = d.model.threads[v.Owner.Thread].Incarnation; rapid.IntRange(0, 9).Draw(d.t, "another incarnation") == 0 {
			v.Incarnation++
		}
	case structure.ContextScope:
		if v.Seen = d.ref(); rapid.IntRange(0, 9).Draw(d.t, "seen a collected span") == 0 {
			v.Seen = structure.CollectedSpan
		}
	}
	switch rapid.IntRange(0, 5).Draw(d.t, "value") {
	case 0:
	case 1:
		v.Content = content.Sum([]byte(d.body()))
	default:
		v.JSON = []byte(rapid.SampledFrom([]string{"1", "2", `{"a": [1.0]}`, "null", `"雪"`}).Draw(d.t, "json"))
	}
	return v
}

// expectValue adds the expectation of a value, right or wrong.
func (d *draft) expectValue(now *Model, o *backend.Options) {
	e := backend.ExpectValue{Key: d.valueKey()}
	if history := now.named[e.Key]; len(history) > 0 {
		e.Commit = history[len(history)-1].Commit
	}
	if d.faulty && rapid.Bool().Draw(d.t, "as it is not") {
		e.Commit = rapid.Uint64Range(0, now.number).Draw(d.t, "commit")
	}
	o.Values = []backend.ExpectValue{e}
}

func (d *draft) name(of string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(d.t, of)
}

// source returns a source id, usually none.
func (d *draft) source() string {
	return rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(d.t, "source")
}

func (d *draft) body() string {
	return rapid.SampledFrom([]string{"", "one", "two", "three", "four"}).Draw(d.t, "body")
}

func (d *draft) context() structure.ContextID {
	return id[structure.ContextID](d.name("context"))
}

// ref returns the empty position, an existing span or, rarely, a missing one.
func (d *draft) ref() structure.SpanRef {
	switch n := rapid.IntRange(0, 20).Draw(d.t, "position"); {
	case n == 0:
		return at("run 0", 99)
	case n < 5 || len(d.model.order) == 0:
		return structure.SpanRef{}
	}
	return rapid.SampledFrom(d.model.order).Draw(d.t, "span")
}

func (d *draft) view() *structure.Context {
	v := structuretest.Contexts().Draw(d.t, "context")
	v.ID, v.Thread, v.Parent, v.Set = d.context(), id[structure.ThreadID](d.name("thread")), structure.ContextID{}, structure.SpanSetID{}
	v.Base, v.Tip = d.ref(), d.ref()
	if old, ok := d.model.views[v.ID]; ok && rapid.IntRange(0, 9).Draw(d.t, "as it was") > 0 {
		v.Thread, v.Parent, v.Base = old.Thread, old.Parent, old.Base
	} else if got, ok := d.model.remnants[v.ID]; ok {
		v.Parent = got.Parent
	} else if rapid.Bool().Draw(d.t, "spawned") {
		v.Parent = d.context()
	}
	return v
}

// span returns a span at the end of a run, usually with the blocks that it uses.
func (d *draft) span() []structure.Record {
	name := fmt.Sprint("run ", rapid.IntRange(0, 5).Draw(d.t, "run"))
	ref := at(name, d.model.ends[id[structure.RunID](name)]+1)
	if rapid.IntRange(0, 20).Draw(d.t, "place") == 0 {
		ref.Seq++
	}
	bodies := rapid.Map(rapid.SampledFrom([]string{"", "one", "two", "three", "four"}), func(s string) content.ID { return content.Sum([]byte(s)) })
	s := structuretest.Spans(bodies).Draw(d.t, "span")
	s.Ref, s.Set = ref, structure.SpanSetID{}
	for i := range s.Usages {
		if u := &s.Usages[i]; u.SourceID != "" {
			u.SourceID = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(d.t, "source")
			u.Lookup = rapid.SampledFrom([]uint64{0, 1, 1, 2, 3, 240, 241, math.MaxUint64}).Draw(d.t, "lookup")
		}
	}
	if len(d.model.sets) > 0 && rapid.Bool().Draw(d.t, "in a set") {
		s.Set = id[structure.SpanSetID](d.name("set"))
	}
	var records []structure.Record
	if _, ok := d.model.runs[ref.Run]; !ok && rapid.IntRange(0, 9).Draw(d.t, "new run") > 0 {
		records = append(records, d.run(name))
	}
	if rapid.IntRange(0, 9).Draw(d.t, "with content") > 0 {
		for _, body := range []string{"", "one", "two", "three", "four"} {
			for _, u := range s.Usages {
				for _, id := range u.Named(nil) {
					if *id == content.Sum([]byte(body)) {
						records = append(records, text(body))
					}
				}
			}
		}
	}
	return append(records, s)
}

func (d *draft) deletion() *structure.Deletion {
	switch rapid.IntRange(0, 6).Draw(d.t, "deletion") {
	case 0:
		return deleteThread(d.name("thread"))
	case 1:
		return deleteContext(d.name("context"))
	case 2:
		return deleteName(structure.KindBranch, d.name("thread"), d.name("branch"))
	case 3:
		return deleteName(structure.KindCheckpoint, d.name("thread"), d.name("checkpoint"))
	case 4:
		return deleteSummary(d.name("context"), d.name("summary"))
	default:
		return erase(rapid.SampledFrom([]string{"one", "two", "three", "four"}).Draw(d.t, "content"))
	}
}

// metadata is thread metadata with values of all kinds, in several spellings, and
// more of them than an index accepts.
var metadata = []string{
	`{"a":"x","b":1,"c":true,"d":null,"e":{"a":"y"},"f":["x"]}`, `{"a":"x","b":1.0}`, `{"a":"y","b":10e-1,"c":false}`,
	`{"a":"x","a":"y"}`, `{"b":"1"}`, `{"":"","c":"true"}`, `["a"]`, `{"b":1e999999999}`, `{"a":"\u0078"}`,
	`{"a":"x","k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9,"l0":0,"l1":1,"l2":2,"l3":3,"l4":4,"l5":5,"z":"last"}`,
}
