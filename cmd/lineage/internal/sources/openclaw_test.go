package sources_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/resume"
)

const openClawTables = `CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, entry_json TEXT, updated_at INTEGER, label TEXT);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, created_at INTEGER, updated_at INTEGER);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq));
CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT);
INSERT INTO auth_profile_store VALUES ('primary', 'SECRET');`

// openClaw is a database of OpenClaw with a session.
type openClaw struct {
	*databases
	path, id string
}

func newOpenClaw(t *testing.T, home, agent, id string) *openClaw {
	d := &databases{t: t, store: lineagetest.New(t, lineage.Options{}), home: home, machine: "m1"}
	o := &openClaw{databases: d, path: filepath.Join(home, ".openclaw", "agents", agent, "agent", "openclaw-agent.sqlite"), id: id}
	o.write(o.path, openClawTables, fmt.Sprintf(`INSERT INTO session_nodes VALUES ('agent:%[1]s:main', '{"token":"SECRET"}', 1, 'Greet'); INSERT INTO session_windows VALUES ('%[2]s', 'agent:%[1]s:main', 1, 1)`, agent, id))
	return o
}

func (o *openClaw) header() string {
	return `{"type":"session","version":4,"id":"` + o.id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`
}

func openClawSays(id, parent, role, text string) string {
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + up + `,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"` + role + `","content":"` + text + `"}}`
}

// event returns a statement that writes an event, as a text or compressed.
func (o *openClaw) event(seq int, event string, packed bool) string {
	if !packed {
		return fmt.Sprintf(`INSERT OR REPLACE INTO transcript_events VALUES ('%s', %d, '%s', 1, NULL, %d, NULL)`, o.id, seq, event, len(event))
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	require.NoError(o.t, err)
	defer e.Close()
	return fmt.Sprintf(`INSERT OR REPLACE INTO transcript_events VALUES ('%s', %d, NULL, 1, x'%x', %d, '{"SECRET":1}')`, o.id, seq, e.EncodeAll([]byte(event), nil), len(event))
}

// histories returns the texts of each branch of the session, those of the active one first.
func (o *openClaw) histories() (all [][]string) {
	ctx := context.Background()
	thread, err := o.store.FindThread(ctx, o.id)
	require.NoError(o.t, err)
	branches, err := thread.Branches(ctx)
	require.NoError(o.t, err)
	for _, b := range branches {
		var texts []string
		for e, err := range o.store.History(ctx, b.Head, lineage.Window{}) {
			require.NoError(o.t, err)
			text, err := o.store.Text(ctx, e)
			require.NoError(o.t, err)
			texts = append(texts, text)
		}
		if b.Active {
			all = append([][]string{texts}, all...)
		} else {
			all = append(all, texts)
		}
	}
	return all
}

// A session that was followed in a file of lines goes on in the database to which OpenClaw moves it. There its rows are kept while the program
// writes, compresses, changes and removes them, and nothing else of the database is. Another follower at the same time adds nothing.
func TestFollowOpenClaw(t *testing.T) {
	home := t.TempDir()
	const id = "01a22001-697f-772f-b4f5-ea342d6823c1"
	o := newOpenClaw(t, home, "main", id)
	lines := []string{o.header(), openClawSays("m1", "", "user", "Hello"), openClawSays("m2", "m1", "assistant", "Hi")}
	file := filepath.Join(home, ".openclaw", "agents", "main", "sessions", id+".jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	o.touch(file)
	o.follow()
	require.Equal(t, [][]string{{"Hello", "Hi"}}, o.histories())

	require.NoError(t, os.Remove(file))
	for i, line := range lines {
		o.write(o.path, o.event(i, line, i == 2))
	}
	// OpenClaw is running: what it wrote is in the log beside its database.
	running, err := sql.Open("sqlite", o.path)
	require.NoError(t, err)
	running.SetMaxOpenConns(1)
	for _, s := range []string{`PRAGMA journal_mode = wal`, `PRAGMA wal_autocheckpoint = 0`, o.event(3, openClawSays("m3", "m2", "user", "More"), true)} {
		_, err = running.Exec(s)
		require.NoError(t, err)
	}
	o.touch(o.path)
	entries := func() (names []string) {
		all, err := os.ReadDir(filepath.Dir(o.path))
		require.NoError(t, err)
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	there := entries()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { require.NoError(t, follow.Run(context.Background(), o.store, o.options())) })
	}
	both.Wait()
	o.follow()
	require.Equal(t, there, entries())
	require.Equal(t, [][]string{{"Hello", "Hi", "More"}}, o.histories())
	require.NoError(t, running.Close())
	rows, _ := o.rows(o.path + "/" + id)
	event := func(seq int, text string) string {
		return fmt.Sprintf(`{"table":"transcript_events","key":"%s/%d","row":{"session_id":"%[1]s","seq":%d,"event_json":%s,"created_at":1}}`, id, seq, text)
	}
	want := []string{
		`{"table":"session_windows","key":"` + id + `","row":{"session_id":"` + id + `","session_key":"agent:main:main","created_at":1}}`,
		`{"table":"session_nodes","key":"agent:main:main","row":{"session_key":"agent:main:main","label":"Greet"}}`,
		event(0, lines[0]), event(1, lines[1]), event(2, lines[2]), event(3, openClawSays("m3", "m2", "user", "More")),
	}
	require.Equal(t, want, rows)

	// What OpenClaw compresses, or changes beside the session, is nothing new.
	_, recorded := o.rows(o.path + "/" + id)
	o.write(o.path, o.event(1, lines[1], true), o.event(2, lines[2], false), `UPDATE session_windows SET updated_at = 2`, `UPDATE session_nodes SET updated_at = 2, entry_json = '{"other":"SECRET"}'`)
	o.follow()
	_, now := o.rows(o.path + "/" + id)
	require.Equal(t, recorded, now)

	// An event that is changed is a version. Those that are removed stay, on a branch of their own, and so does the whole session.
	o.write(o.path, o.event(3, openClawSays("m3", "m2", "user", "Other"), false))
	o.follow()
	require.ElementsMatch(t, [][]string{{"Hello", "Hi", "More"}, {"Hello", "Hi", "Other"}}, o.histories())
	o.write(o.path, `DELETE FROM transcript_events WHERE seq > 1`)
	o.follow()
	require.Equal(t, []string{"Hello"}, o.histories()[0])
	o.write(o.path, `DELETE FROM transcript_events`, `DELETE FROM session_windows`, `DELETE FROM session_nodes`)
	o.follow()
	require.ElementsMatch(t, [][]string{{"Hello", "Hi", "More"}, {"Hello", "Hi", "Other"}, {"Hello"}}, o.histories())
	want[5] = event(3, openClawSays("m3", "m2", "user", "Other"))
	rows, _ = o.rows(o.path + "/" + id)
	require.Equal(t, want, rows)

	listed, err := follow.List(context.Background(), o.store, o.options())
	require.NoError(t, err)
	i := slices.IndexFunc(listed, func(l follow.Listing) bool { return l.Agent.Name == "openclaw" })
	require.NotEmpty(t, listed[i].Tried)
	require.EqualValues(t, 1, listed[i].Files)

	thread, err := o.store.FindThread(context.Background(), id)
	require.NoError(t, err)
	active, err := thread.Active(context.Background())
	require.NoError(t, err)
	tip, err := active.Tip(context.Background())
	require.NoError(t, err)
	_, err = resume.New(context.Background(), o.store, tip, resume.Options{Agent: "openclaw", Dir: home, Thread: thread.ID(), Environment: o.options().Environment})
	require.ErrorIs(t, err, resume.ErrNoWayIn)
	require.ErrorContains(t, err, "OpenClaw: only the program may write its database")
}

// Whatever OpenClaw does with the events of a session, the last state of each row is in the store, and each history that the database had.
func TestFollowOpenClawModel(t *testing.T) {
	defer campaign.Checks(5)()
	rapid.Check(t, func(rt *rapid.T) {
		home, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(t, err)
		o := newOpenClaw(t, home, "main", "01a22001-697f-772f-b4f5-ea342d6823c1")
		type event struct {
			id, parent, text string
			packed           bool
		}
		var events []event // as the database has them
		kept := make(map[string]string)
		n := 0
		write := func(i int) {
			e := events[i]
			text := openClawSays(e.id, e.parent, "user", e.text)
			o.write(o.path, o.event(i+1, text, e.packed))
			kept[fmt.Sprintf("%s/%d", o.id, i+1)] = text
		}
		o.write(o.path, o.event(0, o.header(), false))
		for range rapid.IntRange(2, 8).Draw(rt, "steps") {
			n++
			switch at := rapid.IntRange(0, max(len(events)-1, 0)).Draw(rt, "at"); {
			case len(events) == 0 || rapid.IntRange(0, 5).Draw(rt, "what") > 2:
				e := event{id: fmt.Sprintf("m%d", n), text: fmt.Sprintf("text %d", n), packed: rapid.Bool().Draw(rt, "packed")}
				if len(events) > 0 {
					if e.parent = events[len(events)-1].id; rapid.IntRange(0, 2).Draw(rt, "branch") == 0 {
						e.parent = events[at].id
					}
				}
				events = append(events, e)
				write(len(events) - 1)
			case rapid.Bool().Draw(rt, "rewritten"):
				events[at].text, events[at].packed = fmt.Sprintf("text %d", n), !events[at].packed
				write(at)
			case rapid.Bool().Draw(rt, "compressed"):
				events[at].packed = !events[at].packed
				write(at)
			default:
				events = events[:at]
				o.write(o.path, fmt.Sprintf(`DELETE FROM transcript_events WHERE seq > %d`, at))
			}
			if rapid.Bool().Draw(rt, "later") {
				continue // it is changed again before it is read
			}
			o.follow()
			if len(events) == 0 {
				continue
			}
			texts, up := []string(nil), ""
			for i := len(events) - 1; i >= 0; i-- {
				if e := events[i]; i == len(events)-1 || e.id == up {
					texts, up = append(texts, e.text), e.parent
				}
			}
			slices.Reverse(texts)
			require.True(t, slices.ContainsFunc(o.histories(), func(h []string) bool { return len(h) >= len(texts) && slices.Equal(h[:len(texts)], texts) }), "%q in %q", texts, o.histories())
			rows, _ := o.rows(o.path + "/" + o.id)
			for i := range events {
				key := fmt.Sprintf("%s/%d", o.id, i+1)
				require.Contains(t, rows, fmt.Sprintf(`{"table":"transcript_events","key":"%s","row":{"session_id":"%s","seq":%d,"event_json":%s,"created_at":1}}`, key, o.id, i+1, kept[key]))
			}
		}
	})
}
