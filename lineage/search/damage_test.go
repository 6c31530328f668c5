package search_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/search"
)

const (
	damagedChats    = 12
	damagedMessages = 8 // of each chat
)

// TestDamage flips single bytes in every file of stores in different states and reads them: every
// result is what was written, or an error that reports damage.
//
//test:damage
func TestDamage(t *testing.T) {
	for state, prepare := range map[string]func(t *testing.T, dir string){
		"fresh": func(*testing.T, string) {},
		"segments": func(t *testing.T, dir string) {
			talk(t, dir, lineage.Options{SegmentSize: 4 << 10, NoPacking: true}, 2)
		},
		"packed": func(t *testing.T, dir string) { packAll(t, dir, false) },
		"dense":  func(t *testing.T, dir string) { packAll(t, dir, true) },
		"searched": func(t *testing.T, dir string) {
			packAll(t, dir, false)
			talk(t, dir, lineage.Options{}, 2)
			store, x := open(t, dir)
			require.NotEmpty(t, found(t, x, "walrus"))
			require.NoError(t, x.Close())
			require.NoError(t, store.Close())
		},
	} {
		t.Run(state, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			talk(t, dir, lineage.Options{}, 1)
			prepare(t, dir)
			want := read(t, dir, true, true)
			require.Empty(t, want.errs)
			require.NoError(t, want.damage)
			n := 0
			campaign.EachDamage(t, dir, campaign.Rounds(25), func(copied string, d campaign.Damage) {
				writing, searching := n%7 == 0, state == "searched" && n%3 == 0
				n++
				what := fmt.Sprintf("%v, writing %v, searching %v", d, writing, searching)
				requireHonest(t, want, read(t, copied, !writing, searching), d.File, searching, what)
			})
		})
	}
}

func packAll(t *testing.T, dir string, dense bool) {
	store, err := lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	_, err = store.Pack(bg, lineage.PackOptions{All: true, Dense: dense})
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// talk adds chats to a store.
func talk(t *testing.T, dir string, o lineage.Options, from int) {
	o.Durability = lineage.Normal
	store, err := lineage.Open(bg, dir, o)
	require.NoError(t, err)
	chats := chat.On(store)
	for i := range damagedChats {
		id := fmt.Sprintf("chat-%d-%d", from, i)
		_, err := chats.CreateChat(bg, chat.Chat{ID: id, UserID: "ann", Title: "title of " + id})
		require.NoError(t, err)
		branch, err := chats.ActiveBranch(bg, id)
		require.NoError(t, err)
		var messages []chat.Message
		for n := range damagedMessages {
			messages = append(messages, chat.Message{
				ID: fmt.Sprintf("%s-%d", id, n), Name: "user", CreatedAt: 1700000000000,
				Data: fmt.Appendf(nil, `"message %d of %s about a walrus %s"`, n, id, strings.Repeat("and more ", n*i)),
			})
		}
		_, err = chats.Append(bg, chat.AppendRequest{ChatID: id, BranchID: branch.ID, Messages: messages})
		require.NoError(t, err)
	}
	require.NoError(t, store.Close())
}

// reading is everything that was read from a store.
type reading struct {
	said   map[string]string
	errs   []error
	damage error
}

// read reads everything in a store.
func read(t *testing.T, dir string, readOnly, searching bool) reading {
	r := reading{said: map[string]string{}}
	add := func(what string, v any, err error) {
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("%s: %w", what, err))
			return
		}
		r.said[what] = fmt.Sprint(v)
	}
	store, err := lineage.Open(bg, dir, lineage.Options{MustExist: true, ReadOnly: readOnly, NoPacking: true})
	if err != nil {
		r.errs = append(r.errs, err)
		return r
	}
	defer func() { require.NoError(t, store.Close()) }()
	r.damage = store.Damage()
	chats := chat.On(store)
	for c, err := range chats.ListChats(bg, chat.ListOptions{}) {
		add("listed "+c.ID, c.Title, err)
		if err != nil {
			break
		}
	}
	for from := 1; from <= 2; from++ {
		for i := range damagedChats {
			id := fmt.Sprintf("chat-%d-%d", from, i)
			switch c, err := chats.Chat(bg, id); {
			case err != nil:
				add(id, nil, err)
			case c != nil:
				add(id, c.Title, nil)
			}
			for m, err := range chats.Messages(bg, id) {
				if errors.Is(err, lineage.ErrNotFound) {
					break
				}
				add("in "+id+" "+m.ID, string(m.Data), err)
				if err != nil {
					break
				}
			}
			for n := range damagedMessages {
				message := fmt.Sprintf("%s-%d", id, n)
				switch m, err := chats.Message(bg, id, message); {
				case err != nil:
					add(message, nil, err)
				case m != nil:
					add(message, string(m.Data), nil)
				}
			}
		}
	}
	if searching && r.damage == nil {
		x, err := search.Open(bg, store, dir, search.Options{})
		add("open search", nil, err)
		if err == nil {
			results, err := x.Search(bg, search.Query{Text: "walrus", Limit: 1000})
			add("searched", len(results), err)
			for _, found := range results {
				add("found "+found.Entry.SourceID, found.Snippet, nil)
			}
			require.NoError(t, x.Close())
		}
	}
	return r
}

// requireHonest requires that every result from a damaged store equals that of a sound one, or is
// an error.
func requireHonest(t *testing.T, want, got reading, name string, searching bool, what string) {
	t.Helper()
	inSearch := strings.HasPrefix(name, search.FileName) // SQLite has no checksums
	for _, err := range got.errs {
		if inSearch && strings.Contains(err.Error(), "search") {
			continue
		}
		require.True(t, errors.Is(err, lineage.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), "%s: %v", what, err)
	}
	for read, text := range got.said {
		if inSearch && isFound(read) {
			continue
		}
		now, ok := want.said[read]
		require.True(t, ok, "%s: %s", what, read)
		require.Equal(t, now, text, "%s: %s", what, read)
	}
	if len(got.errs) == 0 && got.damage == nil {
		for read := range want.said {
			if isFound(read) && (!searching || inSearch) {
				continue
			}
			require.Contains(t, got.said, read, what)
		}
	}
}

// isFound reports whether a result came from the search index.
func isFound(read string) bool {
	return strings.HasPrefix(read, "found ") || read == "open search" || read == "searched"
}
