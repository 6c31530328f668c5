package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// answers are what a store says to questions, each written down as JSON.
type answers map[string]string

// Answers that are not values.
const (
	none   = "not found"
	erased = "erased"
)

// failed begins an answer that is an error: a store may give one where it is
// damaged, never anywhere else.
const failed = "failed: "

// say writes down an answer, or why there is none.
func (a answers) say(question string, value any, err error) {
	switch {
	case errors.Is(err, backend.ErrNotFound):
		a[question] = none
	case errors.Is(err, backend.ErrErased):
		a[question] = erased
	case err != nil:
		a[question] = failed + err.Error()
	default:
		a[question] = text(value)
	}
}

func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return "cannot be written: " + err.Error()
	}
	return string(b)
}

// all writes down a sequence.
func all[T any](a answers, question string, seq iter.Seq2[T, error]) {
	list := []T{}
	for v, err := range seq {
		if err != nil {
			a.say(question, nil, err)
			return
		}
		list = append(list, v)
	}
	a.say(question, list, nil)
}

// wanted writes down what sequences of a state's values should say.
func wanted[K comparable, V any](a answers, question string, of map[K]V, accept func(V) bool, order func(a, b V) int) {
	list := []V{}
	for _, v := range of {
		if accept(v) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, order)
	a.say(question, list, nil)
}

func lookup[K comparable, V any](a answers, question string, of map[K]V, k K) {
	if v, ok := of[k]; ok {
		a.say(question, v, nil)
	} else {
		a[question] = none
	}
}

// body is what is there of a block's body.
func body(b *structure.Block) string {
	switch {
	case !b.Tree.IsZero():
		return "tree " + b.Tree.Key.String()
	case len(b.Body) == 0 && b.ID != content.Sum(nil):
		return erased
	}
	return fmt.Sprintf("%d bytes, %v", len(b.Body), content.Sum(b.Body))
}

// step is a step of a path with its bodies.
type step struct {
	Position, Commit uint64
	Span             *structure.Span
	Bodies           []string
}

// block is a block with its body.
type block struct {
	content.Block
	Body string
}

// ask puts every question to an engine that can be asked about the subjects of
// commits, of those that were lost too.
func ask(e *Engine, about []*structure.Commit) answers {
	ctx, a := context.Background(), answers{}
	head, err := e.Head(ctx)
	a.say("head", head.Number, err)
	stats, err := e.Stats(ctx)
	a.say("stats", stats.Counts(), err)
	all(a, "threads", e.Threads(ctx, structure.ThreadID{}))
	all(a, "contexts", e.Contexts(ctx, structure.ThreadID{}, structure.ContextID{}))
	all(a, "latest threads", e.ListThreads(ctx, backend.ThreadQuery{}))
	all(a, "oldest threads", e.ListThreads(ctx, backend.ThreadQuery{Oldest: true}))
	all(a, "roots", e.Forks(ctx, structure.RunID{}))
	commits := []string{}
	for c, err := range e.Feed(ctx, backend.Cursor{}) {
		if err != nil {
			a.say("feed", nil, err)
			break
		}
		c.ID = 0 // it is random
		commits = append(commits, text(c))
	}
	if _, broken := a["feed"]; !broken {
		a.say("feed", commits, nil)
	}
	s := stateOf(about)
	for id := range s.threads {
		v, err := e.Thread(ctx, id)
		a.say(fmt.Sprint("thread ", id), v, err)
		all(a, fmt.Sprint("contexts of ", id), e.Contexts(ctx, id, structure.ContextID{}))
		all(a, fmt.Sprint("branches of ", id), e.Branches(ctx, id, "", ""))
		all(a, fmt.Sprint("checkpoints of ", id), e.Checkpoints(ctx, id, ""))
	}
	for n := range s.branches {
		v, err := e.Branch(ctx, n.thread, n.name)
		a.say(fmt.Sprint("branch ", n), v, err)
	}
	for n := range s.checkpoints {
		v, err := e.Checkpoint(ctx, n.thread, n.name)
		a.say(fmt.Sprint("checkpoint ", n), v, err)
	}
	for id := range s.contexts {
		v, err := e.Context(ctx, id)
		a.say(fmt.Sprint("context ", id), v, err)
		all(a, fmt.Sprint("children of ", id), e.Children(ctx, id, structure.ContextID{}))
		all(a, fmt.Sprint("summaries of ", id), e.Summaries(ctx, id))
		all(a, fmt.Sprint("reflog of ", id), e.Reflog(ctx, id))
	}
	for id := range s.sets {
		v, err := e.SpanSet(ctx, id)
		a.say(fmt.Sprint("set ", id), v, err)
		all(a, fmt.Sprint("alternatives of ", id), e.Alternatives(ctx, id))
	}
	for l := range s.lookups {
		all(a, fmt.Sprintf("from %q in %v", l.SourceID, l.Home.Thread), e.Find(ctx, l.SourceID, l.Home.Thread, backend.Found{}))
		all(a, fmt.Sprintf("from %q", l.SourceID), e.Find(ctx, l.SourceID, structure.ThreadID{}, backend.Found{}))
	}
	for id := range s.threads {
		all(a, fmt.Sprint("runs of ", id), e.RunsOf(ctx, id, structure.RunID{}))
	}
	a.askRuns(ctx, e, s)
	a.askContent(ctx, e, s)
	a.askValues(ctx, e, s)
	return a
}

func (a answers) askRuns(ctx context.Context, e *Engine, s *state) {
	for id := range s.runs {
		v, err := e.Run(ctx, id)
		a.say(fmt.Sprint("run ", id), v, err)
		all(a, fmt.Sprint("forks of ", id), e.Forks(ctx, id))
		last, err := e.Last(ctx, id)
		a.say(fmt.Sprint("last of ", id), last, err)
		end := structure.SpanRef{Run: id, Seq: max(s.ends[id], 1)}
		all(a, fmt.Sprint("path to ", end), func(yield func(step, error) bool) {
			for p, err := range e.Path(ctx, end, structure.Window{}, backend.PathOptions{Bodies: true}) {
				var v step
				if err == nil {
					v = step{Position: p.Position, Commit: p.Commit, Span: p.Span}
					for _, b := range p.Blocks {
						v.Bodies = append(v.Bodies, body(b))
					}
				}
				if !yield(v, err) {
					return
				}
			}
		})
	}
	for ref := range s.spans {
		v, err := e.Digest(ctx, ref)
		a.say(fmt.Sprint("digest of ", ref), v, err)
	}
}

func (a answers) askContent(ctx context.Context, e *Engine, s *state) {
	for id := range s.blocks {
		has, err := e.Has(ctx, []content.ID{id})
		a.say(fmt.Sprint("has ", id), has, err)
		found, err := e.Blocks(ctx, []content.ID{id})
		var v block
		if err == nil {
			v = block{found[0].Block, body(found[0])}
		}
		a.say(fmt.Sprint("block ", id), v, err)
		all(a, fmt.Sprint("usages of ", id), e.Where(ctx, id))
	}
	for k := range s.chunks {
		var v []byte
		chunks, err := e.Chunks(ctx, []content.Key{k})
		if err == nil {
			v = chunks[0]
		}
		a.say(fmt.Sprint("chunk ", k), v, err)
	}
}

// stateOf returns a state that holds whatever commits speak of, as if nothing had
// ever been deleted.
func stateOf(commits []*structure.Commit) *state {
	s := stateAfter(nil)
	for _, c := range commits {
		for _, r := range c.Records {
			switch r := r.(type) {
			case *structure.Deletion, *structure.Tip:
			case *structure.Span: // what it uses may be in a commit that is not among these
				s.ends[r.Ref.Run] = max(s.ends[r.Ref.Run], r.Ref.Seq)
				s.spans[r.Ref] = placed{span: r}
				for _, u := range r.Usages {
					s.lookup(&u, r.Ref)
				}
			default:
				s.record(c, r)
			}
		}
	}
	return s
}

// expected returns the answers that a store with the commits must give to what is
// asked about others.
func expected(commits, about []*structure.Commit) answers {
	s := stateAfter(commits)
	a := s.expected(about)
	feed := []string{}
	for i, c := range commits {
		feed = append(feed, text(structure.Commit{Number: uint64(i + 1), Time: c.Time, Records: s.fed(c)}))
	}
	a.say("feed", feed, nil)
	return a
}

// expected returns the answers of a store in the state, but for its feed.
func (s *state) expected(about []*structure.Commit) answers {
	asked, a := stateOf(about), answers{}
	a.say("head", s.number, nil)
	a.say("stats", s.stats(), nil)
	byID := func(a, b *backend.Context) int { return a.ID.Compare(b.ID) }
	contexts := func(question string, accept func(*backend.Context) bool) {
		wanted(a, question, s.contexts, accept, byID)
	}
	wanted(a, "threads", s.threads, func(*structure.Thread) bool { return true }, func(a, b *structure.Thread) int { return a.ID.Compare(b.ID) })
	contexts("contexts", func(*backend.Context) bool { return true })
	latest := s.listings()
	a.say("latest threads", latest, nil)
	slices.Reverse(latest)
	a.say("oldest threads", latest, nil)
	a.say("roots", s.forks(structure.RunID{}), nil)
	for id := range asked.threads {
		lookup(a, fmt.Sprint("thread ", id), s.threads, id)
		contexts(fmt.Sprint("contexts of ", id), func(c *backend.Context) bool { return c.Thread == id })
		wanted(a, fmt.Sprint("branches of ", id), s.branches, func(b *structure.Branch) bool { return b.Thread == id },
			func(a, b *structure.Branch) int { return cmp.Compare(a.Name, b.Name) })
		wanted(a, fmt.Sprint("checkpoints of ", id), s.checkpoints, func(c *structure.Checkpoint) bool { return c.Thread == id },
			func(a, b *structure.Checkpoint) int { return cmp.Compare(a.Name, b.Name) })
	}
	for n := range asked.branches {
		lookup(a, fmt.Sprint("branch ", n), s.branches, n)
	}
	for n := range asked.checkpoints {
		lookup(a, fmt.Sprint("checkpoint ", n), s.checkpoints, n)
	}
	for id := range asked.contexts {
		lookup(a, fmt.Sprint("context ", id), s.contexts, id)
		contexts(fmt.Sprint("children of ", id), func(c *backend.Context) bool { return c.Parent == id })
		a.say(fmt.Sprint("summaries of ", id), those(s.summaries, func(r *structure.Summary) bool { return r.Context == id }), nil)
		a.say(fmt.Sprint("reflog of ", id), those(s.reflog, func(r *structure.Reflog) bool { return r.Context == id }), nil)
	}
	for id := range asked.sets {
		lookup(a, fmt.Sprint("set ", id), s.sets, id)
		a.say(fmt.Sprint("alternatives of ", id), those(s.order, func(r structure.SpanRef) bool { return s.spans[r].span.Set == id }), nil)
	}
	for l := range asked.lookups {
		found := []backend.Found{}
		if ref, ok := s.lookups[l]; ok && s.exists(l.Home) {
			found = append(found, backend.Found{Home: l.Home, Lookup: l.Number, Span: ref})
		}
		a.say(fmt.Sprintf("from %q in %v", l.SourceID, l.Home.Thread), found, nil)
		a.say(fmt.Sprintf("from %q", l.SourceID), found, nil) // no two have the same
	}
	for id := range asked.threads {
		runs := []structure.RunInfo{}
		for _, r := range s.runs {
			if r.Home.Thread == id && s.exists(r.Home) {
				runs = append(runs, s.info(r))
			}
		}
		slices.SortFunc(runs, func(a, b structure.RunInfo) int { return a.ID.Compare(b.ID) })
		a.say(fmt.Sprint("runs of ", id), runs, nil)
	}
	a.expectRuns(s, asked)
	a.expectContent(s, asked)
	a.expectValues(s, asked)
	return a
}

// listings returns the threads as they are listed.
func (s *state) listings() []backend.ThreadListing {
	all := []backend.ThreadListing{}
	for _, t := range s.threads {
		all = append(all, backend.ThreadListing{Thread: t, LastMessage: s.lastMessage(t.Home())})
	}
	slices.SortFunc(all, func(a, b backend.ThreadListing) int {
		return cmp.Or(b.Updated().Compare(a.Updated()), b.ID.Compare(a.ID))
	})
	return all
}

func (s *state) lastMessage(home structure.Home) (last time.Time) {
	for ref, p := range s.spans {
		for _, u := range p.span.Usages {
			if s.runs[ref.Run].Home == home && u.CreatedAt.After(last) {
				last = u.CreatedAt
			}
		}
	}
	return last
}

// fed returns a commit's records without the bodies that were erased since.
func (s *state) fed(c *structure.Commit) []structure.Record {
	records := slices.Clone(c.Records)
	for i, r := range records {
		if b, ok := r.(*structure.Block); ok && s.erased[b.ID] {
			records[i] = &structure.Block{Block: b.Block, Tree: b.Tree}
		}
	}
	return records
}

func (a answers) expectRuns(s, asked *state) {
	for id := range asked.runs {
		a[fmt.Sprint("run ", id)], a[fmt.Sprint("last of ", id)] = none, none
		if r, ok := s.runs[id]; ok {
			last := structure.SpanRef{Run: id, Seq: s.ends[id]}
			if last.Seq == 0 {
				last = structure.SpanRef{}
			}
			a.say(fmt.Sprint("run ", id), s.info(r), nil)
			a.say(fmt.Sprint("last of ", id), last, nil)
		}
		a.say(fmt.Sprint("forks of ", id), s.forks(id), nil)
		end := structure.SpanRef{Run: id, Seq: max(asked.ends[id], 1)}
		question := fmt.Sprint("path to ", end)
		if _, ok := s.spans[end]; !ok {
			a[question] = none
			continue
		}
		steps := []step{}
		for i, p := range s.history(end) {
			v := step{Position: uint64(i + 1), Commit: p.commit, Span: p.span}
			for _, u := range p.span.Usages {
				if s.erased[u.Content] {
					v.Bodies = append(v.Bodies, erased)
				} else {
					v.Bodies = append(v.Bodies, body(s.blocks[u.Content]))
				}
			}
			steps = append(steps, v)
		}
		a.say(question, steps, nil)
	}
	for ref := range asked.spans {
		a[fmt.Sprint("digest of ", ref)] = none
		if _, ok := s.spans[ref]; ok {
			a.say(fmt.Sprint("digest of ", ref), s.digest(ref), nil)
		}
	}
}

func (a answers) expectContent(s, asked *state) {
	for id := range asked.blocks {
		a.say(fmt.Sprint("has ", id), []bool{s.has(id)}, nil)
		question := fmt.Sprint("block ", id)
		switch b := s.blocks[id]; {
		case b == nil:
			a[question] = none
		case s.erased[id]:
			a[question] = erased
		default:
			a.say(question, block{b.Block, body(b)}, nil)
		}
		usages := []structure.UsageID{}
		for _, ref := range s.order {
			for i, u := range s.spans[ref].span.Usages {
				if u.Content == id || u.MetadataContent == id {
					usages = append(usages, structure.UsageID{Span: ref, Index: i})
				}
			}
		}
		a.say(fmt.Sprint("usages of ", id), usages, nil)
	}
	for k := range asked.chunks {
		question := fmt.Sprint("chunk ", k)
		if c := s.chunks[k]; c != nil {
			a.say(question, c.Bytes, nil)
		} else {
			a[question] = none
		}
	}
}

func those[T any](list []T, accept func(T) bool) []T {
	out := []T{}
	for _, v := range list {
		if accept(v) {
			out = append(out, v)
		}
	}
	return out
}

// wrong lists the questions answered differently from what is expected, in a few
// words each. Errors are not wrong where the store is damaged.
func (a answers) wrong(want answers, damaged bool) (out []string) {
	questions := maps.Clone(want)
	maps.Copy(questions, a)
	for _, q := range slices.Sorted(maps.Keys(questions)) {
		if is := a[q]; is != want[q] && !(damaged && len(is) > len(failed) && is[:len(failed)] == failed) {
			out = append(out, fmt.Sprintf("%s: is %.300s, should be %.300s", q, is, want[q]))
		}
	}
	return out[:min(len(out), 5)]
}
