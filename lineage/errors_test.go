package lineage_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

func TestErrorsNameTheirSubject(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "chat-1"})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.User("hello").WithID("q1"))
	require.NoError(t, err)
	_, err = thread.CreateBranch(bg, "taken", lineage.BranchOptions{})
	require.NoError(t, err)
	elsewhere := newContext(t, s, "hello elsewhere")
	nowhere := lineage.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1}
	noThread, noContext, noSummary := structure.NewID[lineage.ThreadID](), structure.NewID[lineage.ContextID](), structure.NewID[structure.SummaryID]()
	noContent := content.Sum([]byte("never stored"))
	unnamed, deleted := fork(t, main), fork(t, main)
	require.NoError(t, deleted.Delete(bg))

	for _, test := range []struct {
		name string
		do   func() error
		want error
		says string
	}{
		{"thread", func() error { _, err := s.Thread(bg, noThread); return err }, lineage.ErrNotFound, noThread.String()},
		{"thread by source id", func() error { _, err := s.FindThread(bg, "chat-2"); return err }, lineage.ErrNotFound, "chat-2"},
		{"thread that exists", func() error {
			_, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "chat-1"})
			return err
		}, lineage.ErrExists, "chat-1"},
		{"message by source id", func() error { _, err := thread.Find(bg, "q2"); return err }, lineage.ErrNotFound, "q2"},
		{"message that exists", func() error {
			_, err := main.Extend(bg, lineage.User("something else"), lineage.User("again").WithID("q1"))
			return err
		}, lineage.ErrExists, "q1"},
		{"message that exists, edited", func() error {
			_, err := main.Edit(bg, tip(t, main), lineage.User("again").WithID("q1"), lineage.EditOptions{})
			return err
		}, lineage.ErrExists, "q1"},
		{"message that exists, said", func() error {
			_, _, err := addAndSend(s, main, elsewhere, lineage.User("again").WithID("q1"), lineage.User(""))
			return err
		}, lineage.ErrExists, "q1"},
		{"context", func() error { _, err := s.Context(bg, noContext); return err }, lineage.ErrNotFound, noContext.String()},
		{"branch", func() error { _, err := thread.BranchContext(bg, "missing"); return err }, lineage.ErrNotFound, "missing"},
		{"branch info", func() error { _, err := thread.Branch(bg, "missing"); return err }, lineage.ErrNotFound, "missing"},
		{"switch", func() error { return thread.Switch(bg, "missing") }, lineage.ErrNotFound, "missing"},
		{"rename", func() error { return renameBranch(thread, "missing", "other") }, lineage.ErrNotFound, "missing"},
		{"rename to a name taken", func() error { return renameBranch(thread, "main", "taken") }, lineage.ErrExists, "taken"},
		{"rename to nothing", func() error { return renameBranch(thread, "taken", "") }, lineage.ErrInvalid, "name"},
		{"branch that exists", func() error { _, err := thread.CreateBranch(bg, "taken", lineage.BranchOptions{}); return err }, lineage.ErrExists, "taken"},
		{"name that is taken", func() error { return thread.NameBranch(bg, "taken", unnamed) }, lineage.ErrExists, "taken"},
		{"name without a name", func() error { return thread.NameBranch(bg, "", unnamed) }, lineage.ErrInvalid, "name"},
		{"name what is of no thread", func() error { return thread.NameBranch(bg, "new", elsewhere) }, lineage.ErrInvalid, elsewhere.ID().String()},
		{"name what was deleted", func() error { return thread.NameBranch(bg, "new", deleted) }, lineage.ErrNotFound, deleted.ID().String()},
		{"delete branch", func() error { return thread.DeleteBranch(bg, "missing") }, lineage.ErrNotFound, "missing"},
		{"delete main", func() error { return thread.DeleteBranch(bg, "main") }, lineage.ErrProtected, "main"},
		{"delete context of a branch", func() error { return main.Delete(bg) }, lineage.ErrConflict, "main"},
		{"checkpoint", func() error { _, err := thread.Checkpoint(bg, "missing"); return err }, lineage.ErrNotFound, "missing"},
		{"checkpoint without a name", func() error { _, err := thread.SetCheckpoint(bg, "", lineage.CheckpointOptions{}); return err }, lineage.ErrInvalid, "name"},
		{"checkpoint nowhere", func() error {
			_, err := thread.SetCheckpoint(bg, "c", lineage.CheckpointOptions{At: nowhere})
			return err
		}, lineage.ErrNotFound, nowhere.String()},
		{"rewind nowhere", func() error { _, err := rewind(thread, nowhere); return err }, lineage.ErrNotFound, nowhere.String()},
		{"fork nowhere", func() error { _, err := main.Fork(bg, lineage.ForkOptions{At: nowhere}); return err }, lineage.ErrNotFound, nowhere.String()},
		{"fork into no thread", func() error { _, err := main.Fork(bg, lineage.ForkOptions{Thread: noThread}); return err }, lineage.ErrNotFound, noThread.String()},
		{"move nowhere", func() error { return main.MoveTo(bg, nowhere, "") }, lineage.ErrNotFound, nowhere.String()},
		{"undo", func() error { return main.Undo(bg) }, lineage.ErrNotFound, main.ID().String()},
		{"edit elsewhere", func() error {
			_, err := main.Edit(bg, tip(t, elsewhere), lineage.User(""), lineage.EditOptions{})
			return err
		}, lineage.ErrInvalid, main.ID().String()},
		{"edit of an entry too many", func() error {
			_, err := main.Edit(bg, tip(t, main), lineage.User(""), lineage.EditOptions{Index: 1})
			return err
		}, lineage.ErrInvalid, tip(t, main).String()},
		{"span", func() error { _, err := s.Span(bg, nowhere); return err }, lineage.ErrNotFound, nowhere.String()},
		{"empty span", func() error { _, err := s.Span(bg, lineage.SpanRef{}); return err }, lineage.ErrNotFound, "empty"},
		{"position beyond the end", func() error { _, err := s.At(bg, tip(t, main), 2); return err }, lineage.ErrNotFound, tip(t, main).String()},
		{"merge into itself", func() error { _, err := main.Merge(bg, main); return err }, lineage.ErrInvalid, main.ID().String()},
		{"return without a parent", func() error { _, err := main.Return(bg, lineage.User("")); return err }, lineage.ErrInvalid, main.ID().String()},
		{"no alternatives", func() error { _, err := main.Alternatives(bg); return err }, lineage.ErrInvalid, "alternatives"},
		{"choose no alternative", func() error { return main.Choose(bg, elsewhere) }, lineage.ErrInvalid, elsewhere.ID().String()},
		{"tip moved", func() error { _, err := main.ExtendFrom(bg, lineage.SpanRef{}, lineage.User("")); return err }, lineage.ErrTipMoved, main.ID().String()},
		{"tip moved, as a conflict", func() error { _, err := main.ExtendFrom(bg, nowhere, lineage.User("")); return err }, lineage.ErrConflict, nowhere.String()},
		{"content", func() error { _, err := s.Body(bg, noContent); return err }, lineage.ErrNotFound, noContent.String()},
		{"reference", func() error { _, err := main.Extend(bg, lineage.Item{Role: "user", Content: noContent}); return err }, lineage.ErrNotFound, noContent.String()},
		{"provenance", func() error { _, err := s.Provenance(bg, noContent); return err }, lineage.ErrNotFound, noContent.String()},
		{"role", func() error { _, err := main.Extend(bg, lineage.Item{}); return err }, lineage.ErrInvalid, "role"},
		{"document", func() error { _, err := main.Extend(bg, lineage.Item{Kind: lineage.Document}); return err }, lineage.ErrInvalid, "document"},
		{"filename", func() error { _, err := main.Extend(bg, lineage.Item{Kind: lineage.Asset}); return err }, lineage.ErrInvalid, "filename"},
		{"kind", func() error { _, err := main.Extend(bg, lineage.Item{Kind: 9}); return err }, lineage.ErrInvalid, "9"},
		{"two sources", func() error {
			_, err := main.Extend(bg, lineage.Item{Role: "user", Body: []byte{}, Reader: strings.NewReader("")})
			return err
		}, lineage.ErrInvalid, "more than one"},
		{"nothing together", func() error { _, err := main.Extend(bg, lineage.Together()); return err }, lineage.ErrInvalid, "role"},
		{"edited to several", func() error {
			_, err := main.Edit(bg, tip(t, main), lineage.Together(lineage.User("a"), lineage.User("b")), lineage.EditOptions{})
			return err
		}, lineage.ErrInvalid, "several items"},
		{"returned several", func() error {
			_, err := main.Return(bg, lineage.Together(lineage.User("a"), lineage.User("b")))
			return err
		}, lineage.ErrInvalid, "several items"},
		{"summary", func() error { return main.DeleteSummary(bg, noSummary) }, lineage.ErrNotFound, noSummary.String()},
		{"summary of missing summaries", func() error {
			_, err := main.Summarize(bg, echo{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{noSummary}})
			return err
		}, lineage.ErrNotFound, noSummary.String()},
		{"summarize: no summaries given", func() error {
			_, err := main.Summarize(bg, echo{}, lineage.SummarizeOptions{Parts: []structure.SummaryID{}})
			return err
		}, lineage.ErrInvalid, "no summaries"},
		{"summary by nobody", func() error { _, err := main.Summarize(bg, nil, lineage.SummarizeOptions{}); return err }, lineage.ErrInvalid, "no summarizer"},
		{"summary of summaries by nobody", func() error {
			_, err := main.Summarize(bg, nil, lineage.SummarizeOptions{Parts: []structure.SummaryID{noSummary}})
			return err
		}, lineage.ErrInvalid, "no summarizer"},
		{"negative budget", func() error { _, err := main.Resolve(bg, lineage.ResolveOptions{Budget: -1}); return err }, lineage.ErrInvalid, "-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, err := s.View().Head(bg)
			require.NoError(t, err)
			err = test.do()
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
			after, err := s.View().Head(bg)
			require.NoError(t, err)
			require.Equal(t, before, after, "it failed but left something behind")
		})
	}
}

func TestTipErrorHasTheTip(t *testing.T) {
	c := newContext(t, newStore(t), "one", "two")
	_, err := c.ExtendFrom(bg, lineage.SpanRef{}, lineage.User("three"))
	var moved *lineage.TipError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, c.ID(), moved.Context)
	require.Equal(t, lineage.SpanRef{}, moved.Expected)
	require.Equal(t, tip(t, c), moved.Actual)
}

// A change during which the disk failed may or may not be stored, and is the last one.
func TestDiskThatFails(t *testing.T) {
	disk, dir := crashfs.New(), t.TempDir()
	engine, err := embedded.Open(bg, dir, embedded.Options{FS: disk})
	require.NoError(t, err)
	s := lineage.New(engine)
	c := newContext(t, s, "one")
	disk.FailSyncs(os.ErrDeadlineExceeded)
	_, err = c.Extend(bg, lineage.User("two"))
	require.ErrorIs(t, err, lineage.ErrUncertain)
	require.ErrorIs(t, err, lineage.ErrReadOnly)
	require.Equal(t, []string{"one", "two"}, texts(t, c))
	_, err = c.Extend(bg, lineage.User("three"))
	require.ErrorIs(t, err, lineage.ErrReadOnly)
	require.NotErrorIs(t, err, lineage.ErrUncertain)
	require.Error(t, s.Close(), "what may be lost is not closed in silence")
	disk.FailSyncs(nil)

	engine, err = embedded.Open(bg, dir, embedded.Options{FS: disk})
	require.NoError(t, err)
	s = lineage.New(engine)
	defer s.Close()
	c, err = s.Context(bg, c.ID())
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, texts(t, c))
	say(t, c, "three")
}

func TestNoMessages(t *testing.T) {
	thread, _ := newThread(t, newStore(t))
	_, err := thread.SetCheckpoint(bg, "c", lineage.CheckpointOptions{})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.ErrorContains(t, err, "no messages in conversation")
}

func TestOnlyBranchIsProtected(t *testing.T) {
	thread, _ := newThread(t, newStore(t))
	require.NoError(t, renameBranch(thread, "main", "first"))
	err := thread.DeleteBranch(bg, "first")
	require.ErrorIs(t, err, lineage.ErrProtected)
	require.ErrorContains(t, err, "first")
}

func TestClosed(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	at := say(t, c, "one")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing is safe to repeat")
	for name, do := range map[string]func() error{
		"extend":     func() error { _, err := c.Extend(bg, lineage.User("")); return err },
		"fork":       func() error { _, err := c.Fork(bg, lineage.ForkOptions{}); return err },
		"all":        func() error { _, err := c.All(bg); return err },
		"history":    func() error { _, err := gather(s.History(bg, at, lineage.Window{})); return err },
		"digest":     func() error { _, err := c.Digest(bg); return err },
		"branches":   func() error { _, err := thread.Branches(bg); return err },
		"checkpoint": func() error { _, err := thread.SetCheckpoint(bg, "c", lineage.CheckpointOptions{}); return err },
		"threads":    func() error { _, err := gather(s.Threads(bg, lineage.ThreadQuery{})); return err },
		"thread":     func() error { _, err := s.CreateThread(bg, lineage.ThreadOptions{}); return err },
		"put":        func() error { _, _, err := s.Put(bg, strings.NewReader(""), lineage.BlockOptions{}); return err },
		"changes":    func() error { _, err := gather(s.Changes(bg, lineage.Cursor{})); return err },
		"watch":      func() error { _, err := gather(s.Watch(bg, lineage.Cursor{})); return err },
		"watch one":  func() error { _, err := gather(c.Watch(bg, at)); return err },
		"verify":     func() error { _, err := gather(s.Verify(bg, lineage.VerifyOptions{})); return err },
		"stats":      func() error { _, err := s.Stats(bg); return err },
		"sync":       func() error { return s.Sync(bg) },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, do(), lineage.ErrClosed) })
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	c := newContext(t, s, "one")
	require.NoError(t, s.Close())
	s, err := lineage.Open(bg, dir, lineage.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	c, err = s.Context(bg, c.ID())
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, texts(t, c))
	_, err = c.Extend(bg, lineage.User("two"))
	require.ErrorIs(t, err, lineage.ErrReadOnly)
}

func TestMustExist(t *testing.T) {
	_, err := lineage.Open(bg, t.TempDir()+"/none", lineage.Options{MustExist: true})
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

// otherProcess runs a test of this file in another process and passes a text in the environment.
func otherProcess(t *testing.T, variable, text string) {
	t.Helper()
	other := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), variable+"="+text)
	out, err := other.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestLocked lets another process try to open the store exclusively.
func TestLocked(t *testing.T) {
	const variable = "LINEAGE_TEST_LOCKED"
	if dir := os.Getenv(variable); dir != "" {
		_, err := lineage.Open(bg, dir, lineage.Options{NeverConnect: true})
		var locked *lineage.LockedError
		if !errors.Is(err, lineage.ErrLocked) || !errors.As(err, &locked) || locked.PID != os.Getppid() {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	open(t, dir)
	otherProcess(t, variable, dir)
}

// TestShared lets another process use a store that this one has open.
func TestShared(t *testing.T) {
	const variable = "LINEAGE_TEST_SHARED"
	if id, dir, _ := strings.Cut(os.Getenv(variable), " "); dir != "" {
		s := open(t, dir)
		who, err := s.Processes(bg)
		require.NoError(t, err)
		require.False(t, who.Owns)
		require.Equal(t, os.Getppid(), who.Owner.PID)
		require.Len(t, who.Guests, 1)
		parent, err := structure.ParseID[lineage.ContextID](id)
		require.NoError(t, err)
		c, err := s.Context(bg, parent)
		require.NoError(t, err)
		require.Equal(t, []string{"one"}, texts(t, c))
		say(t, c, "two")
		_, err = c.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
			c, err := tx.Context(bg, parent)
			if err == nil {
				_, err = c.Extend(bg, lineage.User("three"))
			}
			return err
		}))
		large := strings.Repeat("a large body ", 100_000)
		_, err = c.Extend(bg, lineage.User(large))
		require.NoError(t, err)
		got := texts(t, c)
		require.Len(t, got, 4)
		require.Equal(t, []string{"one", "two", "three"}, got[:3])
		body, err := s.Body(bg, content.Sum([]byte(large)))
		require.NoError(t, err)
		read, err := io.ReadAll(body)
		require.NoError(t, err)
		require.True(t, string(read) == large)
		report, err := s.Backup(bg, filepath.Join(t.TempDir(), "copy"), lineage.BackupOptions{})
		require.NoError(t, err)
		require.NotZero(t, report.Commit)
		_, err = s.Collect(bg, lineage.CollectOptions{})
		require.NoError(t, err)
		_, err = s.Pack(bg, lineage.PackOptions{All: true})
		require.NoError(t, err)
		for finding, err := range s.Verify(bg, lineage.VerifyOptions{Deep: true}) {
			t.Fatal(finding, err)
		}
		return
	}
	dir := t.TempDir()
	s := open(t, dir)
	c := newContext(t, s, "one")
	otherProcess(t, variable, c.ID().String()+" "+dir)
	require.Equal(t, []string{"one", "two", "three"}, texts(t, c)[:3])
	who, err := s.Processes(bg)
	require.NoError(t, err)
	require.True(t, who.Owns)
	// Two handles of one process are one store.
	again := open(t, dir)
	other, err := again.Context(bg, c.ID())
	require.NoError(t, err)
	forked, err := c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	_, err = forked.Merge(bg, other)
	require.NoError(t, err)
}

func TestCancelledChangesNothing(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	say(t, c, "one")
	before, err := s.View().Head(bg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for name, do := range map[string]func() error{
		"extend":    func() error { _, err := c.Extend(ctx, lineage.User("two")); return err },
		"large":     func() error { _, err := c.Extend(ctx, lineage.User(largeText)); return err },
		"fork":      func() error { _, err := c.Fork(ctx, lineage.ForkOptions{}); return err },
		"aside":     func() error { _, err := thread.CreateBranch(ctx, "", lineage.BranchOptions{}); return err },
		"all":       func() error { _, err := c.All(ctx); return err },
		"watch":     func() error { _, err := gather(s.Watch(ctx, lineage.Cursor{})); return err },
		"watch one": func() error { _, err := gather(c.Watch(ctx, lineage.SpanRef{})); return err },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, do(), context.Canceled) })
	}
	after, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, []string{"one"}, texts(t, c))
}
