package importer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

func importText(t testing.TB, s *lineage.Store, name, text string, o importer.Options) importer.Report {
	t.Helper()
	report, err := importer.Import(context.Background(), s, archive.Stream(name, strings.NewReader(text)), o)
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	return report
}

// everything returns the whole content of a thread: its state, its contexts, and all entries with
// their blocks.
func everything(t testing.TB, s *lineage.Store, sourceID string) string {
	t.Helper()
	ctx := context.Background()
	thread, err := s.FindThread(ctx, sourceID)
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "%+v %s\n", info, info.Metadata)
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		state, err := c.Info(ctx)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%+v %s\n", state, state.Metadata)
		for e, err := range c.Entries(ctx, lineage.Window{}) {
			require.NoError(t, err)
			blocks, err := s.Provenance(ctx, e.Content)
			require.NoError(t, err)
			fmt.Fprintf(&b, "%+v %s %s %+v %v\n", e, e.Metadata, e.Body, blocks[0].Origin, blocks[0].CreatedAt)
		}
	}
	return b.String()
}

// Data of one user's conversation is never part of another user's with the same beginning, in any
// order of import.
func TestUsersWithEqualTexts(t *testing.T) {
	const account = `[{"uuid":"conv-%[1]s","name":"title %[1]s","created_at":"%[2]s","updated_at":"%[2]s","account":{"uuid":"account-%[1]s"},"chat_messages":[
{"uuid":"message-%[1]s","text":"hello","sender":"human","created_at":"%[2]s","updated_at":"%[2]s","attachments":[{"file_name":"%[1]s.txt","file_size":1,"extracted_content":"secret of %[1]s"}],"files":[]},
{"uuid":"answer-%[1]s","text":"hi","model":"model-%[1]s","sender":"assistant","created_at":"%[2]s","updated_at":"%[2]s","attachments":[],"files":[]}]}]`
	const bare = `[{"uuid":"conv-%[1]s","name":"title %[1]s","created_at":"%[2]s","updated_at":"%[2]s","account":{"uuid":"account-%[1]s"},"chat_messages":[
{"uuid":"message-%[1]s","text":"hello","sender":"human","created_at":"%[2]s","updated_at":"%[2]s","attachments":[],"files":[]},
{"uuid":"answer-%[1]s","text":"hi","sender":"assistant","created_at":"%[2]s","updated_at":"%[2]s","attachments":[],"files":[]}]}]`
	for name, forms := range map[string][2]string{"first": {account, bare}, "second": {bare, account}, "both": {account, account}, "none": {bare, bare}} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			importText(t, s, "conversations.json", fmt.Sprintf(forms[0], "alpha", "2024-02-03T04:05:06.007Z"), importer.Options{})
			report := importText(t, s, "conversations.json", fmt.Sprintf(forms[1], "beta", "2025-03-04T05:06:07.008Z"), importer.Options{})
			require.Zero(t, report.SharedMessages)
			for sourceID, foreign := range map[string][]string{"conv-beta": {"alpha", "2024-02-03"}, "conv-alpha": {"beta", "2025-03-04"}} {
				got := everything(t, s, sourceID)
				for _, word := range foreign {
					require.NotContains(t, got, word)
				}
			}
			stats, err := s.Stats(context.Background())
			require.NoError(t, err)
			require.EqualValues(t, 4, stats.Spans)
			requireSound(t, s)
		})
	}
}

// The same within one commit of one import, for users and models.
func TestOriginsOfEqualTexts(t *testing.T) {
	s := storetest.New(t)
	all := []*archive.Conversation{
		{SourceID: "a", UserID: "alice", Nodes: []archive.Node{{Role: "user", UserID: "alice", Body: []byte("hi")}, {Role: "assistant", Model: "m-alice", Body: []byte("hi")}}},
		{SourceID: "b", UserID: "bob", Nodes: []archive.Node{{Role: "user", UserID: "bob", Body: []byte("hi")}, {Role: "assistant", Model: "m-bob", Body: []byte("hi"), Type: "application/json"}}},
	}
	importMade(t, s, all)
	require.NotContains(t, everything(t, s, "a"), "bob")
	require.NotContains(t, everything(t, s, "b"), "alice")
	require.Contains(t, everything(t, s, "b"), "m-bob")
	requireNothingNew(t, s, all)
}

// A session resumed in another file, and a fork that copies its history, share equal messages.
func TestForksShareWhatIsEqual(t *testing.T) {
	ctx := context.Background()
	base, err := os.ReadFile(fixture("codex-made/rollout-base.jsonl"))
	require.NoError(t, err)
	meta, copied, _ := strings.Cut(string(base), "\n")
	forkMeta := strings.Replace(meta, `"id":"rollout-base"`, `"id":"rollout-copy","forked_from_id":"rollout-base"`, 1)
	const added = `{"timestamp":"2025-01-02T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}}` + "\n"
	fork := forkMeta + "\n" + copied + added

	const line = `{"parentUuid":%s,"isSidechain":false,"sessionId":"%s","type":"user","message":{"role":"user","content":"%s"},"uuid":"%s","timestamp":"2026-01-05T10:00:0%d.000Z"}` + "\n"
	session := func(id string, last string) string {
		return fmt.Sprintf(line, "null", id, "one", "u-1", 1) + fmt.Sprintf(line, `"u-1"`, id, "two", "u-2", 2) + fmt.Sprintf(line, `"u-2"`, id, last, "u-"+last, 3)
	}
	for name, c := range map[string]struct {
		base, fork     string
		baseID, forkID string
		shared         int64
		together       bool
	}{
		"codex":               {string(base), fork, "rollout-base", "rollout-copy", 5, false},
		"codex, other times":  {string(base), strings.ReplaceAll(fork, "2025-01-01T09", "2025-01-01T10"), "rollout-base", "rollout-copy", 0, false},
		"claude code":         {session("s-1", "three"), session("s-2", "four"), "s-1", "s-2", 2, true},
		"claude code, others": {session("s-1", "three"), strings.ReplaceAll(session("s-2", "four"), "u-", "v-"), "s-1", "s-2", 0, true},
	} {
		for _, user := range []string{"", "alice"} {
			t.Run(name+" "+user, func(t *testing.T) {
				s := storetest.New(t)
				o := importer.Options{UserID: user}
				var shared int64
				whole := zipped(t, file{"1.jsonl", []byte(c.base)}, file{"2.jsonl", []byte(c.fork)})
				if c.together {
					shared = importText(t, s, "z", string(whole), o).SharedMessages
				} else {
					importText(t, s, "", c.base, o)
					shared = importText(t, s, "", c.fork, o).SharedMessages
				}
				require.Equal(t, c.shared, shared)
				thread, err := s.FindThread(ctx, c.baseID)
				require.NoError(t, err)
				main, err := thread.Active(ctx)
				require.NoError(t, err)
				forkThread, err := s.FindThread(ctx, c.forkID)
				require.NoError(t, err)
				forked, err := forkThread.Active(ctx)
				require.NoError(t, err)
				of, err := main.All(ctx)
				require.NoError(t, err)
				in, err := forked.All(ctx)
				require.NoError(t, err)
				common := 0
				for common < min(len(of), len(in)) && of[common].Span == in[common].Span {
					common++
				}
				require.EqualValues(t, c.shared, common)
				requireSound(t, s)
				head, err := s.View().Head(ctx)
				require.NoError(t, err)
				require.Zero(t, importText(t, s, "z", string(whole), o).NewMessages)
				now, err := s.View().Head(ctx)
				require.NoError(t, err)
				require.Equal(t, head, now)
			})
		}
	}
	t.Run("not of another user", func(t *testing.T) {
		s := storetest.New(t)
		importText(t, s, "", string(base), importer.Options{UserID: "alice"})
		require.Zero(t, importText(t, s, "", fork, importer.Options{UserID: "bob"}).SharedMessages)
		require.NotContains(t, everything(t, s, "rollout-copy"), "alice")
		forkThread, err := s.FindThread(ctx, "rollout-copy")
		require.NoError(t, err)
		forked, err := forkThread.Active(ctx)
		require.NoError(t, err)
		info, err := forked.Info(ctx)
		require.NoError(t, err)
		require.Zero(t, info.Parent)
	})
}

// If a message has other metadata in a newer export, both versions are kept.
func TestMessageWhoseMetadataChanged(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	c := &archive.Conversation{SourceID: "c", Created: time.UnixMilli(1e12), Nodes: []archive.Node{
		{ID: "m1", Role: "user", Body: []byte("hi")}, {ID: "m2", Role: "assistant", Body: []byte("hello"), Metadata: []byte(`{"rating":0}`)},
	}}
	importMade(t, s, []*archive.Conversation{c})
	newer := *c
	newer.Nodes = append([]archive.Node(nil), c.Nodes...)
	newer.Nodes[1].Metadata = []byte(`{"rating":1}`)
	require.EqualValues(t, 1, importMade(t, s, []*archive.Conversation{&newer}).NewMessages)
	thread, err := s.FindThread(ctx, "c")
	require.NoError(t, err)
	active, err := thread.Active(ctx)
	require.NoError(t, err)
	entries, err := active.All(ctx)
	require.NoError(t, err)
	require.Equal(t, `{"rating":1}`, string(entries[1].Metadata))
	all, _ := histories(t, s, thread)
	require.Len(t, all, 2)
	requireNothingNew(t, s, []*archive.Conversation{&newer})
	requireNothingNew(t, s, []*archive.Conversation{c})
	require.True(t, json.Valid(entries[1].Metadata))
}

// A newer export with a different serialisation of messages adds only new and changed messages.
func TestOtherSerialisation(t *testing.T) {
	s := storetest.New(t)
	line := func(rating int, texts ...string) string {
		var messages []string
		for i, text := range texts {
			messages = append(messages, fmt.Sprintf(`{"uuid":"m%d","rating":%d,"sender":"human","text":%q%s}`, i, rating, text, strings.Repeat(" ", rating)))
		}
		return `[{"uuid":"c","name":"n","chat_messages":[` + strings.Join(messages, ",") + `]}]`
	}
	read := func(rating int, texts ...string) importer.Report {
		return importText(t, s, "", line(rating, texts...), importer.Options{Format: "claude"})
	}
	read(0, "one", "two")
	r := read(1, "one", "two", "three")
	require.EqualValues(t, 1, r.NewMessages)
	require.EqualValues(t, 2, r.Kept)
	thread, err := s.FindThread(t.Context(), "c")
	require.NoError(t, err)
	all, _ := histories(t, s, thread)
	require.Len(t, all, 1)
	r = read(2, "one", "2", "three")
	require.EqualValues(t, 2, r.NewMessages)
	require.EqualValues(t, 1, r.Kept)
	r = read(3, "one", "2", "three")
	require.Zero(t, r.NewMessages)
	require.EqualValues(t, 3, r.Kept)
	all, _ = histories(t, s, thread)
	require.Len(t, all, 2)
	requireSound(t, s)
}

// A user who is named later does not change the identity of messages.
func TestUserIsNamedLater(t *testing.T) {
	s := storetest.New(t)
	importText(t, s, "", oneConversation, importer.Options{})
	require.Zero(t, importText(t, s, "", oneConversation, importer.Options{UserID: "alice"}).NewMessages)
	require.Zero(t, importText(t, s, "", oneConversation, importer.Options{}).NewMessages)
}

// A copied session shares its messages, also where records that are no messages come before them, in one file or in two.
func TestCopiesBehindRecords(t *testing.T) {
	session := func(id string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `{"parentUuid":null,"type":"progress","sessionId":%q,"uuid":"p%d","data":{"type":"hook"}}`+"\n", id, i)
		}
		for i := range 40 {
			parent := "null"
			if i > 0 {
				parent = fmt.Sprintf(`"m%d"`, i-1)
			}
			fmt.Fprintf(&b, `{"parentUuid":%s,"type":"user","sessionId":%q,"uuid":"m%d","timestamp":"2026-01-05T10:00:01.000Z","message":{"role":"user","content":"text %d"}}`+"\n", parent, id, i, i)
		}
		return b.String()
	}
	one, two := "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001", "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550002"
	together := t.TempDir()
	for _, id := range []string{one, two} {
		require.NoError(t, os.WriteFile(filepath.Join(together, id+".jsonl"), []byte(session(id)), 0o600))
	}
	apart, both := storetest.New(t), storetest.New(t)
	importText(t, apart, one+".jsonl", session(one), importer.Options{})
	report := importText(t, apart, two+".jsonl", session(two), importer.Options{})
	require.Zero(t, report.NewMessages)
	require.EqualValues(t, 40, report.SharedMessages)
	report, err := importer.Import(t.Context(), both, archive.Path(together), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 40, report.NewMessages)
	require.EqualValues(t, 40, report.SharedMessages)
	for _, s := range []*lineage.Store{apart, both} {
		requireSound(t, s)
	}
	for _, with := range []func(string) string{session, func(id string) string { // messages with other ids, and with answers
		records := session(id)
		return records[:strings.Index(records, `{"parentUuid":null,"type":"user"`)] + copiedSession(id, id[len(id)-1:], 1, "abc")
	}} {
		growing := storetest.New(t)
		importText(t, growing, one+".jsonl", with(one), importer.Options{})
		g := importer.Grow(growing, two+".jsonl", importer.Options{})
		records, messages := with(two), 0
		at := strings.Index(records, `"type":"user"`)
		at = strings.LastIndex(records[:at], "\n") + 1
		half := strings.LastIndex(records[:at/2], "\n") + 1
		for _, part := range []string{records[:half], records[half:at], records[at:]} {
			report, err := g.Read(t.Context(), strings.NewReader(part))
			require.NoError(t, err)
			require.Zero(t, report.NewMessages)
			messages += int(report.SharedMessages)
		}
		g.Close()
		require.EqualValues(t, common(t, growing, one, two), messages)
		require.NotZero(t, messages)
		requireSound(t, growing)
	}
}
