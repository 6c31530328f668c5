package backendtest

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Census is the set of ids that occur in commits, applied or not. Tests query
// all of them.
type Census struct {
	threads  roll[structure.ThreadID]
	contexts roll[structure.ContextID]
	runs     roll[structure.RunID]
	spans    roll[structure.SpanRef]
	sets     roll[structure.SpanSetID]
	names    roll[string]
	named    roll[named]
	sources  roll[string]
	blocks   roll[content.ID]
	chunks   roll[content.Key]
	values   roll[structure.ValueKey]
	owners   roll[string]
}

// NewCensus returns a census with one missing id of each kind.
func NewCensus() *Census {
	s := &Census{}
	s.threads.add(id[structure.ThreadID]("missing"))
	s.contexts.add(id[structure.ContextID]("missing"))
	s.runs.add(id[structure.RunID]("missing"))
	s.spans.add(structure.SpanRef{Run: id[structure.RunID]("missing"), Seq: 1})
	s.sets.add(id[structure.SpanSetID]("missing"))
	s.names.add("missing")
	s.sources.add("missing")
	s.blocks.add(content.Sum([]byte("missing")))
	s.chunks.add(content.KeyOf([]byte("missing")))
	s.values.add(structure.ValueKey{Owner: ofUser("missing"), Key: "missing"})
	s.owners.add("missing")
	return s
}

// Add adds the ids of a commit.
func (s *Census) Add(c *structure.Commit) {
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Block:
			s.blocks.add(r.ID)
		case *structure.Chunk:
			s.chunks.add(r.Key)
		case *structure.Thread:
			s.threads.add(r.ID)
		case *structure.Context:
			s.contexts.add(r.ID)
		case *structure.Remnant:
			s.contexts.add(r.ID)
		case *structure.Run:
			s.runs.add(r.ID)
			s.threads.add(r.Home.Thread)
		case *structure.Span:
			s.span(r)
		case *structure.SpanSet:
			s.sets.add(r.ID)
		case *structure.Branch:
			s.names.add(r.Name)
			s.named.add(named{r.Thread, r.Name})
			s.sources.add(r.SourceID)
		case *structure.Checkpoint:
			s.names.add(r.Name)
			s.named.add(named{r.Thread, r.Name})
			s.sources.add(r.SourceID)
		case *structure.Value:
			s.values.add(r.ValueKey)
			s.owners.add(r.Owner.Name)
			s.blocks.add(r.Content)
		}
	}
}

// addSubjects adds the ids of what the records of a commit belong to, change or delete.
func (s *Census) addSubjects(c *structure.Commit) {
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Context:
			s.threads.add(r.Thread)
			s.contexts.add(r.Parent)
		case *structure.Tip:
			s.contexts.add(r.Context)
		case *structure.Run:
			s.runs.add(r.Parent.Run)
		case *structure.Span:
			s.runs.add(r.Ref.Run)
		case *structure.Branch:
			s.threads.add(r.Thread)
			s.contexts.add(r.Context)
		case *structure.Checkpoint:
			s.threads.add(r.Thread)
		case *structure.Summary:
			s.contexts.add(r.Context)
		case *structure.Reflog:
			s.contexts.add(r.Context)
		case *structure.Value:
			s.threads.add(r.Owner.Thread)
			s.contexts.add(r.Owner.Context)
		case *structure.Deletion:
			s.threads.add(r.Thread)
			s.contexts.add(r.Context)
			s.names.add(r.Name)
			s.blocks.add(r.Content)
		}
	}
}

func (s *Census) span(r *structure.Span) {
	s.spans.add(r.Ref)
	for _, u := range r.Usages {
		for _, id := range u.Named(nil) {
			s.blocks.add(*id)
		}
		s.sources.add(u.SourceID)
	}
}

// roll is a set that keeps insertion order.
type roll[T comparable] struct {
	order []T
	there map[T]bool
}

// add adds a member. The zero value names nothing and is ignored.
func (r *roll[T]) add(v T) {
	var none T
	if v == none || r.there[v] {
		return
	}
	if r.there == nil {
		r.there = make(map[T]bool)
	}
	r.there[v] = true
	r.order = append(r.order, v)
}

func (r *roll[T]) list() []T { return r.order }
