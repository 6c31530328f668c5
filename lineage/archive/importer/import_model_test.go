package importer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// madeFormat returns a format that yields generated conversations for any input.
func madeFormat(conversations []*archive.Conversation) importer.Options {
	return importer.Options{Outlines: importer.KeepAll(), Formats: []archive.Format{{
		Name:   "made",
		Detect: func(archive.Head) bool { return true },
		Read: func(context.Context, *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				for _, c := range conversations {
					copied := *c
					copied.Nodes, copied.Empty = slices.Clone(c.Nodes), slices.Clone(c.Empty)
					for i := range copied.Nodes {
						copied.Nodes[i].Attachments = slices.Clone(copied.Nodes[i].Attachments)
					}
					if !yield(&copied, nil) {
						return
					}
				}
			}
		},
	}}}
}

func importMade(t require.TestingT, s *lineage.Store, conversations []*archive.Conversation) importer.Report {
	report, err := importer.Import(context.Background(), s, archive.Stream("made", strings.NewReader("made")), madeFormat(conversations))
	require.NoError(t, err)
	return report
}

// conversations draws conversations that often have a common beginning.
func conversations(t *rapid.T, most int) []*archive.Conversation {
	count := rapid.IntRange(1, most).Draw(t, "conversations")
	out := make([]*archive.Conversation, count)
	for i := range out {
		c := &archive.Conversation{SourceID: fmt.Sprintf("c-%d", i), Title: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "title")}
		ids := rapid.IntRange(0, 2).Draw(t, "ids") // none, of its own, or those of others too
		linear := rapid.Bool().Draw(t, "linear")
		grow(t, c, ids, linear, rapid.IntRange(1, 12).Draw(t, "messages"))
		out[i] = c
	}
	return out
}

// grow adds messages to a conversation.
func grow(t *rapid.T, c *archive.Conversation, ids int, linear bool, messages int) {
	for range messages {
		k := len(c.Nodes)
		n := archive.Node{
			Role: rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"),
			Body: []byte(rapid.SampledFrom([]string{"a", "b", "c", "long"}).Draw(t, "body")),
		}
		if string(n.Body) == "long" {
			n.Body = bytes.Repeat([]byte("long "), 20_000)
		}
		switch ids {
		case 1:
			n.ID = fmt.Sprintf("%s-%d", c.SourceID, k)
		case 2:
			n.ID = fmt.Sprintf("m-%d", k)
		}
		if rapid.Bool().Draw(t, "has time") {
			n.Created = time.UnixMilli(1_700_000_000_000 + int64(k)).UTC()
		}
		if rapid.Bool().Draw(t, "has metadata") {
			n.Metadata = []byte(fmt.Sprintf(`{"n":%d}`, rapid.IntRange(0, 2).Draw(t, "metadata")))
		}
		if rapid.IntRange(0, 5).Draw(t, "has a file") == 0 {
			n.Attachments = []archive.Attachment{{Filename: "f.txt", Type: "text/plain", Body: []byte("file")}}
		}
		switch {
		case k == 0:
		case rapid.IntRange(0, 9).Draw(t, "root") == 0:
			n.Root = true
		case ids > 0 && !linear:
			n.Parent = c.Nodes[rapid.IntRange(0, k-1).Draw(t, "parent")].ID
		}
		if rapid.IntRange(0, 9).Draw(t, "aside") == 0 {
			n.Aside = rapid.SampledFrom([]string{"log", "agent x"}).Draw(t, "which")
			n.Root, n.Parent = true, ""
		}
		if ids == 0 && !n.Created.IsZero() && (n.Root || k == 0) { // without an id, it would be the same as an equal one with another time
			n.Body = fmt.Appendf(slices.Clip(n.Body), " %d", k)
		}
		c.Nodes = append(c.Nodes, n)
	}
	c.Current = ""
	if ids > 0 && rapid.Bool().Draw(t, "names its current") {
		for _, n := range slices.Backward(c.Nodes) {
			if n.Aside == "" {
				c.Current = n.ID
				break
			}
		}
	}
}

// expected has the texts on the paths to each leaf and to the current node of a conversation.
type expected struct {
	leaves  map[string]bool
	current string
	ids     map[string]string // by id, the history that ends there
}

func expect(c *archive.Conversation) expected {
	e := expected{leaves: make(map[string]bool), ids: make(map[string]string)}
	paths := make([]string, len(c.Nodes))
	kids := make([]bool, len(c.Nodes))
	byID := make(map[string]int)
	last := map[string]int{}
	for i, n := range c.Nodes {
		parent, ok := last[n.Aside]
		if !ok || n.Root {
			parent = -1
		}
		if n.Parent != "" {
			parent = byID[n.Parent]
		}
		if parent >= 0 {
			paths[i] = paths[parent]
			kids[parent] = kids[parent] || c.Nodes[parent].Aside == n.Aside
		}
		if n.Created.Equal(c.Created) {
			n.Created = time.Time{}
		}
		paths[i] += said(n.Role, n.Name, n.Body, len(n.Attachments), n.ID, n.Created, n.Metadata) + n.UserID + "/" + n.Model + "\n"
		last[n.Aside] = i
		if n.ID != "" {
			byID[n.ID] = i
			e.ids[n.ID] = paths[i]
		}
		if n.Aside == "" && c.Current == "" || n.ID != "" && n.ID == c.Current {
			e.current = paths[i]
		}
	}
	for i := range c.Nodes {
		if !kids[i] {
			e.leaves[paths[i]] = true
		}
	}
	return e
}

func said(role, name string, body []byte, files int, id string, created time.Time, metadata []byte) string {
	at := "-"
	if !created.IsZero() {
		at = created.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s/%s/%.20q/%d/%d/%s/%s/%s\n", role, strings.TrimPrefix(name, role), body, len(body), files, id, at, metadata)
}

// histories returns the texts of each context of a thread, and those of the active one.
func histories(t require.TestingT, s *lineage.Store, thread *lineage.Thread) (all map[string]bool, active string) {
	ctx := context.Background()
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	all = make(map[string]bool)
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		tip, err := c.Tip(ctx)
		require.NoError(t, err)
		h := historyAt(t, s, tip, info.CreatedAt)
		all[h] = true
		if c.ID() == info.Active {
			active = h
		}
	}
	return all, active
}

// historyAt writes a history as expect does. A message with the time of its thread had none.
func historyAt(t require.TestingT, s *lineage.Store, tip lineage.SpanRef, created time.Time) string {
	var b strings.Builder
	var first *lineage.Entry
	files := 0
	flush := func() {
		if first != nil {
			body := first.Body
			if body == nil {
				body = make([]byte, first.Size)
				r, err := s.Body(context.Background(), first.Content)
				require.NoError(t, err)
				_, err = r.Read(body[:20])
				require.NoError(t, err)
			}
			at := first.CreatedAt
			if at.Equal(created) {
				at = time.Time{}
			}
			b.WriteString(said(first.Role, first.Name, body, files, first.SourceID, at, first.Metadata) + first.Origin.UserID + "/" + first.Origin.ModelID + "\n")
		}
		first, files = nil, 0
	}
	for e, err := range s.History(context.Background(), tip, lineage.Window{}) {
		require.NoError(t, err)
		if e.Index == 0 {
			flush()
			first = e
		} else {
			files++
		}
	}
	flush()
	return b.String()
}

// requireImported requires that threads have the content of conversations.
func requireImported(t require.TestingT, s *lineage.Store, conversations []*archive.Conversation) {
	ctx := context.Background()
	for _, c := range conversations {
		thread, err := s.FindThread(ctx, c.SourceID)
		require.NoError(t, err)
		want := expect(c)
		have, active := histories(t, s, thread)
		for leaf := range want.leaves {
			covered := have[leaf]
			for h := range have {
				covered = covered || strings.HasPrefix(h, leaf)
			}
			require.True(t, covered, "conversation %s has no history\n%s", c.SourceID, leaf)
		}
		if want.current != "" {
			require.Equal(t, want.current, active, "where conversation %s stands", c.SourceID)
		}
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		own := slices.ContainsFunc(c.Nodes, func(n archive.Node) bool { return n.Aside == "" })
		if c.Title != "" && own { // a file with asides only, such as that of a subagent, does not change the title
			require.Equal(t, c.Title, info.Title)
		}
		for id, history := range want.ids {
			e, err := thread.Find(ctx, id)
			require.NoError(t, err)
			require.Equal(t, history, historyAt(t, s, e.Span, info.CreatedAt), "message %s", id)
		}
	}
}

// For any conversations, in one import or several, the stored content is that of the archive,
// importing again adds nothing, and a newer export adds what is new.
func TestImportModel(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s, err := lineage.Open(context.Background(), fmt.Sprintf("%s/%d", dir, n), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer s.Close()
		all := conversations(t, 5)
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		if cut > 0 {
			importMade(t, s, all[:cut])
		}
		importMade(t, s, all)
		requireImported(t, s, all)
		requireNothingNew(t, s, all)

		// A message is stored once for all histories.
		stats, err := s.Stats(context.Background())
		require.NoError(t, err)
		bodies := make(map[string]bool)
		for _, c := range all {
			for _, n := range c.Nodes {
				bodies[string(n.Body)] = true
			}
		}
		require.LessOrEqual(t, stats.Blocks, uint64(len(bodies)+1+5*2), "contents")

		for _, c := range all {
			c.Title = rapid.SampledFrom([]string{c.Title, "new"}).Draw(t, "new title")
			ids := 0
			if c.Nodes[0].ID != "" {
				ids = 2 - strings.Count(c.Nodes[0].ID, c.SourceID)
			}
			grow(t, c, ids, rapid.Bool().Draw(t, "linear"), rapid.IntRange(0, 4).Draw(t, "more"))
		}
		importMade(t, s, all)
		requireImported(t, s, all)
		requireNothingNew(t, s, all)
	})
}

func requireNothingNew(t require.TestingT, s *lineage.Store, all []*archive.Conversation) {
	head, err := s.View().Head(context.Background())
	require.NoError(t, err)
	again := importMade(t, s, all)
	for c, err := range s.View().Feed(context.Background(), head) {
		require.NoError(t, err)
		for _, r := range c.Records {
			require.Failf(t, "importing again made commits", "%v %+v", r.Kind(), r)
		}
	}
	require.Zero(t, again.NewMessages, "new messages")
	require.Zero(t, again.NewConversations)
}

// Conversations yielded in parts, or with a rest, are imported like whole ones.
func TestPartsAreTheWhole(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		open := func(name string) *lineage.Store {
			s, err := lineage.Open(context.Background(), fmt.Sprintf("%s/%d%s", dir, n, name), lineage.Options{Durability: lineage.Normal})
			require.NoError(t, err)
			return s
		}
		all := conversations(t, 3)
		whole, parts, rests := open("whole"), open("parts"), open("rests")
		defer whole.Close()
		defer parts.Close()
		defer rests.Close()
		var cut, rest []*archive.Conversation
		for _, c := range all {
			first, size := rapid.IntRange(0, len(c.Nodes)).Draw(t, "first"), rapid.IntRange(1, 4).Draw(t, "part of the rest")
			now := *c
			now.Nodes, now.Rest = c.Nodes[:first], func(yield func([]archive.Node) bool) {
				for some := range slices.Chunk(c.Nodes[first:], size) {
					if !yield(slices.Clone(some)) {
						return
					}
				}
			}
			rest = append(rest, &now)
		}
		for _, c := range all {
			for i := 0; i < len(c.Nodes); {
				size := rapid.IntRange(1, 4).Draw(t, "part")
				part := *c
				part.Nodes = c.Nodes[i:min(i+size, len(c.Nodes))]
				i += len(part.Nodes)
				part.More = i < len(c.Nodes)
				cut = append(cut, &part)
			}
		}
		importMade(t, whole, all)
		importMade(t, parts, cut)
		importMade(t, rests, rest)
		a, err := whole.Stats(context.Background())
		require.NoError(t, err)
		for _, s := range []*lineage.Store{parts, rests} {
			requireImported(t, s, all)
			b, err := s.Stats(context.Background())
			require.NoError(t, err)
			require.Equal(t, a.Spans, b.Spans)
			require.Equal(t, a.Contexts, b.Contexts)
			requireNothingNew(t, s, all)
		}
		requireNothingNew(t, whole, rest)
	})
}

// failing is an engine that fails after some commits.
type failing struct {
	backend.Engine
	left int
}

var errFull = errors.New("disk is full")

func (f *failing) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if f.left--; f.left < 0 {
		return backend.Receipt{}, errFull
	}
	return f.Engine.Apply(ctx, c, o)
}

// The base of a context depends on its parent at that time.
var base = regexp.MustCompile(`base=\d+ `)

// Importing again continues an import that was interrupted at any commit.
func TestInterruptedImportContinues(t *testing.T) {
	dir := t.TempDir()
	var all []*archive.Conversation
	for i := range 16 {
		c := &archive.Conversation{SourceID: fmt.Sprintf("c-%d", i), Title: "t"}
		for k := range 40 {
			n := archive.Node{Role: []string{"user", "assistant"}[k%2], Body: []byte(fmt.Sprintf("%d %d %s", i/2, min(k, 35+i%5), strings.Repeat("x", 300*(k%9))))}
			if i%3 > 0 {
				n.ID = fmt.Sprintf("m-%d", k)
				if k == 30 {
					n.Parent = "m-20"
				}
			}
			if k == 25 && i%7 == 0 {
				n.Body = []byte(strings.Repeat(fmt.Sprintf("large %d ", i), 40_000))
			}
			c.Nodes = append(c.Nodes, n)
		}
		all = append(all, c)
	}
	whole := storetest.New(t)
	importMade(t, whole, all)
	want := base.ReplaceAllString(stored(t, whole), "")
	for left := 0; ; left++ {
		s, err := lineage.Open(context.Background(), fmt.Sprintf("%s/%d", dir, left), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		broken := lineage.New(&failing{write.Of(s).Engine(), left})
		_, err = importer.Import(context.Background(), broken, archive.Stream("made", strings.NewReader("made")), madeFormat(all))
		if err != nil {
			require.ErrorIs(t, err, errFull)
		}
		importMade(t, s, all)
		requireImported(t, s, all)
		require.Equal(t, want, base.ReplaceAllString(stored(t, s), ""), "after %d commits", left)
		requireNothingNew(t, s, all)
		require.NoError(t, s.Close())
		if err == nil {
			require.Greater(t, left, 5)
			return
		}
	}
}

// The report of an interrupted import counts what is in the store, including a partial
// conversation.
func TestReportOfInterruptedImport(t *testing.T) {
	var all []*archive.Conversation
	for i := range 12 {
		c := &archive.Conversation{SourceID: fmt.Sprintf("c-%d", i)}
		for k := range 20 + 400*(i/11) {
			c.Nodes = append(c.Nodes, archive.Node{Role: "user", Body: []byte(fmt.Sprintf("%d %d %s", i, k, strings.Repeat("x", 800)))})
		}
		if i == 6 {
			c.Nodes[3].Body = []byte(strings.Repeat("large ", 400_000))
		}
		all = append(all, c)
	}
	ends := map[string]func(below backend.Engine, left int, cancel func()) backend.Engine{
		"failing": func(below backend.Engine, left int, _ func()) backend.Engine { return &failing{below, left} },
		"cancelled": func(below backend.Engine, left int, cancel func()) backend.Engine {
			return &meddling{below, left + 1, cancel}
		},
	}
	for name, engine := range ends {
		t.Run(name, func(t *testing.T) {
			for left := 0; ; left++ {
				s := storetest.New(t)
				ctx, cancel := context.WithCancel(context.Background())
				report, err := importer.Import(ctx, lineage.New(engine(write.Of(s).Engine(), left, cancel)), archive.Stream("made", strings.NewReader("made")), madeFormat(all))
				cancel()
				stats, statsErr := s.Stats(context.Background())
				require.NoError(t, statsErr)
				require.EqualValues(t, stats.Threads, report.NewConversations, "conversations after %d commits", left)
				require.EqualValues(t, stats.Spans, report.NewMessages, "messages after %d commits", left)
				require.EqualValues(t, stats.UniqueBytes, report.NewBytes, "bytes after %d commits", left)
				if err == nil {
					require.Greater(t, left, 5)
					return
				}
			}
		})
	}
}

// collecting is an engine that runs a collection after every commit.
type collecting struct {
	backend.Engine
	t testing.TB
}

func (c *collecting) Apply(ctx context.Context, commit *structure.Commit, o backend.Options) (backend.Receipt, error) {
	r, err := c.Engine.Apply(ctx, commit, o)
	if err == nil {
		_, err = c.Engine.(backend.Collector).Collect(ctx, backend.CollectOptions{Now: time.Now()})
	}
	return r, err
}

// Collections during an import delete nothing of a conversation that takes several commits.
func TestImportWhileCollecting(t *testing.T) {
	c := &archive.Conversation{SourceID: "c"}
	for k := range 300 {
		n := archive.Node{ID: fmt.Sprintf("m-%d", k), Role: "user", Body: []byte(fmt.Sprintf("%d %s", k, strings.Repeat("x", 5000)))}
		if k > 2 {
			n.Parent = fmt.Sprintf("m-%d", k-2) // two branches, side by side
		}
		c.Nodes = append(c.Nodes, n)
	}
	s := storetest.New(t)
	if _, ok := write.Of(s).Engine().(backend.Collector); !ok {
		t.Fatal("the engine does not collect")
	}
	all := []*archive.Conversation{c}
	importMade(t, lineage.New(&collecting{write.Of(s).Engine(), t}), all)
	requireImported(t, s, all)
	requireSound(t, s)
	requireNothingNew(t, s, all)
	stats, err := s.Stats(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Contexts, "what held on to the branches is gone")
}

// meddling is an engine on which another process changes something before commit n.
type meddling struct {
	backend.Engine
	left   int
	meddle func()
}

func (m *meddling) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if m.left--; m.left == 0 {
		m.meddle()
	}
	return m.Engine.Apply(ctx, c, o)
}

// Changes that others make to a thread during its import, also to a new one, are not overwritten, and do not end it.
func TestImportDoesNotOverwriteOthers(t *testing.T) {
	c := &archive.Conversation{SourceID: "c", Title: "theirs"}
	for k := range 900 {
		c.Nodes = append(c.Nodes, archive.Node{Role: "user", Body: []byte(fmt.Sprint("message ", k, strings.Repeat(" x", 200)))})
	}
	ctx, changes := context.Background(), 0
	for left := 1; ; left++ {
		s := storetest.New(t)
		meddled := false
		engine := &meddling{Engine: write.Of(s).Engine(), left: left, meddle: func() {
			thread, err := s.Thread(ctx, write.SourceThread("c"))
			if errors.Is(err, lineage.ErrNotFound) {
				return // not visible yet
			}
			require.NoError(t, err)
			require.NoError(t, thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = "mine"; return nil }))
			meddled = true
		}}
		importMade(t, lineage.New(engine), []*archive.Conversation{c})
		if meddled {
			changes++
			thread, err := s.Thread(ctx, write.SourceThread("c"))
			require.NoError(t, err)
			info, err := thread.Info(ctx)
			require.NoError(t, err)
			require.Equal(t, "mine", info.Title, "before commit %d", left)
		}
		untitled := *c
		untitled.Title = ""
		requireImported(t, s, []*archive.Conversation{&untitled})
		if engine.left > 0 { // the import ended before
			break
		}
	}
	require.Positive(t, changes)
}
