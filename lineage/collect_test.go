package lineage_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// collect runs a collection. Reachable data does not change; the machine no longer uses the rest.
func (m *machine) collect(t *rapid.T) {
	o := lineage.CollectOptions{KeepUnused: rapid.SampledFrom([]time.Duration{0, -1}).Draw(t, "keep unused")}
	_, err := m.s.Collect(bg, o)
	require.NoError(t, err)
	m.refs = slices.DeleteFunc(m.refs, func(ref lineage.SpanRef) bool {
		if ref.IsZero() {
			return false
		}
		_, err := m.s.Span(bg, ref)
		if err != nil {
			require.ErrorIs(t, err, lineage.ErrNotFound)
		}
		return err != nil
	})
	m.stored = slices.DeleteFunc(m.stored, func(text string) bool {
		has, err := m.s.View().Has(bg, []content.ID{content.Sum([]byte(text))})
		require.NoError(t, err)
		return !has[0] && !m.erased[text]
	})
}

// TestModelCollected compares random operations, including collections, with a model that never
// collects.
//
//test:norace
func TestModelCollected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		actions := m.actions()
		actions["collect"], actions["collect again"] = m.collect, m.collect
		actions["reopen"] = m.reopen
		actions[""] = m.check
		t.Repeat(actions)
	})
}

// Files that may hold deleted data are removed too, and the report names those that remain.
func TestCollectLeavesNoCopies(t *testing.T) {
	dir := t.TempDir()
	s, err := lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{Title: "a secret title", UserID: "secret-user"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	kept, err := os.ReadFile(filepath.Join(dir, "index.bolt"))
	require.NoError(t, err)
	require.Contains(t, string(kept), "secret-user")
	copies := []string{
		"index.bolt.before-repair", "search.db", "search.db-wal", "search.db-shm", "search.db-journal", "journal/0000000001.seg.64.cut",
	}
	for _, name := range copies {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), kept, 0o600))
	}

	s, err = lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	report, err := s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	require.Empty(t, report.Removed, "nothing went")
	require.Empty(t, report.Elsewhere)
	thread, err = s.Thread(bg, thread.ID())
	require.NoError(t, err)
	require.NoError(t, thread.Delete(bg))
	report, err = s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1, DryRun: true})
	require.NoError(t, err)
	require.Empty(t, report.Removed)
	require.NotEmpty(t, report.Elsewhere)
	report, err = s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	require.ElementsMatch(t, copies, report.Removed)
	require.NotEmpty(t, report.Elsewhere)
	for range 2 {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			require.NotContains(t, string(b), "secret", path)
			return err
		}))
		if s != nil {
			require.NoError(t, s.Close())
			s = nil
		}
	}
}

// A collection that could not remove a file with deleted data leaves that to the next one, also if nothing else is to be done.
func TestCollectAfterFailedRemoval(t *testing.T) {
	dir := t.TempDir()
	s, err := lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	thread, _ := newThread(t, s)
	require.NoError(t, thread.Delete(bg))
	name := filepath.Join(dir, "search.db")
	require.NoError(t, os.MkdirAll(filepath.Join(name, "in the way"), 0o700))
	o := lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1}
	_, err = s.Collect(bg, o)
	require.Error(t, err)
	require.NoError(t, os.RemoveAll(name))
	require.NoError(t, os.WriteFile(name, []byte("what was deleted"), 0o600))
	report, err := s.Collect(bg, o)
	require.NoError(t, err)
	require.Equal(t, []string{"search.db"}, report.Removed)
	report, err = s.Collect(bg, o)
	require.NoError(t, err)
	require.Empty(t, report.Removed)
}

// talk is a conversation and its texts.
type talk struct {
	thread *lineage.Thread
	said   []string
}

// Threads are written, read and deleted during collections. Nobody loses data, although some delete
// texts that others add again.
func TestCollectMeanwhile(t *testing.T) {
	dir := t.TempDir()
	s, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, SegmentSize: 64 << 10})
	require.NoError(t, err)
	const writers, rounds = 4, 60
	kept := make([][]*talk, writers)
	var working, collecting sync.WaitGroup
	for w := range writers {
		working.Go(func() { kept[w] = talkAndDelete(t, s, rand.New(rand.NewPCG(uint64(w), 9)), rounds) })
	}
	done := make(chan struct{})
	var collections int
	collecting.Go(func() {
		for {
			if _, err := s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1}); err != nil {
				t.Errorf("collect: %v", err)
				return
			}
			collections++
			select {
			case <-done:
				return
			default:
			}
		}
	})
	working.Wait()
	close(done)
	collecting.Wait()
	require.NotZero(t, collections)
	for range 2 {
		for _, talks := range kept {
			for _, talk := range talks {
				requireSaid(t, talk.thread, talk.said)
			}
		}
		requireSound(t, s)
		require.NoError(t, s.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, "index.bolt")))
		s, err = lineage.Open(bg, dir, lineage.Options{})
		require.NoError(t, err)
		for _, talks := range kept {
			for _, talk := range talks {
				talk.thread, err = s.Thread(bg, talk.thread.ID())
				require.NoError(t, err)
			}
		}
	}
	require.NoError(t, s.Close())
}

func talkAndDelete(t *testing.T, s *lineage.Store, choose *rand.Rand, rounds int) (talks []*talk) {
	for range rounds {
		if len(talks) == 0 || choose.IntN(4) == 0 {
			thread, err := s.CreateThread(bg, lineage.ThreadOptions{Title: "talk"})
			if !stillGood(t, err) {
				return nil
			}
			talks = append(talks, &talk{thread: thread})
		}
		i := choose.IntN(len(talks))
		on := talks[i]
		switch choose.IntN(8) {
		case 0:
			if !stillGood(t, on.thread.Delete(bg)) {
				return nil
			}
			talks = slices.Delete(talks, i, i+1)
		case 1:
			requireSaid(t, on.thread, on.said)
		case 2:
			c, err := on.thread.Active(bg)
			if !stillGood(t, err) {
				return nil
			}
			n := choose.IntN(len(on.said) + 1)
			if !stillGood(t, goBack(c, uint64(n))) {
				return nil
			}
			on.said = slices.Clone(on.said[:len(on.said)-n])
		default:
			text := fmt.Sprintf("what is said again and again, number %d", choose.IntN(30))
			if choose.IntN(4) == 0 {
				text = string(bytes.Repeat([]byte(text+"\n"), 3000)) // is cut
			}
			c, err := on.thread.Active(bg)
			if !stillGood(t, err) {
				return nil
			}
			if _, err := c.Extend(bg, lineage.Item{Role: "user", Body: []byte(text)}); !stillGood(t, err) {
				return nil
			}
			on.said = append(on.said, text)
		}
	}
	return talks
}

func stillGood(t *testing.T, err error) bool {
	if err != nil {
		t.Errorf("meanwhile: %v", err)
	}
	return err == nil
}

func requireSaid(t *testing.T, thread *lineage.Thread, said []string) {
	t.Helper()
	c, err := thread.Active(bg)
	if !stillGood(t, err) {
		return
	}
	n := 0
	for e, err := range c.Entries(bg, lineage.Window{}) {
		if !stillGood(t, err) {
			return
		}
		if n == len(said) || e.Content != content.Sum([]byte(said[n])) {
			t.Errorf("entry %d of %d is not what was said", n+1, len(said))
			return
		}
		n++
	}
	if n != len(said) {
		t.Errorf("%d entries of %d are left", n, len(said))
	}
}

// secret returns a text that can be searched for in files.
func secret(of string) string { return "<<the secret " + of + ">>" }

// secretThread creates a thread with secrets in every field that holds text, and content shared with
// others.
func secretThread(t *testing.T, s *lineage.Store, shared string) *lineage.Thread {
	t.Helper()
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{
		SourceID: secret("source"), UserID: secret("user"), Title: secret("title"), Metadata: []byte(`{"a":"` + secret("metadata") + `"}`),
	})
	require.NoError(t, err)
	c := activeOf(t, thread)
	large := strings.Repeat(secret("page")+"\n", 20_000)
	items := []lineage.Item{
		{Role: "user", Body: []byte(secret("message")), Metadata: []byte(`{"b":"` + secret("usage") + `"}`), SourceID: secret("message id")},
		{Role: "user", Body: []byte(shared)},
		{Role: secret("role"), Name: secret("name"), Body: []byte("what is said often"), Origin: lineage.Origin{UserID: secret("origin")}},
		{Kind: lineage.Document, Document: secret("document"), Body: []byte(large)},
		{Kind: lineage.Asset, Filename: secret("file"), Body: []byte(secret("asset"))},
	}
	for range 20 {
		items = append(items, lineage.Item{Role: "user", Body: []byte(secret("message") + fmt.Sprint(len(items)))})
	}
	_, err = c.Extend(bg, items...)
	require.NoError(t, err)
	_, err = thread.SetCheckpoint(bg, secret("checkpoint"), lineage.CheckpointOptions{})
	require.NoError(t, err)
	branch, err := thread.CreateBranch(bg, secret("branch"), lineage.BranchOptions{})
	require.NoError(t, err)
	say(t, branch, secret("message")+" on a branch")
	prompt := secret("prompt")
	require.NoError(t, setOverrides(branch, lineage.Overrides{SystemPrompt: &prompt}))
	back(t, branch, 2)
	say(t, branch, secret("message")+" after all")
	setValues(t, s, thread, c)
	return thread
}

// setValues sets values of the thread and a context, and replaces some.
func setValues(t *testing.T, s *lineage.Store, thread *lineage.Thread, c *lineage.Context) {
	t.Helper()
	got, err := write.Of(s).Engine().Thread(bg, thread.ID())
	require.NoError(t, err)
	tip, err := c.Tip(bg)
	require.NoError(t, err)
	for n := range 3 {
		quoted := func(of string) []byte { return fmt.Appendf(nil, "%q", fmt.Sprint(secret(of), n)) }
		body := structure.NewBlock(content.TypeJSON, content.BlockOrigin{}, write.Of(s).Now(), quoted("value in a block"))
		ofThread := structure.Owner{Scope: structure.ThreadScope, Thread: thread.ID()}
		ofContext := structure.Owner{Scope: structure.ContextScope, Context: c.ID()}
		_, err = write.Of(s).Engine().Apply(bg, &structure.Commit{Records: []structure.Record{
			body, &structure.Value{ValueKey: structure.ValueKey{Owner: ofThread, Key: secret("key")}, Incarnation: got.Incarnation, Content: body.ID, At: write.Of(s).Now()},
			&structure.Value{ValueKey: structure.ValueKey{Owner: ofContext, Key: "k"}, JSON: quoted("replaced value"), Seen: tip, At: write.Of(s).Now()},
			&structure.Value{ValueKey: structure.ValueKey{Owner: ofContext, Key: "k"}, JSON: quoted("value"), Seen: tip, At: write.Of(s).Now()},
		}}, backend.Options{})
		require.NoError(t, err)
	}
}

// After a thread is deleted and collected, none of its bytes is left in any file, packed or not;
// shared content is.
//
// feature: lineage/collection
//
//test:norace
func TestDeletedLeavesNoBytes(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprint("packed ", packed), func(t *testing.T) {
			dir := t.TempDir()
			s, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, SegmentSize: 32 << 10})
			require.NoError(t, err)
			other, c := newThread(t, s)
			shared := strings.Repeat("shared by both\n", 10_000)
			say(t, c, "before", shared, "what is said often")
			thread := secretThread(t, s, shared)
			say(t, c, "after", "what is said often")
			if packed {
				_, err := s.Pack(bg, lineage.PackOptions{All: true})
				require.NoError(t, err)
			}
			require.NoError(t, s.Close()) // which brings the index into its file
			require.NoError(t, os.WriteFile(filepath.Join(dir, "journal", "0000000001.seg.9999.cut"), []byte(secret("of a crash")), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "search.db"), []byte(secret("that can be found")), 0o600))
			s, err = lineage.Open(bg, dir, lineage.Options{})
			require.NoError(t, err)
			require.NotEmpty(t, filesWith(t, dir, secret("")[:12]))
			require.NotEmpty(t, commitsWith(t, s, secret("")[:12]))

			thread, err = s.Thread(bg, thread.ID())
			require.NoError(t, err)
			require.NoError(t, thread.Delete(bg))
			report, err := s.Collect(bg, lineage.CollectOptions{})
			require.NoError(t, err)
			require.Less(t, report.After, report.Before)
			for range 2 {
				require.Empty(t, commitsWith(t, s, secret("")[:12]))
				require.Empty(t, filesWith(t, dir, secret("")[:12]))
				other, err = s.Thread(bg, other.ID())
				require.NoError(t, err)
				requireSaid(t, other, []string{"before", shared, "what is said often", "after", "what is said often"})
				requireSound(t, s)
				require.NoError(t, s.Close())
				s, err = lineage.Open(bg, dir, lineage.Options{})
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
		})
	}
}

// Erased content is gone from every file, and so is the embedding of an erased summary. Histories that
// used it read a marker in its place.
//
//test:norace
func TestErasedLeavesNoBytes(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprint("packed ", packed), func(t *testing.T) { testErasedLeavesNoBytes(t, packed) })
	}
}

func testErasedLeavesNoBytes(t *testing.T, packed bool) {
	dir := t.TempDir()
	s, err := lineage.Open(bg, dir, lineage.Options{SegmentSize: 32 << 10})
	require.NoError(t, err)
	thread, c := newThread(t, s)
	said := []string{"before", secret("message"), strings.Repeat(secret("page")+"\n", 20_000), "after", ""}
	say(t, c, said...)
	digest, err := c.Digest(bg)
	require.NoError(t, err)
	embedding := secret("embedding")
	embed := func(context.Context, string) ([]float32, error) { return vector.Decode(nil, []byte(embedding)), nil }
	sum, err := c.Summarize(bg, saying("an innocent summary"), lineage.SummarizeOptions{Embed: embed})
	require.NoError(t, err)
	kept, err := c.Summarize(bg, saying("a summary that stays"), lineage.SummarizeOptions{Whole: true, Embed: func(context.Context, string) ([]float32, error) { return []float32{1}, nil }})
	require.NoError(t, err)
	if packed {
		_, err := s.Pack(bg, lineage.PackOptions{All: true})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close()) // which brings the index into its file
	require.NotEmpty(t, filesWith(t, dir, embedding))
	s, err = lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	thread, err = s.Thread(bg, thread.ID())
	require.NoError(t, err)
	require.Len(t, commitsWith(t, s, embedding), 1)
	require.NoError(t, s.Erase(bg, sum.Content))
	for _, text := range []string{said[1], said[2], said[4]} {
		require.NoError(t, s.Erase(bg, content.Sum([]byte(text))))
	}
	require.Empty(t, commitsWith(t, s, embedding))
	report, err := s.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3, report.Erased)
	require.NotZero(t, report.Chunks)
	for range 2 {
		require.Empty(t, commitsWith(t, s, secret("")[:12]))
		require.Empty(t, filesWith(t, dir, secret("")[:12]))
		entries, err := activeOf(t, thread).All(bg)
		require.NoError(t, err)
		require.Len(t, entries, len(said))
		for i, e := range entries {
			require.Equal(t, content.Sum([]byte(said[i])), e.Content)
			require.Equal(t, i == 1 || i == 2 || i == 4, e.Erased)
			_, err := s.Body(bg, e.Content)
			if e.Erased {
				require.ErrorIs(t, err, lineage.ErrErased)
			} else {
				require.NoError(t, err)
			}
		}
		summaries := gathered(t, activeOf(t, thread).Summaries(bg))
		require.Len(t, summaries, 2)
		require.True(t, summaries[0].Erased)
		require.Nil(t, summaries[0].Embedding)
		require.Equal(t, kept.Embedding, summaries[1].Embedding)
		same, err := activeOf(t, thread).Digest(bg)
		require.NoError(t, err)
		require.Equal(t, digest, same)
		requireSound(t, s)
		require.NoError(t, s.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, "index.bolt")))
		s, err = lineage.Open(bg, dir, lineage.Options{})
		require.NoError(t, err)
		thread, err = s.Thread(bg, thread.ID())
		require.NoError(t, err)
	}

	// Content that is stored again is readable, also after another collection.
	say(t, activeOf(t, thread), said[1])
	again, err := s.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.Zero(t, again.Records+again.Erased)
	entries, err := activeOf(t, thread).All(bg)
	require.NoError(t, err)
	require.Equal(t, said[1], entries[1].Excerpt())
	require.Equal(t, said[1], entries[5].Excerpt())
	say(t, activeOf(t, thread), "an innocent summary")
	require.Nil(t, gathered(t, activeOf(t, thread).Summaries(bg))[0].Embedding)
	require.NoError(t, s.Close())
}

// Content that was put but not used is kept for a while.
func TestUnusedContentIsKept(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{"soon used", strings.Repeat("soon used\n", 20_000)} {
		b, _, err := s.Put(bg, strings.NewReader(text), lineage.BlockOptions{})
		require.NoError(t, err)
		_, err = s.Collect(bg, lineage.CollectOptions{})
		require.NoError(t, err)
		body, err := s.Body(bg, b.ID)
		require.NoError(t, err)
		all, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, text, string(all))
		report, err := s.Collect(bg, lineage.CollectOptions{Now: time.Now().Add(lineage.DefaultKeepUnused + time.Hour)})
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Blocks)
		_, err = s.Body(bg, b.ID)
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
}

// An old reflog entry is deleted with the spans that it names; a recent one keeps them.
func TestCollectReflog(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one", "two")
	back(t, c, 1)
	left, err := c.Tip(bg)
	require.NoError(t, err)
	_, err = s.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Undo(bg))
	require.NoError(t, c.Undo(bg))
	report, err := s.Collect(bg, lineage.CollectOptions{Now: time.Now().Add(lineage.DefaultKeepReflog + time.Hour)})
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Spans)
	require.ErrorIs(t, c.Undo(bg), lineage.ErrNotFound)
	ref := say(t, c, "another two")
	require.NotEqual(t, left.Run, ref.Run, "the place of a span that is gone is not taken")
	require.Equal(t, []string{"one", "another two"}, texts(t, c))
}

// An open snapshot reads data that a collection deletes.
func TestCollectUnderSnapshot(t *testing.T) {
	dir := t.TempDir()
	s, err := lineage.Open(bg, dir, lineage.Options{SegmentSize: 8 << 10})
	require.NoError(t, err)
	thread := secretThread(t, s, "shared")
	snapshot, err := s.View().Snapshot(bg)
	require.NoError(t, err)
	tip, err := activeOf(t, thread).Tip(bg)
	require.NoError(t, err)
	require.NoError(t, thread.Delete(bg))
	_, err = s.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	count := 0
	for step, err := range snapshot.Path(bg, tip, lineage.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		for _, b := range step.Blocks {
			if b.Tree.IsZero() && strings.Contains(string(b.Body), secret("message")) {
				count++
			}
		}
	}
	require.Equal(t, 21, count)
	require.NoError(t, snapshot.Close())
	require.Empty(t, filesWith(t, dir, secret("")[:12]))
	require.NoError(t, s.Close())
}

// commitsWith returns the numbers of the commits that contain a text.
func commitsWith(t *testing.T, s *lineage.Store, text string) (found []uint64) {
	t.Helper()
	for change, err := range s.Changes(bg, lineage.Cursor{}) {
		require.NoError(t, err)
		for _, r := range change.Records {
			bodies := []byte(fmt.Sprintf("%+v", r))
			switch r := r.(type) {
			case *structure.Block:
				bodies = append(bodies, r.Body...)
			case *structure.Chunk:
				bodies = append(bodies, r.Bytes...)
			case *structure.Thread:
				bodies = append(bodies, r.Metadata...)
			case *structure.Value:
				bodies = append(bodies, r.JSON...)
			case *structure.Summary:
				bodies = append(bodies, r.Embedding...)
			case *structure.Span:
				for _, u := range r.Usages {
					bodies = append(bodies, u.Metadata...)
				}
			}
			if bytes.Contains(bodies, []byte(text)) {
				found = append(found, change.Commit.Number)
			}
		}
	}
	return found
}

// filesWith returns the files below a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	require.NoError(t, err)
	return found
}

// The type and origin of a usage remain, even if its content is erased and collected and then
// stored again by others with another type and origin.
func TestCollectKeepsUsagesOfErasedContent(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	body := []byte("bytes that mean two things")
	origin := lineage.Origin{Kind: content.OriginUser, UserID: "ada"}
	_, err := c.Extend(bg, lineage.Item{Kind: lineage.Asset, Filename: "a.png", Type: "image/png", Body: body, Origin: origin})
	require.NoError(t, err)
	require.NoError(t, s.Erase(bg, content.Sum(body)))
	_, known, err := s.Put(bg, bytes.NewReader(body), lineage.BlockOptions{Type: "text/plain", Origin: content.BlockOrigin{Kind: content.OriginAssistant}})
	require.NoError(t, err)
	require.False(t, known)
	check := func() {
		all, err := c.All(bg)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, body, all[0].Body)
		require.Equal(t, "image/png", all[0].Type)
		require.Equal(t, "ada", all[0].Origin.UserID)
	}
	check()
	_, err = s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	check()
}

// interrupted is an engine that calls do before a commit with records of certain kinds.
type interrupted struct {
	backend.Engine
	at []structure.Kind
	do func()
}

func (e *interrupted) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	wanted := func(r structure.Record) bool { return slices.Contains(e.at, r.Kind()) }
	if do := e.do; do != nil && slices.ContainsFunc(c.Records, wanted) {
		e.do = nil
		do()
	}
	return e.Engine.Apply(ctx, c, o)
}

// If a collection deletes the pieces of an uploaded body before it is used, the body is uploaded
// again, in every operation.
func TestStoredAgainAfterCollection(t *testing.T) {
	below := open(t, t.TempDir())
	engine := &interrupted{Engine: write.Of(below).Engine(), at: []structure.Kind{structure.KindSpan, structure.KindSummary}}
	s := lineage.New(engine)
	collected := 0
	arm := func() {
		engine.do = func() {
			report, err := below.Collect(bg, lineage.CollectOptions{KeepUnused: -1})
			require.NoError(t, err)
			require.NotZero(t, report.Chunks)
			collected++
		}
	}
	large := func(of string) string { return strings.Repeat("a large "+of+"\n", 100_000) }
	_, c := newThread(t, s)
	say(t, c, "first")
	spans, err := c.Extend(bg, lineage.User("second"))
	require.NoError(t, err)
	for name, do := range map[string]func(t *testing.T, text string) (*lineage.Context, error){
		"extend": func(_ *testing.T, text string) (*lineage.Context, error) {
			_, err := c.Extend(bg, lineage.User(text))
			return c, err
		},
		"replace": func(t *testing.T, text string) (*lineage.Context, error) {
			_, err = replaceAfter(s, c, tip(t, c), spans[0], lineage.User(text))
			return c, err
		},
		"say": func(t *testing.T, text string) (*lineage.Context, error) {
			_, to := newThread(t, s)
			_, _, err := addAndSend(s, c, to, lineage.Assistant(text), lineage.User(""))
			return to, err
		},
		"edit": func(_ *testing.T, text string) (*lineage.Context, error) {
			return c.Edit(bg, spans[0], lineage.User(text), lineage.EditOptions{})
		},
		"summarize": func(t *testing.T, text string) (*lineage.Context, error) {
			summary, err := c.Summarize(bg, saying(text), lineage.SummarizeOptions{Whole: true})
			if err != nil {
				return nil, err
			}
			require.Equal(t, content.Sum([]byte(text)), summary.Content)
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			arm()
			before := collected
			in, err := do(t, large(name))
			require.NoError(t, err)
			require.Equal(t, before+1, collected)
			if in != nil {
				entries, err := in.All(bg)
				require.NoError(t, err)
				require.Equal(t, content.Sum([]byte(large(name))), entries[len(entries)-1].Content)
			}
		})
	}
	requireSound(t, below)
}

// saying is a summarizer that always returns the same text.
type saying string

func (s saying) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: string(s), Model: "test"}, nil
}
