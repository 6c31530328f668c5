package lineage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
)

// txStep is a change that is drawn once and applied to two stores. It refers to everything by name,
// because ids differ.
type txStep struct {
	kind, thread, branch, name, text string
	at                               int
}

var stepKinds = []string{
	"create thread", "title", "extend", "extend", "extend", "branch", "switch", "rename", "checkpoint", "uncheckpoint",
	"set", "set in thread", "set in context", "unset in context", "move", "hang", "replace", "touch nothing", "merge",
}

func drawStep(t *rapid.T) txStep {
	of := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	return txStep{
		kind: of("kind", stepKinds...), thread: of("thread", "a", "b"), branch: of("branch", "main", "x", "y"), name: of("name", "main", "x", "y", "k"),
		text: of("text", "1", "2", "3"), at: rapid.IntRange(0, 4).Draw(t, "at"),
	}
}

// do applies a step.
func (s txStep) do(in *lineage.Store) error {
	if s.kind == "create thread" {
		_, err := in.CreateThread(bg, lineage.ThreadOptions{SourceID: s.thread, Title: s.text})
		return err
	}
	if s.kind == "set" {
		return in.Values(lineage.Owner{Scope: lineage.UserScope, Name: "u"}).Set(bg, s.name, []byte(s.text))
	}
	th, err := in.FindThread(bg, s.thread)
	if err != nil {
		return err
	}
	c, err := th.BranchContext(bg, s.branch)
	if err != nil {
		return err
	}
	entries, err := c.All(bg)
	if err != nil {
		return err
	}
	var at lineage.SpanRef
	if s.at > 0 && s.at <= len(entries) {
		at = entries[s.at-1].Span
	}
	switch s.kind {
	case "title":
		return th.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = s.text; return nil })
	case "extend":
		_, err = c.Extend(bg, lineage.User(s.text), lineage.Assistant(s.text))
	case "branch":
		_, err = th.CreateBranch(bg, s.name, lineage.BranchOptions{From: c, At: at, Empty: at.IsZero()})
	case "switch":
		err = th.Switch(bg, s.name)
	case "rename":
		err = renameBranch(th, s.branch, s.name)
	case "checkpoint":
		_, err = th.SetCheckpoint(bg, s.name, lineage.CheckpointOptions{At: at})
	case "uncheckpoint":
		err = th.DeleteCheckpoint(bg, s.name)
	case "set in thread":
		err = in.Values(lineage.Owner{Thread: th.ID()}).Set(bg, s.name, []byte(s.text))
	case "set in context":
		err = in.Values(lineage.Owner{Context: c.ID()}).Set(bg, s.name, []byte(s.text))
	case "unset in context":
		err = in.Values(lineage.Owner{Context: c.ID()}).Delete(bg, s.name)
	case "move":
		err = c.MoveTo(bg, at, s.text)
	case "hang":
		_, err = th.AddAfter(bg, at, lineage.User(s.text))
	case "replace":
		if err = c.MoveTo(bg, at, s.text); err == nil {
			_, err = c.Extend(bg, lineage.User(s.text))
		}
	case "touch nothing":
		err = th.Update(bg, func(*lineage.ThreadInfo) error { return nil })
	case "merge":
		var from *lineage.Context
		if from, err = th.BranchContext(bg, s.name); err == nil {
			_, err = c.Merge(bg, from)
		}
	}
	return err
}

// sentinel returns the name of an error's sentinel.
func sentinel(err error) string {
	for _, one := range []error{lineage.ErrNotFound, lineage.ErrExists, lineage.ErrTipMoved, lineage.ErrConflict, lineage.ErrInvalid} {
		if errors.Is(err, one) {
			return one.Error()
		}
	}
	return fmt.Sprint(err)
}

// described returns the whole content of a store except ids and times.
func described(t require.TestingT, s *lineage.Store) []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	texts := func(entries []*lineage.Entry) (said []string) {
		for _, e := range entries {
			said = append(said, e.Role+" "+e.Excerpt())
		}
		return said
	}
	values := func(of string, v *lineage.Values) {
		for one, err := range v.All(bg, "") {
			require.NoError(t, err)
			say("value %s %s: %s", of, one.Key, one.JSON)
		}
	}
	values("user", s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "u"}))
	for _, id := range []string{"a", "b"} {
		th, err := s.FindThread(bg, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		require.NoError(t, err)
		info, err := th.Info(bg)
		require.NoError(t, err)
		say("thread %s %s keeps %v", id, info.Title, info.Keeps)
		values(id, s.Values(lineage.Owner{Thread: th.ID()}))
		branches, err := th.Branches(bg)
		require.NoError(t, err)
		for _, b := range branches {
			c, err := s.Context(bg, b.Context)
			require.NoError(t, err)
			entries, err := c.All(bg)
			require.NoError(t, err)
			digest, err := c.Digest(bg)
			require.NoError(t, err)
			say("branch %s/%s active %v %v: %v %d", id, b.Name, b.Active, digest, texts(entries), b.Length)
			for m, err := range c.Reflog(bg) {
				require.NoError(t, err)
				say("move %s/%s %s", id, b.Name, m.Reason)
			}
			values(id+"/"+b.Name, s.Values(lineage.Owner{Context: c.ID()}))
		}
		checkpoints, err := th.Checkpoints(bg)
		require.NoError(t, err)
		for _, c := range checkpoints {
			entries, err := s.Span(bg, c.Span)
			require.NoError(t, err)
			say("checkpoint %s/%s %v", id, c.Name, texts(entries))
		}
		var spans []string
		for e, err := range th.Spans(bg) {
			require.NoError(t, err)
			spans = append(spans, e.Role+" "+e.Excerpt())
		}
		slices.Sort(spans)
		say("spans of %s: %v", id, spans)
	}
	slices.Sort(all)
	return all
}

// Steps in a transaction have the same results as one by one, each and in sum.
func TestUpdateIsLikeStepsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alone, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer alone.Close()
		together, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer together.Close()
		for range rapid.IntRange(1, 6).Draw(t, "transactions") {
			steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 8).Draw(t, "steps")
			var want []string
			for _, s := range steps {
				want = append(want, sentinel(s.do(alone)))
			}
			var got []string
			before, err := together.View().Head(bg)
			require.NoError(t, err)
			require.NoError(t, together.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
				got = nil
				for _, s := range steps {
					got = append(got, sentinel(s.do(tx.Store)))
				}
				return nil
			}))
			require.Equal(t, want, got, "%+v", steps)
			after, err := together.View().Head(bg)
			require.NoError(t, err)
			require.LessOrEqual(t, after.Number, before.Number+1)
			require.Equal(t, described(t, alone), described(t, together), "%+v", steps)
		}
	})
}
