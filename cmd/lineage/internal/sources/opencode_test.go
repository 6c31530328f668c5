package sources_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// laterClock is the system's clock and some time.
type laterClock time.Duration

func (c laterClock) Now() time.Time                   { return time.Now().Add(time.Duration(c)) }
func (c laterClock) At(at time.Time) <-chan time.Time { return time.After(at.Sub(c.Now())) }

// A session of OpenCode that is followed at each step while the program writes it has the branches of one that was read in the end, for
// two machines. A message that is being written is read when it is complete, when another one follows it, or after some time without a
// change, and a subagent when it is known which message has started it.
func TestFollowOpenCodeWhileItWrites(t *testing.T) {
	ctx := context.Background()
	home := t.TempDir()
	path := filepath.Join(home, ".local", "share", "opencode", "opencode.db")
	machines := []*databases{
		{t: t, store: lineagetest.New(t, lineage.Options{}), home: home, machine: "m1"},
		{t: t, home: home, machine: "m2"},
	}
	machines[1].store = machines[0].store
	d := machines[0]
	now := time.Now().UnixMilli()
	message := func(id, session, info string) string {
		return fmt.Sprintf(`INSERT OR REPLACE INTO message VALUES ('%s', '%s', %d, %d, '%s')`, id, session, now, now, info)
	}
	part := func(id, message, data string) string {
		return fmt.Sprintf(`INSERT OR REPLACE INTO part VALUES ('%s', '%s', 's1', %d, %d, '%s')`, id, message, now, now, data)
	}
	texts := func() (ids []string, branches int) {
		thread, err := d.store.FindThread(ctx, "s1")
		if err != nil {
			require.ErrorIs(t, err, lineage.ErrNotFound)
			return nil, 0
		}
		all, err := thread.Branches(ctx)
		require.NoError(t, err)
		active, err := thread.Active(ctx)
		require.NoError(t, err)
		for e, err := range active.Entries(ctx, lineage.Window{}) {
			require.NoError(t, err)
			ids = append(ids, e.SourceID)
		}
		return ids, len(all)
	}
	const done = `{"role":"assistant","modelID":"x","time":{"created":1,"completed":2}}`
	const writing = `{"role":"assistant","modelID":"x","time":{"created":1,"completed":null},"error":null}`
	steps := []struct {
		statement string
		want      []string
	}{
		{`CREATE TABLE __drizzle_migrations (id integer)`, nil},
		{`CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, time_created integer, time_updated integer)`, nil},
		{`CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text); CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text)`, nil},
		{fmt.Sprintf(`INSERT INTO session VALUES ('s1', NULL, '/w', 'T', '1', %d, %d)`, now, now), nil},
		{message("m1", "s1", `{"role":"user"}`), nil},
		{part("p1", "m1", `{"type":"text","text":"Read it"}`), nil},
		{part("p1b", "m1", `{"type":"text","text":"and that"}`), nil},
		{message("m2", "s1", writing), []string{"m1"}},
		{part("p2", "m2", `{"type":"text","text":""}`), []string{"m1"}},
		{part("p2", "m2", `{"type":"text","text":"I read."}`), []string{"m1"}},
		{part("p3", "m2", `{"type":"tool","tool":"task","callID":"c","state":{"status":"pending","input":{}}}`), []string{"m1"}},
		{fmt.Sprintf(`INSERT INTO session VALUES ('s2', 's1', '/w', 'Sub', '1', %d, %d)`, now, now) + ";" + message("n1", "s2", `{"role":"user"}`) + ";" + part("q1", "n1", `{"type":"text","text":"Look"}`), []string{"m1"}},
		{part("p3", "m2", `{"type":"tool","tool":"task","callID":"c","state":{"status":"running","input":{},"metadata":{"sessionId":"s2"}}}`), []string{"m1"}},
		{part("p3", "m2", `{"type":"tool","tool":"task","callID":"c","state":{"status":"completed","input":{},"output":"found","metadata":{"sessionId":"s2"}}}`), []string{"m1"}},
		{message("m2", "s1", done), []string{"m1", "m2"}},
		{message("m3", "s1", writing) + ";" + part("p4", "m3", `{"type":"text","text":"Do"}`), []string{"m1", "m2"}}, // it is killed
	}
	for i, step := range steps {
		d.write(path, step.statement)
		for _, m := range machines {
			o := m.options()
			var failed []follow.Event
			o.Events = func(e follow.Event) {
				if e.Err != nil {
					failed = append(failed, e)
				}
			}
			require.NoError(t, follow.Run(ctx, m.store, o))
			require.Empty(t, failed, "step %d", i)
		}
		ids, branches := texts()
		require.Equal(t, step.want, ids, "step %d", i)
		require.LessOrEqual(t, branches, 1, "step %d", i)
	}
	for _, m := range machines {
		o := m.options()
		o.Clock = laterClock(time.Hour)
		require.NoError(t, follow.Run(ctx, m.store, o))
	}
	ids, branches := texts()
	require.Equal(t, []string{"m1", "m2", "m3"}, ids)
	require.Equal(t, 1, branches)
	thread, err := d.store.FindThread(ctx, "s1")
	require.NoError(t, err)
	subagents := 0
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		info, err := c.Info(ctx)
		require.NoError(t, err)
		if len(info.Metadata) > 0 {
			subagents++
			require.JSONEq(t, `{"aside":"agent s2"}`, string(info.Metadata))
			n := 0
			for e, err := range c.Entries(ctx, lineage.Window{}) {
				require.NoError(t, err)
				if n++; n == 3 {
					require.Equal(t, "n1", e.SourceID)
				}
			}
			require.Equal(t, 3, n, "the subagent is below the message that has started it")
		}
	}
	require.Equal(t, 1, subagents)
}

// A subagent of a subagent is read when the message that has started it is, also while a later message of the subagent is held back.
func TestNestedSubagentOfOpenCodeDoesNotWait(t *testing.T) {
	ctx := context.Background()
	home := t.TempDir()
	path := filepath.Join(home, ".local", "share", "opencode", "opencode.db")
	d := &databases{t: t, store: lineagetest.New(t, lineage.Options{}), home: home, machine: "m1"}
	now := time.Now().UnixMilli()
	session := func(id, parent string) {
		d.write(path, fmt.Sprintf(`INSERT INTO session VALUES ('%s', %s, '/w', 'T', '1', %d, %d)`, id, parent, now, now))
	}
	message := func(id, session, info, starts string) {
		d.write(path, fmt.Sprintf(`INSERT OR REPLACE INTO message VALUES ('%s', '%s', %d, %d, '%s')`, id, session, now, now, info))
		part := `{"type":"text","text":"x"}`
		if starts != "" {
			part = `{"type":"tool","tool":"task","callID":"c","state":{"status":"completed","input":{},"output":"y","metadata":{"sessionId":"` + starts + `"}}}`
		}
		d.write(path, fmt.Sprintf(`INSERT OR REPLACE INTO part VALUES ('p%s', '%s', '%s', %d, %d, '%s')`, id, id, session, now, now, part))
	}
	subagents := func() (asides []string) {
		require.NoError(t, follow.Run(ctx, d.store, d.options()))
		thread, err := d.store.FindThread(ctx, "s1")
		require.NoError(t, err)
		for c, err := range thread.Contexts(ctx) {
			require.NoError(t, err)
			info, err := c.Info(ctx)
			require.NoError(t, err)
			if len(info.Metadata) > 0 {
				asides = append(asides, string(info.Metadata))
			}
		}
		return asides
	}
	const user, done, writing = `{"role":"user"}`, `{"role":"assistant","time":{"created":1,"completed":2}}`, `{"role":"assistant","time":{"created":1}}`
	d.write(path, `CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, time_created integer, time_updated integer)`)
	d.write(path, `CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text); CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text)`)
	session("s1", "NULL")
	message("m1", "s1", user, "")
	message("m2", "s1", done, "s2")
	session("s2", "'s1'")
	message("n1", "s2", user, "")
	message("n2", "s2", done, "s3")
	message("n3", "s2", writing, "s4")
	for _, id := range []string{"s3", "s4"} {
		session(id, "'s2'")
		message(id+"k1", id, user, "")
		message(id+"k2", id, done, "")
	}
	require.ElementsMatch(t, []string{`{"aside":"agent s2"}`, `{"aside":"agent s3"}`}, subagents())
	message("n3", "s2", done, "s4")
	require.ElementsMatch(t, []string{`{"aside":"agent s2"}`, `{"aside":"agent s3"}`, `{"aside":"agent s4"}`}, subagents())
}

// A message that is held back is read from the recorded rows when the database is gone, for two machines. It is there once; sessions
// that are complete or were deleted in the store stay as they are.
func TestHeldMessageOfADatabaseThatGoes(t *testing.T) {
	ctx := context.Background()
	for _, renamed := range []bool{false, true} {
		t.Run(fmt.Sprint("renamed ", renamed), func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, ".local", "share", "opencode", "opencode.db")
			machines := []*databases{{t: t, store: lineagetest.New(t, lineage.Options{}), home: home, machine: "m1"}, {t: t, home: home, machine: "m2"}}
			machines[1].store = machines[0].store
			d := machines[0]
			now := time.Now().UnixMilli()
			d.write(path, `CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, time_created integer, time_updated integer)`)
			d.write(path, `CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text); CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text)`)
			for session, answer := range map[string]string{
				"writing": `{"role":"assistant","modelID":"x","time":{"created":1.5e3}}`, "deleted": `{"role":"assistant","time":{"created":1}}`,
				"complete": `{"role":"assistant","time":{"created":1,"completed":2}}`,
			} {
				d.write(path, fmt.Sprintf(`INSERT INTO session VALUES ('%s', NULL, '/w', 'Title', '1', %d, %[2]d)`, session, now))
				for n, info := range []string{`{"role":"user"}`, answer} {
					d.write(path, fmt.Sprintf(`INSERT INTO message VALUES ('%[1]s-%[2]d', '%[1]s', %[3]d, %[3]d, '%[4]s'); INSERT INTO part VALUES ('p%[1]s-%[2]d', '%[1]s-%[2]d', '%[1]s', %[3]d, %[3]d, '{"type":"text","text":"said in %[1]s,\n <b>"}')`,
						session, n+1, now+int64(n), info))
				}
			}
			requireStored := func(session string, messages ...string) {
				t.Helper()
				thread, err := d.store.FindThread(ctx, session)
				require.NoError(t, err)
				branches, err := thread.Branches(ctx)
				require.NoError(t, err)
				require.Len(t, branches, 1)
				active, err := thread.Active(ctx)
				require.NoError(t, err)
				var ids []string
				for e, err := range active.Entries(ctx, lineage.Window{}) {
					require.NoError(t, err)
					ids = append(ids, e.SourceID)
				}
				require.Equal(t, messages, ids)
			}
			for _, m := range machines {
				m.follow()
			}
			requireStored("writing", "writing-1")
			requireStored("deleted", "deleted-1")
			requireStored("complete", "complete-1", "complete-2")
			rows, _ := d.rows(path + "/writing")
			thread, err := d.store.FindThread(ctx, "deleted")
			require.NoError(t, err)
			require.NoError(t, thread.Delete(ctx))

			if renamed {
				require.NoError(t, os.Rename(path, path+".old"))
			} else {
				require.NoError(t, os.Remove(path))
			}
			for _, m := range []*databases{d, machines[1], d} {
				m.follow()
				requireStored("writing", "writing-1", "writing-2")
				requireStored("complete", "complete-1", "complete-2")
				_, err = d.store.FindThread(ctx, "deleted")
				require.ErrorIs(t, err, lineage.ErrNotFound)
			}
			after, _ := d.rows(path + "/writing")
			require.Equal(t, rows, after)
		})
	}
}
