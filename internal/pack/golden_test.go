package pack

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
	"github.com/stretchr/testify/require"
)

// goldenCommits has a thread with a conversation, a fork, several kinds of content, and
// values.
func goldenCommits() []*structure.Commit {
	at := func(s int64) time.Time { return time.UnixMilli(1700000000000 + 1000*s).UTC() }
	id := func(n byte) (id [16]byte) {
		binary.BigEndian.PutUint64(id[:8], 1700000000000<<16|7<<12|5) // a UUID of version 7
		binary.BigEndian.PutUint64(id[8:], 2<<62|(1<<40+uint64(n)))
		return id
	}
	origin := content.BlockOrigin{Kind: content.OriginUser}
	thread := structure.DeriveID[structure.ThreadID]("thread", "chat-1")
	t := &structure.Thread{ID: thread, SourceID: "chat-1", UserID: "ann", Title: "Lisbon", Incarnation: 77, CreatedAt: at(0), UpdatedAt: at(0)}
	run, fork := structure.RunID(id(1)), structure.RunID(id(2))
	a, b := structure.ContextID(id(3)), structure.ContextID(id(4))
	say := func(n int, run structure.RunID, seq uint64, role, text string) []structure.Record {
		block := structure.NewBlock(content.TypeText, origin, at(int64(n)), []byte(text))
		source := "m-" + strings.Repeat("i", n)
		return []structure.Record{block, &structure.Span{Ref: structure.SpanRef{Run: run, Seq: seq}, Usages: []structure.Usage{{
			Kind: structure.MessageUsage, Content: block.ID, Role: role, SourceID: source, By: content.Attribution{UserID: "ann"}, CreatedAt: at(int64(n)),
			Lookup: 1, Metadata: []byte(`{"n":1}`),
		}}}}
	}
	again := *t
	again.Active, again.UpdatedAt = a, at(1)
	chunk := []byte(strings.Repeat("chunk of a large body. ", 40))
	tree := &structure.Block{
		Block: content.Block{ID: content.Sum(chunk), Type: content.TypeText, Size: int64(len(chunk)), CreatedAt: at(5)},
		Tree:  content.Root{Key: content.KeyOf(chunk), Size: int64(len(chunk))},
	}
	var many []structure.Record // of one commit that continues in other chapters
	for n := range 9 {
		many = append(many, say(6+n%3, run, uint64(3+n), "user", strings.Repeat("more of it ", n))...)
	}
	return []*structure.Commit{
		{Time: at(0), Records: []structure.Record{
			t, &structure.Context{ID: a, Thread: thread, CreatedAt: at(0)}, &structure.Branch{Thread: thread, Name: "main", Context: a, CreatedAt: at(0)}, &again,
		}},
		{Time: at(1), Records: append([]structure.Record{&structure.Run{ID: run, Home: t.Home()}}, append(say(1, run, 1, "user", "Plan a weekend in Lisbon."), &structure.Tip{Context: a, Span: structure.SpanRef{Run: run, Seq: 1}})...)},
		{Time: at(2), Records: append(say(2, run, 2, "assistant", "A weekend in Lisbon: begin in Alfama."), &structure.Tip{Context: a, Span: structure.SpanRef{Run: run, Seq: 2}})},
		{Time: at(3), Records: append([]structure.Record{
			&structure.Context{ID: b, Thread: thread, Parent: a, Base: structure.SpanRef{Run: run, Seq: 1}, Tip: structure.SpanRef{Run: run, Seq: 1}, CreatedAt: at(3)},
			&structure.Run{ID: fork, Parent: structure.SpanRef{Run: run, Seq: 1}, Home: t.Home()},
		}, say(3, fork, 1, "critic", "Too short a weekend.")...)},
		{Time: at(4), Records: []structure.Record{&structure.Deletion{Subject: structure.KindContext, Context: b, At: at(4)}}},
		{Time: at(5), Records: []structure.Record{&structure.Chunk{Key: content.KeyOf(chunk), Bytes: chunk}, tree, &structure.Block{Block: content.Block{ID: content.Sum([]byte("gone")), Type: content.TypeText, Size: 4, CreatedAt: at(5)}}}},
		{Time: at(5), Records: []structure.Record{
			&structure.Value{ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.UserScope, Name: "ann"}, Key: "theme"}, JSON: []byte(`"dark"`), At: at(5)},
			&structure.Value{ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.ThreadScope, Thread: thread}, Key: "step"}, Incarnation: 77, JSON: []byte("2"), At: at(5)},
			&structure.Value{ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.ContextScope, Context: a}, Key: "step"}, Content: tree.ID, Seen: structure.SpanRef{Run: run, Seq: 11}, At: at(5)},
			&structure.Value{ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.UserScope, Name: "ann"}, Key: "theme"}, At: at(5)},
		}},
		{Time: at(6), Records: append(many, &structure.Tip{Context: a, Span: structure.SpanRef{Run: run, Seq: 11}})},
	}
}

func TestGoldenPacks(t *testing.T) {
	t.Run("dense", func(t *testing.T) { goldenPack(t, "dense", true) }) // one chapter
	shrink(t)
	t.Run("chapters", func(t *testing.T) { goldenPack(t, "chapters", true) })
	t.Run("fast", func(t *testing.T) { goldenPack(t, "fast", false) })
}

func goldenPack(t *testing.T, name string, dense bool) {
	frames := framesOf(t, 4, goldenCommits())
	m := &memory{}
	w := NewWriter(m, layout.Header{First: 1, Last: 2, FirstCommit: 1, Store: [16]byte{9}, Dense: dense}, nil)
	for _, f := range frames {
		require.NoError(t, w.Add(f))
	}
	_, err := w.Finish()
	require.NoError(t, err)
	require.NoError(t, w.Prove(t.Context(), m, name))
	w.Close()
	file := filepath.Join("testdata", name+".golden")
	got := hex.Dump(m.b)
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o700))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	// Packs of an earlier version must be readable, whatever this version writes.
	old := undump(t, string(want))
	p, err := Open(&memory{old}, int64(len(old)), name, NewCache(1<<20))
	require.NoError(t, err)
	rows, err := p.table()
	require.NoError(t, err)
	require.Equal(t, name != "dense", rows[len(rows)-1].Rest != nil)
	method := map[string]byte{"fast": 1, "dense": 2, "chapters": 2}[name] // zstd and brotli
	methods := map[byte]int{}
	for _, r := range rows {
		for _, at := range r.Parts {
			methods[old[at.Offset]]++
		}
	}
	require.NotZero(t, methods[method])
	i := 0
	for f, err := range p.Frames(0, 0) {
		require.NoError(t, err)
		require.Equal(t, frames[i], f)
		i++
	}
	require.Len(t, frames, i)
	require.Equal(t, string(want), got)
}

func undump(t *testing.T, s string) (out []byte) {
	for line := range strings.Lines(s) {
		line = strings.ReplaceAll(line[10:min(len(line), 59)], " ", "")
		b, err := hex.DecodeString(strings.TrimSpace(line))
		require.NoError(t, err)
		out = append(out, b...)
	}
	return out
}

// A pack has the ids of its commits, stated by the same commits as in the
// segments.
func TestPackKeepsIdentities(t *testing.T) {
	frames := framesOf(t, 4, goldenCommits())
	p := write(t, frames, nil)
	i := 0
	for f, err := range p.Frames(0, 0) {
		require.NoError(t, err)
		require.Equal(t, frames[i].ID, f.ID, "commit %d", f.Number)
		i++
	}
	require.Equal(t, len(frames), i)
	require.NotZero(t, frames[0].ID)
	f, err := p.Frame(frames[0].Segment, frames[0].Start)
	require.NoError(t, err)
	require.Equal(t, frames[0].ID, f.ID)
}
