package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

func random(size int) []byte {
	r := rand.NewChaCha8([32]byte{7})
	b := make([]byte, size)
	_, _ = r.Read(b)
	return b
}

func TestEmptyStore(t *testing.T) {
	a, b := newStore(t), newStore(t)
	bytes := writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, bytes)
	require.Zero(t, head(t, b))
}

func TestChosenThreads(t *testing.T) {
	a, b := newStore(t), newStore(t)
	one, main := newThread(t, a, "one")
	two, _ := newThread(t, a, "two")
	say(t, main, "shared 1", "shared 2")
	forked, err := main.Fork(bg, lineage.ForkOptions{Thread: two.ID()})
	require.NoError(t, err)
	say(t, forked, "only in two")
	say(t, main, "only in one")

	report := bring(t, b, writeBundle(t, a, bundle.WriteOptions{Threads: []lineage.ThreadID{two.ID()}}))
	require.EqualValues(t, 1, report.Threads)
	require.Equal(t, []string{"shared 1", "shared 2", "only in two"}, texts(t, on(t, b, forked.ID())))
	_, err = b.Thread(bg, one.ID())
	require.ErrorIs(t, err, lineage.ErrNotFound)
	has, err := b.View().Has(bg, []content.ID{content.Sum([]byte("only in one"))})
	require.NoError(t, err)
	require.False(t, has[0])
	info, err := on(t, b, forked.ID()).Info(bg)
	require.NoError(t, err)
	require.Equal(t, main.ID(), info.Parent, "a parent that did not come along")
	requireSound(t, b)

	// The second bundle adds the other thread, of whose run a part is there.
	full := writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, full)
	requireSame(t, a, b)
	require.True(t, bytes.Equal(full, writeBundle(t, b, bundle.WriteOptions{})))
}

func TestChosenContext(t *testing.T) {
	a, b := newStore(t), newStore(t)
	thread, main := newThread(t, a, "one")
	say(t, main, "1", "2")
	_, err := thread.SetCheckpoint(bg, "here", lineage.CheckpointOptions{})
	require.NoError(t, err)
	side, err := main.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	say(t, side, "aside")
	say(t, main, "3")
	_, err = thread.SetCheckpoint(bg, "there", lineage.CheckpointOptions{})
	require.NoError(t, err)

	bring(t, b, writeBundle(t, a, bundle.WriteOptions{Contexts: []lineage.ContextID{side.ID()}}))
	require.Equal(t, []string{"1", "2", "aside"}, texts(t, on(t, b, side.ID())))
	copied, err := b.FindThread(bg, "one")
	require.NoError(t, err)
	points, err := copied.Checkpoints(bg)
	require.NoError(t, err)
	require.Len(t, points, 1)
	require.Equal(t, "here", points[0].Name)
	branches, err := copied.Branches(bg)
	require.NoError(t, err)
	require.Empty(t, branches)

	_, err = bundle.Write(bg, a, io.Discard, bundle.WriteOptions{Contexts: []lineage.ContextID{structure.NewID[lineage.ContextID]()}})
	require.ErrorIs(t, err, lineage.ErrNotFound)
	_, err = bundle.Write(bg, a, io.Discard, bundle.WriteOptions{Threads: []lineage.ThreadID{structure.NewID[lineage.ThreadID]()}})
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

func TestInventory(t *testing.T) {
	a, b := newStore(t), newStore(t)
	_, main := newThread(t, a, "one")
	body := random(3 << 20)
	_, err := main.Extend(bg, lineage.User("first"), lineage.Item{Kind: lineage.Asset, Filename: "big", Body: body})
	require.NoError(t, err)
	early := writeBundle(t, a, bundle.WriteOptions{})
	require.Greater(t, len(early), 3<<20)
	bring(t, b, early)

	have, err := bundle.Take(bg, b)
	require.NoError(t, err)
	var file, again bytes.Buffer
	n, err := have.WriteTo(&file)
	require.NoError(t, err)
	require.EqualValues(t, file.Len(), n)
	read := bundle.NewInventory()
	_, err = read.ReadFrom(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	_, err = read.WriteTo(&again)
	require.NoError(t, err)
	require.Equal(t, file.Bytes(), again.Bytes())

	edited := bytes.Clone(body)
	edited[1<<20] ^= 1
	_, err = main.Extend(bg, lineage.User("first"), lineage.Item{Kind: lineage.Asset, Filename: "big", Body: edited})
	require.NoError(t, err)
	full, part := writeBundle(t, a, bundle.WriteOptions{}), writeBundle(t, a, bundle.WriteOptions{Have: read})
	require.Less(t, len(part), 200<<10, "one chunk and what leads to it")

	// A store that lacks what was left out refuses it.
	empty := newStore(t)
	_, err = bundle.Import(bg, empty, bytes.NewReader(part), bundle.ImportOptions{})
	var missing *bundle.MissingError
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.Greater(t, missing.Count, 100)
	require.Contains(t, missing.First, "span")
	require.Zero(t, head(t, empty))

	bring(t, b, part)
	requireSame(t, a, b)
	bringAgain(t, b, full)
	requireSound(t, b)
	require.True(t, bytes.Equal(full, writeBundle(t, b, bundle.WriteOptions{})))

	for _, n := range []int{0, 7, 20, file.Len() / 2, file.Len() - 1} {
		_, err := bundle.NewInventory().ReadFrom(bytes.NewReader(file.Bytes()[:n]))
		require.ErrorIs(t, err, backend.ErrCorrupt)
		require.Equal(t, n < 8, errors.Is(err, bundle.ErrNoInventory), "%d bytes", n)
	}
	_, err = bundle.NewInventory().ReadFrom(bytes.NewReader(append(bytes.Clone(file.Bytes()), 0)))
	require.ErrorIs(t, err, backend.ErrCorrupt)
	for i := range file.Len() {
		b := bytes.Clone(file.Bytes())
		b[i] ^= 1
		_, err := bundle.NewInventory().ReadFrom(bytes.NewReader(b))
		require.True(t, errors.Is(err, backend.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), "byte %d: %v", i, err)
		require.Equal(t, i < 8, errors.Is(err, bundle.ErrNoInventory), "byte %d: %v", i, err)
	}
}

// TestLeftOutIsGone imports into a store that has lost content of its inventory.
func TestLeftOutIsGone(t *testing.T) {
	a, b := newStore(t), newStore(t)
	_, main := newThread(t, a, "one")
	thread, other := newThread(t, a, "two")
	say(t, main, "said in both")
	say(t, other, "only there")
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{Threads: []lineage.ThreadID{thread.ID()}}))
	have, err := bundle.Take(bg, b)
	require.NoError(t, err)
	say(t, main, "only there")
	part := writeBundle(t, a, bundle.WriteOptions{Have: have})
	copied, err := b.Thread(bg, thread.ID())
	require.NoError(t, err)
	require.NoError(t, copied.Delete(bg))
	_, err = b.Collect(bg, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	before := head(t, b)
	_, err = bundle.Import(bg, b, bytes.NewReader(part), bundle.ImportOptions{})
	var missing *bundle.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, 2, missing.Count, missing.First)
	require.Equal(t, before, head(t, b))
}

// copies returns two stores with a thread whose main branch says "1", "2".
func copies(t *testing.T) (a, b *lineage.Store, main lineage.ContextID) {
	a, b = newStore(t), newStore(t)
	_, c := newThread(t, a, "one")
	say(t, c, "1", "2")
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	return a, b, c.ID()
}

func TestForward(t *testing.T) {
	a, b, main := copies(t)
	say(t, on(t, a, main), "3")
	report := bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	require.EqualValues(t, 1, report.Moved)
	require.Equal(t, []string{"1", "2", "3"}, texts(t, on(t, b, main)))
	// In the other direction, an older history changes nothing.
	say(t, on(t, b, main), "4")
	old := writeBundle(t, a, bundle.WriteOptions{})
	bringAgain(t, b, old)
	bring(t, a, writeBundle(t, b, bundle.WriteOptions{}))
	require.Equal(t, []string{"1", "2", "3", "4"}, texts(t, on(t, a, main)))
	requireSame(t, a, b)
}

// back removes the last message of a context.
func back(t *testing.T, c *lineage.Context) {
	t.Helper()
	entries, err := c.Last(bg, 2)
	require.NoError(t, err)
	require.NoError(t, c.MoveTo(bg, entries[0].Span, "rewind"))
}

func TestRewound(t *testing.T) {
	a, b, main := copies(t)
	back(t, on(t, a, main))
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	require.Equal(t, []string{"1"}, texts(t, on(t, b, main)))
	requireSame(t, a, b)
	// In the other direction, ours was rewound and theirs was not.
	a, b, main = copies(t)
	back(t, on(t, b, main))
	bringAgain(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	require.Equal(t, []string{"1"}, texts(t, on(t, b, main)))
}

// A context whose history has the same digest is the same.
func TestReplacedByTheSame(t *testing.T) {
	s, other := newStore(t), newStore(t)
	_, c := newThread(t, s, "c")
	_, d := newThread(t, s, "d")
	say(t, c, "one")
	say(t, d, "one")
	early := writeBundle(t, s, bundle.WriteOptions{})
	bring(t, other, early)
	tip, err := d.Tip(bg)
	require.NoError(t, err)
	require.NoError(t, c.MoveTo(bg, tip, "replace"))
	full := writeBundle(t, s, bundle.WriteOptions{})
	bring(t, other, full)
	requireSame(t, s, other)
	bringAgain(t, other, full)
	bringAgain(t, other, early)
	requireSame(t, s, other)
}

func TestConflict(t *testing.T) {
	a, b, main := copies(t)
	say(t, on(t, a, main), "theirs 3", "theirs 4")
	say(t, on(t, b, main), "ours 3")
	theirs := writeBundle(t, a, bundle.WriteOptions{})

	_, err := bundle.Import(bg, b, bytes.NewReader(theirs), bundle.ImportOptions{OnConflict: bundle.Fail})
	var conflict *bundle.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, main, conflict.Context)
	require.Equal(t, []string{"1", "2", "ours 3"}, texts(t, on(t, b, main)))

	report := bring(t, b, theirs)
	require.Len(t, report.Conflicts, 1)
	require.Equal(t, []string{"1", "2", "ours 3"}, texts(t, on(t, b, main)))
	require.Equal(t, []string{"1", "2", "theirs 3", "theirs 4"}, texts(t, on(t, b, report.Conflicts[0].Theirs)))
	thread, err := b.FindThread(bg, "one")
	require.NoError(t, err)
	branch, err := thread.Branch(bg, "main-theirs")
	require.NoError(t, err)
	require.Equal(t, report.Conflicts[0].Theirs, branch.Context)
	active, err := thread.Branch(bg, "")
	require.NoError(t, err)
	require.Equal(t, "main", active.Name)
	bringAgain(t, b, theirs)
	requireSound(t, b)

	// Theirs is extended, and its branch is advanced.
	say(t, on(t, a, main), "theirs 5")
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	require.Equal(t, []string{"1", "2", "theirs 3", "theirs 4", "theirs 5"}, texts(t, on(t, b, branch.Context)))
	branches, err := thread.Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, 2)

	// The copy of theirs is extended here, too.
	say(t, on(t, b, branch.Context), "ours 6")
	say(t, on(t, a, main), "theirs 6")
	theirs = writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, theirs)
	branches, err = thread.Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, 3)
	bringAgain(t, b, theirs)
	requireSound(t, b)
}

// TestConflictBothWays imports in both directions, at the same time or one after the other. The
// copy of a context that one import created meets the copy that the other import creates.
func TestConflictBothWays(t *testing.T) {
	start := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for name, clock := range map[string]func() func() time.Time{
		"at the same time": func() func() time.Time { return func() time.Time { return start } },
		"apart":            ticking,
	} {
		for _, more := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", more ", more), func(t *testing.T) {
				a, b := open(t, t.TempDir(), clock()), open(t, t.TempDir(), clock())
				defer func() { require.NoError(t, errors.Join(a.Close(), b.Close())) }()
				_, c := newThread(t, a, "one")
				say(t, c, "1")
				bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
				say(t, c, "a's")
				say(t, on(t, b, c.ID()), "b's")
				copied := bring(t, b, writeBundle(t, a, bundle.WriteOptions{})).Conflicts[0].Theirs
				want := map[string]bool{"1 a's": true, "1 b's": true}
				if more { // the copy continues the history that it diverged from
					tip, err := on(t, b, c.ID()).Tip(bg)
					require.NoError(t, err)
					require.NoError(t, on(t, b, copied).MoveTo(bg, tip, "test"))
					say(t, on(t, b, copied), "more")
					want = map[string]bool{"1 a's": true, "1 b's": true, "1 b's more": true}
				}
				theirs := writeBundle(t, b, bundle.WriteOptions{})
				bring(t, a, theirs)
				bringAgain(t, a, theirs)
				bringAgain(t, a, theirs)
				seen := map[string]bool{}
				for id := range digests(t, a) {
					seen[strings.Join(texts(t, on(t, a, id)), " ")] = true
				}
				require.Equal(t, want, seen)
				requireSound(t, a)
				requireSound(t, b)
			})
		}
	}
}

func TestTakeTheirs(t *testing.T) {
	a, b, main := copies(t)
	say(t, on(t, a, main), "theirs")
	say(t, on(t, b, main), "ours")
	theirs := writeBundle(t, a, bundle.WriteOptions{})
	report, err := bundle.Import(bg, b, bytes.NewReader(theirs), bundle.ImportOptions{OnConflict: bundle.TakeTheirs})
	require.NoError(t, err)
	require.Equal(t, []bundle.Conflict{{Context: main, Theirs: main}}, report.Conflicts)
	require.Equal(t, []string{"1", "2", "theirs"}, texts(t, on(t, b, main)))
	bringAgain(t, b, theirs)
	require.NoError(t, on(t, b, main).Undo(bg))
	require.Equal(t, []string{"1", "2", "ours"}, texts(t, on(t, b, main)))
}

// TestSameSaidApart extends a history in both stores with the same messages.
func TestSameSaidApart(t *testing.T) {
	a, b, main := copies(t)
	say(t, on(t, a, main), "3", "4")
	say(t, on(t, b, main), "3")
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	require.Equal(t, []string{"1", "2", "3", "4"}, texts(t, on(t, b, main)))
	requireSound(t, b)
}

func TestLongRunApart(t *testing.T) {
	a, b, main := copies(t)
	for i := range 700 {
		say(t, on(t, a, main), string(rune('a'+i%26)))
	}
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	forked, err := on(t, a, main).Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	say(t, on(t, a, main), "x", "y", "theirs")
	say(t, forked, "z")
	say(t, on(t, b, main), "x", "y", "ours")
	theirs := writeBundle(t, a, bundle.WriteOptions{})
	report := bring(t, b, theirs)
	require.EqualValues(t, 2, report.Spans)
	require.Len(t, report.Conflicts, 1)
	require.Len(t, texts(t, on(t, b, forked.ID())), 703)
	bringAgain(t, b, theirs)
	requireSound(t, b)
}

// TestRunWasCut imports into a run whose end was collected. Nothing is added to that run.
func TestRunWasCut(t *testing.T) {
	a, b := newStore(t), newStore(t)
	c, err := a.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	say(t, c, "1", "2")
	_, err = c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	say(t, c, "3", "4")
	main, full := c.ID(), writeBundle(t, a, bundle.WriteOptions{})
	bring(t, b, full)
	require.NoError(t, on(t, b, main).Delete(bg))
	_, err = b.Collect(bg, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	bring(t, b, full)
	require.Equal(t, []string{"1", "2", "3", "4"}, texts(t, on(t, b, main)))
	bringAgain(t, b, full)
	requireSound(t, b)
}

func TestErased(t *testing.T) {
	a, b := newStore(t), newStore(t)
	_, main := newThread(t, a, "one")
	big := random(200 << 10)
	secret, empty, large := content.Sum([]byte("secret")), content.Sum(nil), content.Sum(big)
	say(t, main, "secret", "", "plain")
	_, err := main.Extend(bg, lineage.Item{Kind: lineage.Asset, Filename: "f", Body: big})
	require.NoError(t, err)
	before := writeBundle(t, a, bundle.WriteOptions{})
	for _, id := range []content.ID{secret, empty, large} {
		require.NoError(t, a.Erase(bg, id))
	}
	after := writeBundle(t, a, bundle.WriteOptions{})
	require.Less(t, len(after), 4<<10)

	report := bring(t, b, after)
	require.EqualValues(t, 3, report.Erased)
	requireSame(t, a, b)
	require.True(t, bytes.Equal(after, writeBundle(t, b, bundle.WriteOptions{})))
	_, err = b.Body(bg, secret)
	require.ErrorIs(t, err, lineage.ErrErased)
	requireSound(t, b)
	_, err = b.Collect(bg, lineage.CollectOptions{KeepUnused: -1})
	require.NoError(t, err)
	_, err = b.Pack(bg, lineage.PackOptions{All: true})
	require.NoError(t, err)
	requireSound(t, b)
	requireSame(t, a, b)
	bringAgain(t, b, after)

	// An older bundle does not restore it.
	bringAgain(t, b, before)
	requireSame(t, a, b)

	// Content that was erased there is kept here.
	c := newStore(t)
	bring(t, c, before)
	report = bring(t, c, after)
	require.EqualValues(t, 3, report.Kept)
	require.Equal(t, []string{"secret", "", "plain", "[application/octet-stream, 204800 bytes]"}, allTexts(t, on(t, c, main.ID())))

	// A new message stores it again, large or not.
	_, err = main.Extend(bg, lineage.User("secret"), lineage.Item{Kind: lineage.Asset, Filename: "g", Body: big})
	require.NoError(t, err)
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	for _, id := range []content.ID{secret, large} {
		r, err := b.Body(bg, id)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, r)
		require.NoError(t, err)
	}
	require.Equal(t, digests(t, a), digests(t, b))
	requireSound(t, b)
}

func allTexts(t *testing.T, c *lineage.Context) []string {
	entries, err := c.All(bg)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		require.False(t, e.Erased)
		all = append(all, e.Excerpt()) // large bodies are not in memory
	}
	return all
}

// TestSourcesTaken imports a message with a source id that another message here has.
func TestSourcesTaken(t *testing.T) {
	a, b := newStore(t), newStore(t)
	thread, main := newThread(t, a, "one")
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	_, err := main.Extend(bg, lineage.User("theirs").WithID("m1"))
	require.NoError(t, err)
	_, err = on(t, b, main.ID()).Extend(bg, lineage.User("ours").WithID("m1"))
	require.NoError(t, err)
	theirs := writeBundle(t, a, bundle.WriteOptions{})
	report := bring(t, b, theirs)
	require.EqualValues(t, 1, report.Sources)
	copied, err := b.Thread(bg, thread.ID())
	require.NoError(t, err)
	e, err := copied.Find(bg, "m1")
	require.NoError(t, err)
	require.Equal(t, "ours", e.Excerpt())
	entries, err := on(t, b, report.Conflicts[0].Theirs).All(bg)
	require.NoError(t, err)
	require.Equal(t, "m1", entries[0].SourceID)
	bringAgain(t, b, theirs)
	requireSound(t, b)
}

// TestThreadsOfAnotherIncarnation imports a thread that was created in both stores. Its messages
// belong to the thread here and are found there.
func TestThreadsOfAnotherIncarnation(t *testing.T) {
	a, b := newStore(t), newStore(t)
	for name, s := range map[string]*lineage.Store{"a": a, "b": b} {
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "both"})
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		_, err = main.Extend(bg, lineage.User("said in "+name).WithID("only in "+name))
		require.NoError(t, err)
	}
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	thread, err := b.Thread(bg, write.SourceThread("both"))
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		e, err := thread.Find(bg, "only in "+name)
		require.NoError(t, err)
		require.Equal(t, "said in "+name, e.Excerpt())
	}
	runs := 0
	for _, err := range b.View().RunsOf(bg, thread.ID(), structure.RunID{}) {
		require.NoError(t, err)
		runs++
	}
	require.Equal(t, 2, runs)
	requireSound(t, b)
}

// TestOriginsOfKnownContent imports content that both stores have with different origins.
func TestOriginsOfKnownContent(t *testing.T) {
	a, b := newStore(t), newStore(t)
	_, main := newThread(t, a, "one")
	_, other := newThread(t, b, "other")
	_, err := other.Extend(bg, lineage.Assistant("hello").From("their model"))
	require.NoError(t, err)
	say(t, main, "hello", "hello")
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	entries, err := on(t, b, main.ID()).All(bg)
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, content.OriginUser, e.Origin.Kind)
		require.Empty(t, e.Origin.ModelID)
	}
	require.Len(t, entries, 2)
}

// TestOriginsLeftToKnownContent imports a message without an origin of its own. Its content has
// another origin in the other store, and the bundle has it with messages that are there.
func TestOriginsLeftToKnownContent(t *testing.T) {
	a, b := newStore(t), newStore(t)
	context := func(s *lineage.Store, items ...lineage.Item) *lineage.Context {
		c, err := s.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		_, err = c.Extend(bg, items...)
		require.NoError(t, err)
		return c
	}
	context(b, lineage.Assistant("said by both"))
	context(a, lineage.User("said by both"))
	context(a, lineage.User("something else"))
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	c := context(a, lineage.Item{Kind: lineage.Asset, Filename: "said.txt", Content: content.Sum([]byte("said by both"))})
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	for _, s := range []*lineage.Store{a, b} {
		entries, err := on(t, s, c.ID()).All(bg)
		require.NoError(t, err)
		require.Equal(t, content.OriginUser, entries[0].Origin.Kind)
	}
	requireSound(t, b)
}

func TestDerived(t *testing.T) {
	a, b := newStore(t), newStore(t)
	_, main := newThread(t, a, "one")
	at := say(t, main, "draft")
	edited, err := main.Edit(bg, at, lineage.User("final"), lineage.EditOptions{})
	require.NoError(t, err)
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{Contexts: []lineage.ContextID{edited.ID()}}))
	line, err := b.Provenance(bg, content.Sum([]byte("final")))
	require.NoError(t, err)
	require.Len(t, line, 2)
	require.Equal(t, content.Sum([]byte("draft")), line[1].ID)
}

func TestNewerThreadWins(t *testing.T) {
	a, b, _ := copies(t)
	thread, err := a.FindThread(bg, "one")
	require.NoError(t, err)
	old := writeBundle(t, a, bundle.WriteOptions{})
	for range 40 { // so that its clock is ahead
		write.Of(a).Now()
	}
	require.NoError(t, thread.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = "newer"; return nil }))
	bring(t, b, writeBundle(t, a, bundle.WriteOptions{}))
	copied, err := b.FindThread(bg, "one")
	require.NoError(t, err)
	info, err := copied.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "newer", info.Title)
	bringAgain(t, b, old)
}

func TestReaderThatCannotSeek(t *testing.T) {
	a, _, _ := copies(t)
	b, to := writeBundle(t, a, bundle.WriteOptions{}), newStore(t)
	var done, total int64
	o := bundle.ImportOptions{Progress: func(d, of int64) { done, total = d, of }}
	_, err := bundle.Import(bg, to, io.MultiReader(bytes.NewReader(b[:len(b)-1])), o)
	require.ErrorIs(t, err, backend.ErrCorrupt)
	require.Zero(t, head(t, to))

	_, err = bundle.Import(bg, to, io.MultiReader(bytes.NewReader(b)), o)
	require.NoError(t, err)
	require.Equal(t, total, done)
	require.EqualValues(t, 2*len(b), total)
	requireSame(t, a, to)
	requireSound(t, to)
}

// TestOrderOfCreation creates branches and checkpoints of one time, and brings them to other stores,
// where more are created. All stores list them in the order of their creation.
func TestOrderOfCreation(t *testing.T) {
	now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }
	var stores [3]*lineage.Store
	for i := range stores {
		var err error
		stores[i], err = lineage.OpenMemory(bg, lineage.Options{Now: now})
		require.NoError(t, err)
		t.Cleanup(func() { _ = stores[i].Close() })
	}
	created, main := newThread(t, stores[0], "t")
	say(t, main, "hello")
	branches, checkpoints := []string{lineage.MainBranch}, []string{}
	for round, s := range stores {
		thread, err := s.Thread(bg, created.ID())
		require.NoError(t, err)
		for i := range 9 {
			name := fmt.Sprintf("%d-%d", 9-round, (i*5)%9)
			_, err := thread.CreateBranch(bg, name, lineage.BranchOptions{SourceID: fmt.Sprintf("%x", random(8+i)) + name})
			require.NoError(t, err)
			branches = append(branches, name)
			_, err = thread.SetCheckpoint(bg, name, lineage.CheckpointOptions{})
			require.NoError(t, err)
			checkpoints = append(checkpoints, name)
		}
		if round+1 < len(stores) {
			bring(t, stores[round+1], writeBundle(t, s, bundle.WriteOptions{}))
		}
	}
	bring(t, stores[0], writeBundle(t, stores[2], bundle.WriteOptions{}))
	thread := threadOf(t, stores[0], created.ID())
	b, err := thread.Branch(bg, branches[3])
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(bg, "renamed", on(t, stores[0], b.Context)))
	for _, s := range []*lineage.Store{stores[2], stores[0]} {
		if s == stores[0] {
			branches[3] = "renamed"
		}
		thread := threadOf(t, s, created.ID())
		infos, err := thread.Branches(bg)
		require.NoError(t, err)
		var listed []string
		for _, b := range infos {
			listed = append(listed, b.Name)
		}
		require.Equal(t, branches, listed)
		all, err := thread.Checkpoints(bg)
		require.NoError(t, err)
		listed = nil
		for _, c := range slices.Backward(all) {
			listed = append(listed, c.Name)
		}
		require.Equal(t, checkpoints, listed)
	}
}

func threadOf(t *testing.T, s *lineage.Store, id lineage.ThreadID) *lineage.Thread {
	t.Helper()
	thread, err := s.Thread(bg, id)
	require.NoError(t, err)
	return thread
}

// A bundle brings a thread whose source id is longer than one can be now, as stores of earlier versions have them.
func TestThreadWithALongID(t *testing.T) {
	from, to, long := newStore(t), newStore(t), strings.Repeat("x", backend.MaxSourceID+1)
	_, err := write.Of(from).Make(bg, func(b *write.Batch, _ write.Try) error {
		b.NewThread(write.Thread{SourceID: long})
		return nil
	})
	require.NoError(t, err)
	bring(t, to, writeBundle(t, from, bundle.WriteOptions{}))
	_, err = to.FindThread(bg, long)
	require.NoError(t, err)
}
