package search_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/search"
)

// damageVariable says how many bytes of each state of a store are damaged. The default is
// a few; 'make damage' does thousands.
const damageVariable = "LINEAGE_DAMAGE"

// slowest is how long reading a damaged store may take when thousands are read. It is much
// more than that of a sound one.
const slowest = 30 * time.Second

const (
	damagedChats    = 12
	damagedMessages = 8 // of each chat
)

// TestDamage flips single bytes in every file of stores in every state and reads what is
// left: all that is read is what was written, or an error that says that it is damaged.
func TestDamage(t *testing.T) {
	flips, campaign := 25, false
	if n, err := strconv.Atoi(os.Getenv(damageVariable)); err == nil {
		flips, campaign = n, true
	}
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
			seed := rand.Uint64()
			choose := rand.New(rand.NewPCG(seed, 1))
			var bytes int64
			var files []string
			sizes := map[string]int64{}
			require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				if err == nil && info.Size() > 0 {
					name, _ := filepath.Rel(dir, path)
					files, sizes[name] = append(files, name), info.Size()
					bytes += info.Size()
				}
				return err
			}))
			for n := range flips {
				// As many in small files as in large ones.
				name := files[n%len(files)]
				at := choose.Int64N(sizes[name])
				if choose.IntN(3) == 0 {
					at = choose.Int64N(min(sizes[name], 256)) // headers
				}
				bit := byte(1) << choose.IntN(8)
				if choose.IntN(4) == 0 {
					bit = byte(1 + choose.IntN(255))
				}
				writing, searching := n%7 == 0, state == "searched" && n%3 == 0
				what := fmt.Sprintf("%s, byte %d ^ %#x, writing %v, searching %v, seed %d", name, at, bit, writing, searching, seed)
				testFlip(t, dir, name, at, bit, writing, searching, want, campaign, what)
			}
		})
	}
}

func packAll(t *testing.T, dir string, dense bool) {
	store, err := lineage.Open(bg, dir, nil)
	require.NoError(t, err)
	_, err = store.Pack(bg, lineage.PackOptions{All: true, Dense: dense})
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

// talk adds chats to a store.
func talk(t *testing.T, dir string, o lineage.Options, from int) {
	o.Durability = lineage.Normal
	store, err := lineage.Open(bg, dir, &o)
	require.NoError(t, err)
	chats := chat.On(store)
	for i := range damagedChats {
		id := fmt.Sprintf("chat-%d-%d", from, i)
		_, err := chats.CreateChat(bg, chat.Chat{ID: id, UserID: "ann", Title: "title of " + id})
		require.NoError(t, err)
		branch, err := chats.ActiveBranch(bg, id)
		require.NoError(t, err)
		var said []chat.Message
		for n := range damagedMessages {
			said = append(said, chat.Message{
				ID: fmt.Sprintf("%s-%d", id, n), Name: "user", CreatedAt: 1700000000000,
				Data: fmt.Appendf(nil, `"message %d of %s about a walrus %s"`, n, id, strings.Repeat("and more ", n*i)),
			})
		}
		_, err = chats.Append(bg, chat.AppendRequest{ChatID: id, BranchID: branch.ID, Messages: said})
		require.NoError(t, err)
	}
	require.NoError(t, store.Close())
}

// reading is what was read of a store, by what it is.
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
	store, err := lineage.Open(bg, dir, &lineage.Options{MustExist: true, ReadOnly: readOnly, NoPacking: true})
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
				id := fmt.Sprintf("%s-%d", id, n)
				switch m, err := chats.Message(bg, id); {
				case err != nil:
					add(id, nil, err)
				case m != nil:
					add(id, string(m.Data), nil)
				}
			}
		}
	}
	if searching && r.damage == nil {
		x, err := search.Open(bg, store, dir, nil)
		add("open search", nil, err)
		if err == nil {
			results, err := x.SearchAll(bg, "", "walrus", chat.SearchOptions{Limit: 1000})
			add("searched", len(results), err)
			for _, found := range results {
				add("found "+found.Message.ID, found.Snippet, nil)
			}
			require.NoError(t, x.Close())
		}
	}
	return r
}

func testFlip(t *testing.T, dir, name string, at int64, bit byte, writing, searching bool, want reading, campaign bool, what string) {
	t.Helper()
	copied, err := os.MkdirTemp("", "damage-*")
	require.NoError(t, err)
	defer os.RemoveAll(copied)
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	path := filepath.Join(copied, name)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[at] ^= bit
	require.NoError(t, os.WriteFile(path, b, 0o600))
	began := time.Now()
	got := read(t, copied, !writing, searching)
	if campaign {
		require.Less(t, time.Since(began), slowest, what)
	}
	inSearch := strings.HasPrefix(name, search.FileName) // SQLite has no checksums
	for _, err := range got.errs {
		if inSearch && strings.Contains(err.Error(), "search") {
			continue
		}
		require.True(t, errors.Is(err, lineage.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), "%s: %v", what, err)
	}
	for read, said := range got.said {
		if inSearch && isFound(read) {
			continue
		}
		is, ok := want.said[read]
		require.True(t, ok, "%s: %s", what, read)
		require.Equal(t, is, said, "%s: %s", what, read)
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

// isFound reports whether something was read of the search index.
func isFound(read string) bool {
	return strings.HasPrefix(read, "found ") || read == "open search" || read == "searched"
}
