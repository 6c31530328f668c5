package archives_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	messages "github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

// openClawSchema has the tables of OpenClaw that are read, as its schema 23 has them without their constraints, and one with credentials.
const openClawSchema = `
CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL, created_at INTEGER, spawned_by TEXT,
	fork_source_session_id TEXT, label TEXT, display_name TEXT) STRICT;
CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT, reason TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
	channel TEXT, account_id TEXT, spawned_by TEXT) STRICT;
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,
	PRIMARY KEY (session_id, seq)) STRICT;
CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT NOT NULL);
INSERT INTO auth_profile_store VALUES ('primary', '{"key":"SECRET"}');`

// openClawEvents returns statements that add a session with these events.
func openClawEvents(session, key string, events ...string) (statements []string) {
	statements = append(statements, fmt.Sprintf(`INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at) VALUES (%[2]s, %[1]s, '{"token":"SECRET"}', 1)`, literal(session), literal(key)),
		fmt.Sprintf(`INSERT INTO session_windows (session_id, session_key, created_at, updated_at, account_id) VALUES (%s, %s, 1, 1, 'SECRET')`, literal(session), literal(key)))
	for i, e := range events {
		statements = append(statements, openClawEvent(session, i, e, i%2 == 1))
	}
	return statements
}

// openClawEvent returns a statement that adds an event, as a text or compressed.
func openClawEvent(session string, seq int, event string, packed bool) string {
	if !packed {
		return fmt.Sprintf(`INSERT OR REPLACE INTO transcript_events VALUES (%s, %d, %s, 1, NULL, %d, NULL)`, literal(session), seq, literal(event), len(event))
	}
	return fmt.Sprintf(`INSERT OR REPLACE INTO transcript_events VALUES (%s, %d, NULL, 1, x'%x', %d, '{"navigation":"SECRET"}')`, literal(session), seq, packed1(event), len(event))
}

// packed1 returns a text as a zstd frame.
func packed1(text string) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	defer e.Close()
	return e.EncodeAll([]byte(text), nil)
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func openClawHeader(id string) string {
	return `{"type":"session","version":4,"id":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada/work"}`
}

func openClawSays(id, parent, role, text string) string {
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + up + `,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"` + role + `","content":[{"type":"text","text":"` + text + `"}]}}`
}

const openClawID = "01a22001-697f-772f-b4f5-ea342d6823c1"

// openClawFile creates a database of an agent.
func openClawFile(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents", "main", "agent", "openclaw-agent.sqlite")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	execute(t, path, append([]string{openClawSchema}, statements...)...)
	return path
}

// The number of the eleventh event is the byte of a line break, so its text looks like a line of a session file.
func TestOpenClawIsNoSessionFile(t *testing.T) {
	events := []string{openClawHeader(openClawID)}
	for i := 1; i < 12; i++ {
		events = append(events, openClawSays(fmt.Sprintf("m%d", i), fmt.Sprintf("m%d", i-1), "user", "Say hello"))
	}
	path := openClawFile(t, `INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at) VALUES ('k', '`+openClawID+`', '{}', 1)`,
		`INSERT INTO session_windows (session_id, session_key, created_at, updated_at) VALUES ('`+openClawID+`', 'k', 1, 1)`)
	for i, e := range events {
		execute(t, path, openClawEvent(openClawID, i, e, false))
	}
	r := imported(t, storetest.New(t), path)
	require.Equal(t, []string{"openclaw"}, r.Formats)
	require.Empty(t, r.Skipped)
	require.EqualValues(t, 11, r.NewMessages)
}

// Only the tables and columns of sessions are read, where the file is: nothing else of it, and no copy of it.
func TestOpenClawHasCredentials(t *testing.T) {
	path := openClawFile(t, openClawEvents(openClawID, "agent:main:main", openClawHeader(openClawID), openClawSays("m1", "", "user", "Say hello"), openClawSays("m2", "m1", "assistant", "Hello"))...)
	execute(t, path, `UPDATE session_nodes SET label = 'Greet', display_name = 'A name'`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"openclaw"}, r.Formats)
	require.Empty(t, r.Skipped)
	thread, err := s.FindThread(bg, openClawID)
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Greet", info.Title)
	require.JSONEq(t, `{"agent":"openclaw","cwd":"/home/ada/work","sessionKey":"agent:main:main","version":4}`, withoutArchive(t, info.Metadata))
	require.Equal(t, []string{"user text Say hello", "assistant text Hello"}, parts(t, thread))
	importedAgain(t, s, path)

	var rows []string
	for c, err := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats(), Rows: true}) {
		require.NoError(t, err)
		for _, row := range c.Rows {
			require.NotContains(t, string(row.JSON), "SECRET")
			rows = append(rows, row.Key)
			if row.Key == "transcript_events "+openClawID+"/1" { // it is compressed
				require.Equal(t, `{"table":"transcript_events","key":"`+openClawID+`/1","row":{"session_id":"`+openClawID+`","seq":1,"event_json":`+openClawSays("m1", "", "user", "Say hello")+`,"created_at":1}}`, string(row.JSON))
			}
		}
	}
	events := "transcript_events " + openClawID + "/"
	require.Equal(t, []string{"session_windows " + openClawID, "session_nodes agent:main:main", events + "0", events + "1", events + "2"}, rows)

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, err := range archive.Read(bg, archive.Stream("openclaw-agent.sqlite", f), archive.ReadOptions{Formats: archives.Formats()}) {
		require.ErrorIs(t, err, archive.ErrRefused)
	}
}

// The session is one thread, whether it is read from a file of lines, from the database to which OpenClaw moves these lines, or from the cold
// archive to which it moves them from there. An id that a person chose is not unique: agents and machines may have it, too.
func TestOpenClawSessionIsOne(t *testing.T) {
	for _, id := range []string{openClawID, "1234"} {
		lines := []string{openClawHeader(id), openClawSays("m1", "", "user", "Say hello"), openClawSays("m2", "m1", "assistant", "Hello")}
		s := storetest.New(t)
		file := filepath.Join(t.TempDir(), id+".jsonl")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		asLines(t, s, file)
		before := count(t, s)
		require.Equal(t, [2]int{1, 2}, before)
		path := openClawFile(t, openClawEvents(id, "agent:main:explicit:"+id, lines...)...)
		imported(t, s, path)
		require.Equal(t, before, count(t, s))
		cold := filepath.Join(t.TempDir(), strings.Repeat("a", 64)+".jsonl.zst")
		require.NoError(t, os.WriteFile(cold, coldArchive(id, lines...), 0o600))
		r := imported(t, s, cold)
		require.Equal(t, []string{"openclaw-jsonl"}, r.Formats)
		require.Empty(t, r.Skipped)
		require.Equal(t, before, count(t, s))

		// A backup has the cold archive in its database.
		backup := openClawFile(t, openClawColdTable, fmt.Sprintf(`INSERT INTO session_transcript_cold_archives VALUES ('%s', 'sqlite', x'%x')`, id, coldArchive(id, lines...)))
		imported(t, s, backup)
		require.Equal(t, before, count(t, s))
		hot, cooled := rowsIn(t, path), rowsIn(t, backup)
		require.Equal(t, hot[2:], cooled)
		alone := storetest.New(t)
		imported(t, alone, backup)
		require.Equal(t, before, count(t, alone))

		lines[0] = strings.Replace(lines[0], "2026-01-01", "2026-01-02", 1)
		lines[1], lines[2] = openClawSays("m1", "", "user", "Another"), openClawSays("m2", "m1", "assistant", "Conversation")
		imported(t, s, openClawFile(t, openClawEvents(id, "agent:work:explicit:"+id, lines...)...))
		want := [2]int{1, 4} // branches of one thread
		if id == "1234" {
			want[0] = 2
		}
		require.Equal(t, want, count(t, s))
	}
}

// What the database stated of a session, and what people set, stays when the session goes to a cold archive, which states less: in whatever
// order the forms are read.
func TestOpenClawColdArchiveChangesNothing(t *testing.T) {
	const key = "agent:main:main"
	lines := []string{openClawHeader(openClawID), openClawSays("m1", "", "user", "Say hello"), openClawSays("m2", "m1", "assistant", "Hello"),
		`{"type":"session_info","id":"i","parentId":"m2","timestamp":"2026-01-01T00:00:01.000Z","name":"An old name"}`}
	hot := openClawFile(t, openClawEvents(openClawID, key, lines...)...)
	execute(t, hot, `UPDATE session_nodes SET label = 'Greet'`)
	cold := filepath.Join(t.TempDir(), strings.Repeat("a", 64)+".jsonl.zst")
	require.NoError(t, os.WriteFile(cold, coldArchive(openClawID, lines...), 0o600))
	about := func(s *lineage.Store) (title, metadata string) {
		thread, err := s.FindThread(bg, openClawID)
		require.NoError(t, err)
		info, err := thread.Info(bg)
		require.NoError(t, err)
		return info.Title, withoutArchive(t, info.Metadata)
	}
	const want = `{"agent":"openclaw","cwd":"/home/ada/work","sessionKey":"` + key + `","version":4}`
	for _, order := range [][]string{{hot, cold}, {cold, hot}, {cold, hot, cold}} {
		s := storetest.New(t)
		for _, path := range order {
			imported(t, s, path)
		}
		title, metadata := about(s)
		require.Equal(t, "Greet", title)
		require.JSONEq(t, want, metadata)
		for _, path := range order {
			importedAgain(t, s, path)
		}
	}

	s := storetest.New(t)
	imported(t, s, hot)
	thread, err := s.FindThread(bg, openClawID)
	require.NoError(t, err)
	require.NoError(t, thread.Update(bg, func(info *lineage.ThreadInfo) error {
		info.Title = "Mine"
		info.Metadata = rawjson.MergePatch(info.Metadata, []byte(`{"label":"x","cwd":"/elsewhere"}`))
		return nil
	}))
	set := `{"agent":"openclaw","cwd":"/elsewhere","sessionKey":"` + key + `","version":4,"label":"x"}`
	imported(t, s, cold)
	title, metadata := about(s)
	require.Equal(t, "Mine", title)
	require.JSONEq(t, set, metadata)
	// What the program changes later does not remove what only people have set.
	execute(t, hot, `UPDATE session_nodes SET label = 'Greet again', spawned_by = 'other'`)
	imported(t, s, hot)
	title, metadata = about(s)
	require.Equal(t, "Mine", title)
	require.JSONEq(t, strings.Replace(strings.Replace(set, "/elsewhere", "/home/ada/work", 1), `"version"`, `"spawnedBy":"other","version"`, 1), metadata)
	importedAgain(t, s, hot)
	importedAgain(t, s, cold)
}

// A fork of a session has its history, also if a person has chosen the id of the session, in whatever order and form they are read. If it is
// read later, the fork is below the session.
func TestOpenClawForkOfChosen(t *testing.T) {
	const fork = "01a22001-697f-772f-b4f5-ea342d6823c2"
	for _, id := range []string{"1234", "my_own id", strings.Repeat("long\n", 80), openClawID} {
		quoted := strings.ReplaceAll(id, "\n", `\n`)
		texts := []string{openClawSays("m1", "", "user", "Say hello"), openClawSays("m2", "m1", "assistant", "Hello")}
		parent := append([]string{openClawHeader(quoted)}, texts...)
		forked := append(append([]string{strings.TrimSuffix(openClawHeader(fork), "}") + `,"parentSession":"sqlite:main:` + quoted + `:/a:b/c.sqlite"}`}, texts...), openClawSays("m3", "m2", "user", "More"))
		dir := t.TempDir()
		write := func(name string, b []byte) string {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
			return filepath.Join(dir, name)
		}
		asFile := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
		parents := []string{openClawFile(t, openClawEvents(id, "k", parent...)...), write("p.jsonl", asFile(parent)), write("p.jsonl.zst", coldArchive(quoted, parent...))}
		forks := []string{openClawFile(t, openClawEvents(fork, "f", forked...)...), write("f.jsonl", asFile(forked)), write("f.jsonl.zst", coldArchive(fork, forked...))}
		for i, one := range parents {
			for k, other := range forks {
				if id != "1234" && i != k {
					continue
				}
				for _, order := range [][]string{{one, other}, {other, one}} {
					s := storetest.New(t)
					for _, path := range order {
						if strings.HasSuffix(path, ".jsonl") {
							asLines(t, s, path)
						} else {
							imported(t, s, path)
						}
					}
					require.Equal(t, 3, distinct(t, s), "%q: %d %d, %v", id, i, k, order[0] == one)
					thread, err := s.FindThread(bg, fork)
					require.NoError(t, err)
					active, err := thread.Active(bg)
					require.NoError(t, err)
					info, err := active.Info(bg)
					require.NoError(t, err)
					require.Equal(t, order[0] == one, !info.Parent.IsZero())
				}
			}
		}
		both := openClawFile(t, append(openClawEvents(id, "k", parent...), openClawEvents(fork, "f", forked...)...)...)
		s := storetest.New(t)
		imported(t, s, both)
		require.Equal(t, 3, distinct(t, s))
		importedAgain(t, s, both)
	}
}

// distinct returns the number of messages of all threads, of which each counts once.
func distinct(t testing.TB, s *lineage.Store) int {
	t.Helper()
	seen := make(map[lineage.SpanRef]bool)
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		active, err := thread.Active(bg)
		require.NoError(t, err)
		entries, err := active.All(bg)
		require.NoError(t, err)
		for _, e := range entries {
			seen[e.Span] = true
		}
	}
	return len(seen)
}

// Sessions whose equal ids people have chosen are not one, also where they have no header, or one without a time. What cannot be shown, or is
// long, is not in the id in the store.
func TestOpenClawChosenIDs(t *testing.T) {
	noTime := func(id string) string { return `{"type":"session","version":4,"id":"` + id + `"}` }
	for _, id := range []string{"1234", `a\u001b[31mb`, `a\u202eb`, strings.Repeat("x", 500), "main"} {
		raw := rawjson.Str([]byte(`"` + id + `"`))
		s := storetest.New(t)
		for _, name := range []string{"One", "Two"} { // of two machines
			for i, head := range [][]string{nil, {noTime(id)}, {strings.Replace(openClawHeader(id), "work", name, 1)}} {
				lines := append(slices.Clone(head), openClawSays("m1", "", "user", fmt.Sprint(name, i)), openClawSays("m2", "m1", "assistant", "Hello"))
				before := count(t, s)
				imported(t, s, openClawFile(t, openClawEvents(raw, "k", lines...)...))
				hot := count(t, s)
				require.Equal(t, before[0]+1, hot[0], "%s %s", name, head)
				cold := filepath.Join(t.TempDir(), "c.jsonl.zst")
				require.NoError(t, os.WriteFile(cold, coldArchive(id, lines...), 0o600))
				imported(t, s, cold)
				require.Equal(t, hot, count(t, s))
				if head != nil {
					file := filepath.Join(t.TempDir(), "c.jsonl")
					require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
					asLines(t, s, file)
					require.Equal(t, hot, count(t, s))
				}
			}
		}
		for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
			require.NoError(t, err)
			info, err := thread.Info(bg)
			require.NoError(t, err)
			require.LessOrEqual(t, len(info.SourceID), 256)
			require.NotContains(t, strings.Map(func(r rune) rune {
				if unicode.IsPrint(r) {
					return 'x'
				}
				return '!'
			}, info.SourceID), "!")
			require.True(t, archive.IsOf(info.SourceID, raw), info.SourceID)
			require.False(t, archive.IsOf(info.SourceID, raw+"y"))
		}
	}
}

const openClawColdTable = `CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY, storage TEXT, archive_blob BLOB)`

// rowsIn returns the rows of the sessions in a database.
func rowsIn(t testing.TB, path string) (rows []string) {
	t.Helper()
	for c, err := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats(), Rows: true}) {
		require.NoError(t, err)
		for _, row := range c.Rows {
			rows = append(rows, string(row.JSON))
		}
	}
	return rows
}

// coldArchive returns a file to which OpenClaw moves the records of an old session.
func coldArchive(id string, events ...string) []byte {
	text := `{"kind":"header","version":1,"sessionId":"` + id + `","generation":"g"}` + "\n"
	for i, e := range events {
		text += fmt.Sprintf(`{"kind":"event","row":{"seq":%d,"event_json":%q,"created_at":1}}`+"\n", i, e)
	}
	return packed1(text + `{"kind":"identity","row":{"event_id":"m1","seq":1}}` + "\n" + `{"kind":"fts","row":{"message":{"text":"Say hello"}}}` + "\n")
}

// asLines imports a session file of an older version of OpenClaw.
func asLines(t testing.TB, s *lineage.Store, path string) {
	t.Helper()
	r, err := importer.Import(bg, s, archive.Path(path), importer.Options{Formats: allFormats(), Format: "openclaw-jsonl"})
	require.NoError(t, err)
	require.Empty(t, r.Skipped)
}

// count returns the numbers of threads and of messages in them.
func count(t testing.TB, s *lineage.Store) (n [2]int) {
	t.Helper()
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		n[0]++
		seen := make(map[lineage.SpanRef]bool)
		branches, err := thread.Branches(bg)
		require.NoError(t, err)
		for _, b := range branches {
			for e, err := range s.History(bg, b.Head, lineage.Window{}) {
				require.NoError(t, err)
				seen[e.Span] = true
			}
		}
		n[1] += len(seen)
	}
	return n
}

// Branches are those of OpenClaw: a "leaf" goes back to an earlier entry, and what follows is put after it, whatever its parent. One that names an
// unknown entry counts for nothing. A "side" entry does not continue the session, and a "reset" is a message.
func TestOpenClawBranches(t *testing.T) {
	leaf := func(id, parent, target, more string) string {
		return `{"type":"leaf","id":"` + id + `","parentId":"` + parent + `","targetId":` + target + more + `}`
	}
	path := openClawFile(t, openClawEvents(openClawID, "k", openClawHeader(openClawID),
		openClawSays("m1", "", "user", "One"), openClawSays("m2", "m1", "assistant", "Two"), openClawSays("m3", "m2", "user", "Three"),
		leaf("l1", "m3", `"m2"`, ""), openClawSays("m4", "l1", "user", "Four"),
		leaf("l2", "m4", `"gone"`, ""), openClawSays("m5", "l2", "assistant", "Five"),
		leaf("l3", "m5", `"m1"`, `,"appendParentId":"m5"`), openClawSays("m6", "m5", "assistant", "Six"),
		`{"type":"reset","id":"r1","parentId":"m6","timestamp":"2026-01-01T00:00:01.000Z"}`, openClawSays("m7", "r1", "user", "Seven"),
		strings.Replace(openClawSays("m8", "m6", "user", "Aside"), `{"type"`, `{"appendMode":"side","type"`, 1),
		`{"type":"unheard of","id":"u1","parentId":"m7"}`, openClawSays("m9", "u1", "assistant", "Nine"),
		leaf("l4", "m9", `null`, ""), openClawSays("n1", "l4", "user", "Again"), leaf("l5", "n1", `"m9"`, ""))...)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Skipped)
	require.Empty(t, r.Repaired)
	var histories []string
	for name, text := range said(t, s, openClawID) {
		var ids []string
		for line := range strings.Lines(text) {
			_, rest, _ := strings.Cut(line, `"text":"`)
			word, _, _ := strings.Cut(rest, `"`)
			if strings.Contains(line, `"reset"`) {
				word = "reset"
			}
			ids = append(ids, word)
		}
		if strings.HasSuffix(name, "*") {
			ids = append(ids, "*")
		}
		histories = append(histories, strings.Join(ids, " "))
	}
	require.ElementsMatch(t, []string{"One Two Three", "One Two Four Five", "One Six Aside", "One Six reset Seven Nine *", "Again"}, histories)
	importedAgain(t, s, path)
}

// Rows that OpenClaw would not write are damage, the others of the session and other sessions are read, and nothing is decompressed beyond its limits.
func TestOpenClawHostile(t *testing.T) {
	loose := strings.ReplaceAll(openClawSchema, ") STRICT", ")")
	loose = strings.ReplaceAll(loose, "NOT NULL", "")
	path := filepath.Join(t.TempDir(), "openclaw-agent.sqlite")
	bomb := packed1(strings.Repeat("0", 65<<20))
	values := []string{
		`NULL, 1, NULL, NULL`, `7, 1, NULL, NULL`, `x'00ff', 1, NULL, NULL`, `'', 1, NULL, NULL`, `'[]', 1, NULL, NULL`, `'{"type":', 1, NULL, NULL`, `CAST(x'7b22ff' AS TEXT), 1, NULL, NULL`,
		`NULL, 1, x'` + hex.EncodeToString(bomb) + `', 4194304`, `NULL, 1, x'` + hex.EncodeToString(bomb) + `', 67108864`, `NULL, 1, x'` + hex.EncodeToString(bomb) + `', -1`, `NULL, 1, x'28b52ffd', 10`,
		`NULL, 1, x'` + hex.EncodeToString(packed1(`{"a":1}`)) + `', 8`, `NULL, 1, x'` + hex.EncodeToString(append(packed1(`{"a":1}`), packed1(`{"b":1}`)...)) + `', 7`, `NULL, 1, 'text', 4`,
		`'` + strings.Repeat("[", 100000) + `', 1, NULL, NULL`,
	}
	statements := []string{loose, openClawEvent("a", 0, openClawHeader("a"), false), openClawEvent("a", 1, openClawSays("m1", "", "user", "Before"), true)}
	for i, v := range values {
		statements = append(statements, fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, event_json, created_at, event_zstd, event_utf8_bytes) VALUES ('a', %d, %s)`, i+2, v))
	}
	statements = append(statements, openClawEvent("a", 100, openClawSays("m2", "m1", "assistant", "After"), false),
		openClawEvent("a", 101, openClawSays("m3", "m3", "user", "My own parent"), false), openClawEvent("a", 102, openClawSays("m4", "m5", "user", "Round"), false), openClawEvent("a", 103, openClawSays("m5", "m4", "user", "and round"), false),
		`INSERT INTO transcript_events (session_id, seq, event_json) VALUES (NULL, 1, '{}'), (x'00', 1, '{}'), ('`+strings.Repeat("k", 1000)+`', 1, '{}'), (5, 'x', '{}')`,
		`INSERT INTO session_windows (session_id, session_key) VALUES ('b', x'ff')`, openClawEvent("b", 0, openClawHeader("other"), false), openClawEvent("b", 1, openClawSays("m1", "", "user", "Another"), true))
	statements = append(statements, openClawColdTable, fmt.Sprintf(`INSERT INTO session_transcript_cold_archives VALUES ('a', 'sqlite', x'00'), ('c', 'sqlite', NULL), ('d', 'sqlite', x'%x'), ('e', 'sqlite', 7), ('f', 'sqlite', x'%x'), ('g', 'file', x'00')`,
		packed1(strings.Repeat("0", 8<<20)), packed1(`{"kind":"event","row":{"seq":{},"event_json":7}}`+"\n{broken\n")))
	execute(t, path, statements...)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.EqualValues(t, len(values)+5, r.SkippedCount, "%v", r.Skipped[len(values):])
	require.EqualValues(t, 2, r.Conversations)
	a := said(t, s, "a@"+openClawHash)["main*"]
	for _, text := range []string{"Before", "After", "My own parent", "Round", "and round"} {
		require.Contains(t, a, `"`+text+`"`)
	}
	require.Contains(t, said(t, s, "b@"+openClawHash)["main*"], "Another")
	importedAgain(t, s, path)

	large := openClawFile(t, openClawColdTable, fmt.Sprintf(`INSERT INTO session_transcript_cold_archives VALUES ('a', 'sqlite', x'%x')`, bomb))
	for _, err := range archive.Read(bg, archive.Path(large), archive.ReadOptions{Formats: archives.Formats()}) {
		require.ErrorIs(t, err, archive.ErrMalformed)
		require.ErrorIs(t, err, bufio.ErrTooLong)
	}

	// A view in place of the table is not read.
	execute(t, path, `ALTER TABLE transcript_events RENAME TO other`, `CREATE VIEW transcript_events AS SELECT * FROM other`)
	for _, err := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats()}) {
		require.ErrorIs(t, err, archive.ErrMalformed)
	}
}

// openClawHash is what is added to an id that a person chose, of a session with the header of these tests.
const openClawHash = "5be85619b143"

// Any event is read or refused, in the database as a text and compressed, and in a cold archive, and the result is valid.
func FuzzOpenClawEvents(f *testing.F) {
	dir := f.TempDir()
	execute(f, dir+"/template", "PRAGMA page_size = 512; PRAGMA auto_vacuum = 0;"+openClawSchema)
	template, err := os.ReadFile(dir + "/template")
	require.NoError(f, err)
	for _, seed := range []string{
		openClawHeader("1234"), openClawSays("m2", "m1", "assistant", "Hello"), `{"type":"leaf","id":"l","parentId":"m1","targetId":"m1","appendParentId":null}`, `{"type":"leaf","targetId":null}`,
		`{"type":"reset","id":"r","parentId":3}`, `{"type":"session","id":{},"cwd":1,"parentSession":"/a/b_c.jsonl"}`, `{"type":"message","message":{"role":3,"content":0},"appendMode":"side"}`, `{"kind":"header","sessionId":"x","generation":1}`,
	} {
		f.Add([]byte(seed), packed1(seed), int64(len(seed)))
	}
	f.Fuzz(func(t *testing.T, event, packed []byte, size int64) {
		path := filepath.Join(t.TempDir(), "openclaw-agent.sqlite")
		require.NoError(t, os.WriteFile(path, template, 0o600))
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		for _, v := range [][]any{
			{"s", 0, openClawHeader("s"), nil, nil}, {"s", 1, openClawSays("m1", "", "user", "x"), nil, nil}, {"s", 2, string(event), nil, nil}, {"s", 3, nil, packed, size}, {"s", 4, openClawSays("m9", "m1", "user", "x"), nil, nil},
			{string(event[:min(len(event), 20)]), 0, openClawSays("m1", "", "user", "x"), nil, nil},
		} {
			_, err := db.Exec(`INSERT OR IGNORE INTO transcript_events VALUES (?, ?, ?, 1, ?, ?, NULL)`, v...)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
		for c, err := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats(), Rows: true}) {
			valid(t, c, err)
		}
		cold := bytes.Join([][]byte{[]byte(`{"kind":"header","sessionId":"s","generation":"g"}`), []byte(`{"kind":"event","row":{"event_json":` + string(event) + `}}`), event, nil}, []byte("\n"))
		for c, err := range archive.Read(bg, archive.Stream("cold.jsonl", bytes.NewReader(cold)), archive.ReadOptions{Formats: allFormats(), Format: "openclaw-jsonl"}) {
			valid(t, c, err)
		}
	})
}

// A database and a cold archive that OpenClaw 2026.9.6 wrote: a session with a subagent, a new window and a fork; and a file of a version without
// a database.
func TestOpenClawSample(t *testing.T) {
	const dir = "testdata/openclaw/"
	f, err := os.Open(dir + "openclaw-agent.sql.gz")
	require.NoError(t, err)
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	require.NoError(t, err)
	script, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "openclaw-agent.sqlite")
	execute(t, path, string(script), `INSERT INTO auth_profile_store VALUES ('primary', '{"key":"SECRET"}', 1)`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Skipped)
	require.Empty(t, r.Repaired)
	require.EqualValues(t, 4, r.Conversations)
	require.EqualValues(t, 18, r.NewMessages) // those of the fork are those of the session

	titles := make(map[string]string)
	about := make(map[string]string)
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := thread.Info(bg)
		require.NoError(t, err)
		titles[info.SourceID], about[info.SourceID] = info.Title, withoutArchive(t, info.Metadata)
	}
	const session, subagent, fork = "782fe8b2-63d1-4de5-8244-2417d134002c", "a32aa72c-e095-498e-9fa7-4f3d58e7d7b9", "0ef258b4-cb1c-4913-a61e-190a1864e58a"
	require.Equal(t, map[string]string{session: "", subagent: "helper", fork: "My fork", "1234@c9b4b8605b81": ""}, titles)
	require.JSONEq(t, `{"agent":"openclaw","cwd":"/home/ada/work","model":"stand-in","version":4,"sessionKey":"agent:main:subagent:99e02a51-ef06-48be-af57-a7eae20ac1a6","spawnedBy":"agent:main:main","parentSessionKey":"agent:main:main"}`, about[subagent])
	thread, err := s.FindThread(bg, session)
	require.NoError(t, err)
	texts := parts(t, thread)
	require.Equal(t, []string{`user text Say hello with a tool. TOOL(exec) {"command":"echo hello"}`, "assistant text I look.", `assistant call exec {"command":"echo hello"}`, "tool result hello", "assistant text The tool said: hello"}, texts[:5])
	require.Equal(t, []string{"user text After new", "assistant text Answer 9."}, texts[len(texts)-2:])
	// The stand-in reported 80 and 10 tokens and the number of the request, of which another agent made the eighth; 20 were cached.
	requireUsage(t, s, 8, 8*80+37, 8*10+37, 8*20)
	importedAgain(t, s, path)

	before := count(t, s)
	cold := dir + "d9e29bfcfa97e39a37853d5618e3cd06d4ca4e54d95f94b6e5f672701ee7a91e.jsonl.zst"
	r = imported(t, s, cold)
	require.Equal(t, []string{"openclaw-jsonl"}, r.Formats)
	require.Empty(t, r.Skipped)
	require.Equal(t, before, count(t, s))
	alone := storetest.New(t)
	imported(t, alone, cold)
	require.Equal(t, [2]int{1, 2}, count(t, alone))
	requireUsage(t, alone, 1, 85, 15, 20)

	older := storetest.New(t)
	imported(t, older, "../../lineage/archive/testdata/agents/openclaw")
	require.Equal(t, [2]int{1, 6}, count(t, older))
	thread, err = older.FindThread(bg, "7d1a2b3c-0000-4000-8000-000000000007")
	require.NoError(t, err)
	require.Equal(t, texts[:5], parts(t, thread)[:5])
	requireUsage(t, older, 3, 81+82+83, 11+12+13, 60)
}

// requireUsage requires what the answers in a store cost.
func requireUsage(t *testing.T, s *lineage.Store, requests, input, output, cached int64) {
	t.Helper()
	x, err := usage.Open(bg, s, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	require.NoError(t, x.Update(bg))
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	tokens := report.Total.Tokens
	require.Equal(t, []int64{requests, input, output, cached}, []int64{report.Total.Requests, tokens[messages.Input].N, tokens[messages.Output].N, tokens[messages.CachedInput].N})
}
