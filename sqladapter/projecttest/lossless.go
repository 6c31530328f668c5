package projecttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/structure"
)

// testLossless copies stores through a database into an empty store, which then has the same
// content: every byte and piece of each message. Projected again, the rows are the same.
//
// feature: lineage/lossless
func testLossless(t *testing.T, s *suite) {
	s.check(t, func(r *rapid.T) {
		database := s.New(t)
		db := s.open(r, database)
		defer db.Close()
		from, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer from.Close()
		to, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer to.Close()
		m := newMachine(from)
		m.shared = rapid.IntRange(0, 3).Draw(r, "shared ids") == 0
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			m.step(r)
		}
		s.project(r, from, db)
		bring := func() {
			_, err := importing.Run(bg, db, to, importing.Options{Problem: func(id string, err error) {
				// An erased large value has no bytes to copy.
				require.True(r, strings.Contains(err.Error(), "value") && errors.Is(err, chat.ErrNotFound), "%s: %v", id, err)
			}})
			require.NoError(r, err)
		}
		bring()
		require.Equal(r, told(r, from, !m.shared), told(r, to, !m.shared))

		again := s.New(t)
		second := s.open(r, again)
		defer second.Close()
		s.project(r, to, second)
		require.Empty(r, differences(r, to, second))
		requireSame(r, s.untimed(chatRows(r, database)), s.untimed(chatRows(r, again)))
		require.Equal(r, dumpTable(r, database, "lineage_origins"), dumpTable(r, again, "lineage_origins"))
		require.Equal(r, dumpTable(r, database, "messages_fts"), dumpTable(r, again, "messages_fts"))

		head, err := to.View().Head(bg)
		require.NoError(r, err)
		bring()
		now, err := to.View().Head(bg)
		require.NoError(r, err)
		require.Equal(r, head, now, "importing again changes nothing")
	})
}

// untimed removes the update times of chats: in the other store, messages shared by chats belong to
// each of them and count.
func (s *suite) untimed(rows map[string][]string) map[string][]string {
	for i, row := range rows["chats"] {
		at := max(strings.Index(row, "updatedAt="), strings.Index(row, "updatedat="))
		rows["chats"][i] = row[:at]
	}
	return rows
}

// told lists the content of a store, without ids of its own: each line is a context, a position of
// a history, or a message of a chat with its id.
func told(t require.TestingT, store *lineage.Store, messages bool) []string {
	lines := make(map[string]bool)
	chats := chat.On(store)
	for info, err := range chats.ListChats(bg, chat.ListOptions{}) {
		require.NoError(t, err)
		thread, err := store.FindThread(bg, info.ID)
		if errors.Is(err, lineage.ErrNotFound) {
			id, failed := structure.ParseID[lineage.ThreadID](info.ID)
			require.NoError(t, failed)
			thread, err = store.Thread(bg, id)
		}
		require.NoError(t, err)
		got, err := thread.Info(bg)
		require.NoError(t, err)
		lines[fmt.Sprintf("%s: %q of %q, %s, from %d", info.ID, got.Title, got.UserID, got.Metadata, got.CreatedAt.UnixMilli())] = true
		g, err := chats.Graph(bg, info.ID)
		require.NoError(t, err)
		for _, n := range g.Nodes {
			if !messages {
				break // several chats may have messages with one id
			}
			m, err := chats.Message(bg, info.ID, n.ID)
			require.NoError(t, err)
			lines[fmt.Sprintf("%s: message %s after %q: %s %q %s at %d by %+v", info.ID, n.ID, n.ParentID, m.Name, m.Type, shown(m.Data), m.CreatedAt, m.Origin)] = true
		}
		for c, err := range thread.Contexts(bg) {
			require.NoError(t, err)
			at, err := c.Digest(bg)
			require.NoError(t, err)
			name := fmt.Sprintf("%s: context %v", info.ID, c.ID())
			lines[fmt.Sprintf("%s: %v", name, at)] = true
			entries, err := c.All(bg)
			require.NoError(t, err)
			for _, e := range entries {
				lines[name+": "+toldEntry(t, store, e)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

func toldEntry(t require.TestingT, store *lineage.Store, e *lineage.Entry) string {
	original, err := store.Original(bg, e)
	if !errors.Is(err, lineage.ErrErased) {
		require.NoError(t, err)
	}
	line := fmt.Sprintf("%d.%d %v %q %q %q %d %q %v %q %+v %q %d", e.Position, e.Index, e.Kind, e.Role, e.Name, e.Document, e.Revision, e.Filename,
		e.Content, e.Type, e.Origin, e.Metadata, e.CreatedAt.UnixMilli())
	for _, p := range e.Pieces {
		line += fmt.Sprintf(" [%v %q %v %q %v %q]", p.Kind, p.Tool, p.Content, p.Type, p.Erased, shown(p.Body))
	}
	return fmt.Sprintf("%s: %v %q", line, e.Erased, shown(original))
}

// shown returns bytes, or their length and hash if there are many.
func shown(b []byte) string {
	if len(b) > 500 {
		return fmt.Sprintf("%d bytes, %v", len(b), content.Sum(b))
	}
	return string(b)
}
