package derivedtest

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var bg = context.Background()

// Machine changes a store at random.
type Machine struct {
	T     *rapid.T
	Store *lineage.Store
}

func (m *Machine) must(err error) { require.NoError(m.T, err) }

// Change makes a random change, if possible.
func (m *Machine) Change() {
	var contexts []backend.Context
	for c, err := range m.Store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		m.must(err)
		contexts = append(contexts, c)
	}
	what := rapid.SampledFrom([]string{
		"thread", "alone", "extend", "extend", "extend", "fork", "rewind", "delete", "delete thread", "checkpoint", "erase", "summarize", "value", "collect",
	}).Draw(m.T, "change")
	switch what {
	case "thread":
		source := fmt.Sprint("t", rapid.IntRange(0, 2).Draw(m.T, "source"))
		_, err := m.Store.CreateThread(bg, lineage.ThreadOptions{SourceID: source, UserID: "ann", Keep: rapid.Bool().Draw(m.T, "keep")})
		if err != nil {
			require.ErrorIs(m.T, err, lineage.ErrExists)
		}
	case "alone":
		_, err := m.Store.NewContext(bg, lineage.ContextOptions{})
		m.must(err)
	case "value":
		m.must(m.Store.Values(lineage.Owner{Scope: structure.StoreScope}).Set(bg, rapid.SampledFrom([]string{"a", "b"}).Draw(m.T, "key"), []byte("1")))
	case "erase":
		if err := m.Store.Erase(bg, content.Sum([]byte(m.text()))); err != nil {
			require.ErrorIs(m.T, err, lineage.ErrNotFound)
		}
	case "collect":
		m.must(m.collect())
	default:
		if len(contexts) > 0 {
			m.changeContext(what, contexts[rapid.IntRange(0, len(contexts)-1).Draw(m.T, "context")])
		}
	}
}

func (m *Machine) collect() error {
	_, err := m.Store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	return err
}

func (m *Machine) text() string {
	return rapid.SampledFrom([]string{"ant", "bee", "cat"}).Draw(m.T, "text")
}

func (m *Machine) changeContext(what string, of backend.Context) {
	c, err := m.Store.Context(bg, of.ID)
	m.must(err)
	var th *lineage.Thread
	if !of.Thread.IsZero() {
		th, err = m.Store.Thread(bg, of.Thread)
		m.must(err)
	}
	switch what {
	case "extend":
		var items []lineage.Item
		for range rapid.IntRange(1, 4).Draw(m.T, "messages") {
			items = append(items, lineage.User(m.text()))
		}
		_, err = c.Extend(bg, items...)
	case "fork":
		o := lineage.ForkOptions{}
		if th != nil && rapid.Bool().Draw(m.T, "in the thread") {
			o.Thread = th.ID()
		}
		_, err = c.Fork(bg, o)
	case "rewind":
		err = c.MoveTo(bg, m.someSpan(c, of), "rewind")
	case "summarize":
		_, err = c.Summarize(bg, saying("sum"), lineage.SummarizeOptions{Whole: true})
	case "delete":
		err = c.Delete(bg)
	case "delete thread":
		if th != nil {
			err = th.Delete(bg)
		}
	case "checkpoint":
		if th != nil {
			_, err = th.SetCheckpoint(bg, "here", lineage.CheckpointOptions{})
		}
	}
	_ = err // impossible changes are skipped
}

// someSpan returns the base of a context, or a span of its history.
func (m *Machine) someSpan(c *lineage.Context, of backend.Context) lineage.SpanRef {
	spans := []lineage.SpanRef{of.Base}
	for e, err := range c.Entries(bg, lineage.Window{}) {
		m.must(err)
		spans = append(spans, e.Span)
	}
	return spans[rapid.IntRange(0, len(spans)-1).Draw(m.T, "span")]
}

// saying is a summarizer that always returns the same text.
type saying string

func (s saying) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: string(s)}, nil
}
