package sources_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/lineage-store/lineage/cmd/lineage/internal/sources"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/resume"
)

// crushTables are the tables of Crush that are read.
const crushTables = `CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, cost REAL NOT NULL DEFAULT 0.0, created_at INTEGER NOT NULL, blob BLOB);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL, model TEXT, created_at INTEGER NOT NULL);
CREATE TABLE secrets (id TEXT, session_id TEXT);
INSERT INTO secrets VALUES ('never read', 's1');
INSERT INTO sessions VALUES ('s1', NULL, 'First', 1.0, 1767225600, x'00ff'), ('s2', NULL, 'Second
line', 0.25, 1767225600, NULL);
INSERT INTO messages VALUES ('m1', 's1', 'user', '[{"type":"text","data":{"text":"Hello"}}]', NULL, 1767225600), ('m2', 's1', 'assistant', '[{"type":"text","data":{"text":"H"}}]', 'x', 1767225601), ('m1b', 's2', 'user', '[{"type":"text","data":{"text":"Hello"}}]', NULL, 1767225600);`

// databases is a machine with databases of agents.
type databases struct {
	t       *testing.T
	store   *lineage.Store
	home    string
	machine string
	minutes int
}

// touch gives a file a time of its own, so that it is not one that may still change.
func (d *databases) touch(path string) {
	d.minutes++
	at := time.Date(2026, 1, 1, 0, d.minutes, 0, 0, time.UTC)
	require.NoError(d.t, os.Chtimes(path, at, at))
}

func (d *databases) write(path string, statements ...string) {
	d.t.Helper()
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	db, err := sql.Open("sqlite", path)
	require.NoError(d.t, err)
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(d.t, err)
	}
	require.NoError(d.t, db.Close())
	d.touch(path)
}

func (d *databases) options() follow.Options {
	env := map[string]string{"HOME": d.home, "USERPROFILE": d.home}
	e, err := follow.NewEnvironment(func(name string) string { return env[name] })
	require.NoError(d.t, err)
	e.OS = "linux"
	return follow.Options{Once: true, Environment: e, Formats: sources.Formats(), Machine: follow.Machine{ID: d.machine, Name: d.machine}}
}

func (d *databases) follow() {
	d.t.Helper()
	require.NoError(d.t, follow.Run(context.Background(), d.store, d.options()))
}

// rows returns the rows of a session as the store has them, and how many lines it has recorded.
func (d *databases) rows(path string) (rows []string, recorded int64) {
	d.t.Helper()
	s, err := follow.FindSource(context.Background(), d.store, d.machine, path)
	require.NoError(d.t, err)
	var out bytes.Buffer
	require.NoError(d.t, s.Export(context.Background(), &out))
	for line := range strings.Lines(out.String()) {
		require.True(d.t, json.Valid([]byte(line)), line)
		rows = append(rows, strings.TrimSuffix(line, "\n"))
	}
	return rows, s.Recorded.Lines
}

// The sessions of Crush are found by its list of projects, and the last state of each of their rows is kept.
func TestFollowDatabases(t *testing.T) {
	home := t.TempDir()
	d := &databases{t: t, store: lineagetest.New(t, lineage.Options{}), home: home, machine: "m1"}
	project := filepath.Join(home, "work", "app")
	path := filepath.Join(project, ".crush", "crush.db")
	d.write(path, crushTables)
	list := filepath.Join(home, ".local", "share", "crush", "projects.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(list), 0o700))
	about := func(dirs ...string) {
		var all []map[string]string
		for _, dir := range dirs {
			all = append(all, map[string]string{"path": dir, "data_dir": filepath.Join(dir, ".crush")})
		}
		b, err := json.Marshal(map[string]any{"projects": all})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(list, b, 0o600))
		d.touch(list)
	}
	about(project, filepath.Join(home, "gone"))
	d.follow()

	thread, err := d.store.FindThread(context.Background(), "s1")
	require.NoError(t, err)
	info, err := thread.Info(context.Background())
	require.NoError(t, err)
	require.Contains(t, string(info.Metadata), `"cwd":`+string(quoted(project)))
	rows, recorded := d.rows(path + "/s1")
	first := []string{
		`{"table":"sessions","key":"s1","row":{"id":"s1","parent_session_id":null,"title":"First","cost":1.0,"created_at":1767225600,"blob":{"$blob":"AP8="}}}`,
		`{"table":"messages","key":"m1","row":{"id":"m1","session_id":"s1","role":"user","parts":[{"type":"text","data":{"text":"Hello"}}],"model":null,"created_at":1767225600}}`,
		`{"table":"messages","key":"m2","row":{"id":"m2","session_id":"s1","role":"assistant","parts":[{"type":"text","data":{"text":"H"}}],"model":"x","created_at":1767225601}}`,
	}
	require.Equal(t, first, rows)
	require.EqualValues(t, 7, recorded) // a part for each cell of JSON, and what is around it
	rows, _ = d.rows(path + "/s2")
	require.Contains(t, rows[0], `"title":"Second\nline"`)

	// Nothing has changed: nothing is written.
	head, err := d.store.View().Head(context.Background())
	require.NoError(t, err)
	d.follow()
	now, err := d.store.View().Head(context.Background())
	require.NoError(t, err)
	require.Equal(t, head, now)

	// A row that changes is recorded again, one that goes stays, and so do the rows of the other session.
	d.write(path, `UPDATE messages SET parts = '[{"type":"text","data":{"text":"Hello you"}}]' WHERE id = 'm2'; DELETE FROM messages WHERE id = 'm1b'`)
	d.follow()
	d.follow()
	rows, recorded = d.rows(path + "/s1")
	require.Equal(t, []string{first[0], first[1], strings.Replace(first[2], `"H"`, `"Hello you"`, 1)}, rows)
	require.EqualValues(t, 10, recorded)
	rows, recorded = d.rows(path + "/s2")
	require.Len(t, rows, 2)
	require.EqualValues(t, 4, recorded)

	// A new project is found when the list has it. Another machine has its own rows.
	other := filepath.Join(home, "work", "other")
	d.write(filepath.Join(other, ".crush", "crush.db"), strings.NewReplacer("'s1'", "'t1'", "'m1'", "'n1'", "'m2'", "'n2'", "'s2'", "'t2'", "'m1b'", "'n1b'").Replace(crushTables))
	about(project, other)
	d.follow()
	rows, _ = d.rows(filepath.Join(other, ".crush", "crush.db") + "/t1")
	require.Len(t, rows, 3)
	d.machine = "m2"
	d.follow()
	_, recorded = d.rows(path + "/s1")
	require.EqualValues(t, 7, recorded)

	// What is erased in messages is erased in rows.
	require.NoError(t, d.store.Erase(context.Background(), content.Sum([]byte("Hello"))))
	erased, err := follow.FindSource(context.Background(), d.store, "m1", path+"/s1")
	require.NoError(t, err)
	require.ErrorIs(t, erased.Export(context.Background(), io.Discard), lineage.ErrErased)

	// What was deleted in the store does not come back, and its rows go with it.
	require.NoError(t, thread.Delete(context.Background()))
	n, err := follow.ForgetDeleted(context.Background(), d.store)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	d.write(path, `UPDATE messages SET model = 'y'`)
	d.follow()
	_, err = follow.FindSource(context.Background(), d.store, d.machine, path+"/s1")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	listed, err := follow.List(context.Background(), d.store, d.options())
	require.NoError(t, err)
	n = 0
	for _, l := range listed {
		if l.Agent.Name == "crush" {
			require.EqualValues(t, 1, l.Files)
			require.NotEmpty(t, l.Tried)
			n++
		}
	}
	require.Equal(t, 2, n)
}

func quoted(text string) []byte { b, _ := json.Marshal(text); return b }

// A session that was made for OpenCode, which imports it into its database, is a branch of the thread: what OpenCode adds follows the
// position, and what it imported is no message again.
func TestResumedInADatabase(t *testing.T) {
	ctx := context.Background()
	home := t.TempDir()
	d := &databases{t: t, store: lineagetest.New(t, lineage.Options{}), home: home, machine: "m1"}
	thread, err := d.store.CreateThread(ctx, lineage.ThreadOptions{Title: "Mine"})
	require.NoError(t, err)
	active, err := thread.Active(ctx)
	require.NoError(t, err)
	spans, err := active.Extend(ctx, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	require.NoError(t, err)
	path := filepath.Join(home, ".local", "share", "opencode", "opencode.db")
	statements := []string{`CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text, version text, agent text, model text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);`}
	var sessions []*resume.Session
	for range 2 { // of one position
		s, err := resume.New(ctx, d.store, spans[1], resume.Options{Agent: "opencode", Thread: thread.ID(), Dir: home, Environment: d.options().Environment})
		require.NoError(t, err)
		_, err = s.Write(ctx)
		require.NoError(t, err)
		raw, err := os.ReadFile(s.File())
		require.NoError(t, err)
		var made struct {
			Messages []struct {
				Info  json.RawMessage
				Parts []json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(raw, &made))
		require.Len(t, made.Messages, 2)
		at := int64(1767225600000)
		add := func(id, info string, parts ...json.RawMessage) {
			at++
			statements = append(statements, fmt.Sprintf(`INSERT INTO message VALUES ('%s', '%s', %d, %d, '%s')`, id, s.ID, at, at, info))
			for i, part := range parts {
				statements = append(statements, fmt.Sprintf(`INSERT INTO part VALUES ('prt_%s_%d', '%s', '%s', %d, %d, '%s')`, id, i, id, s.ID, at, at, part))
			}
		}
		statements = append(statements, fmt.Sprintf(`INSERT INTO session (id, directory, title, time_created, time_updated) VALUES ('%s', '/w', 'Other', %d, %d)`, s.ID, at, at))
		for _, m := range made.Messages {
			var info struct{ ID string }
			require.NoError(t, json.Unmarshal(m.Info, &info))
			add(info.ID, string(m.Info), m.Parts...)
		}
		add(fmt.Sprintf("msg_ffffffffffff0000000000000%d", len(sessions)), `{"role":"user","time":{"created":1767225700000}}`, json.RawMessage(fmt.Sprintf(`{"type":"text","text":"more %d"}`, len(sessions))))
		sessions = append(sessions, s)
	}
	d.write(path, statements...)
	d.follow()
	d.follow()
	for i, s := range sessions {
		_, err := d.store.FindThread(ctx, s.ID)
		require.ErrorIs(t, err, lineage.ErrNotFound)
		b, err := thread.Branch(ctx, "opencode-"+strings.ToLower(s.ID[len(s.ID)-12:]))
		require.NoError(t, err)
		branch, err := d.store.Context(ctx, b.Context)
		require.NoError(t, err)
		var texts []string
		for e, err := range branch.Entries(ctx, lineage.Window{}) {
			require.NoError(t, err)
			text, err := d.store.Text(ctx, e)
			require.NoError(t, err)
			texts = append(texts, text)
		}
		require.Equal(t, []string{"one", "two", fmt.Sprintf("more %d", i)}, texts)
		rows, _ := d.rows(path + "/" + s.ID)
		require.NotEmpty(t, rows)
	}
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "Mine", info.Title)
}
