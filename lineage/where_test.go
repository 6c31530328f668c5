package lineage_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// usesOf returns the uses of all contents in a store, read from its histories.
func usesOf(t *testing.T, s *lineage.Store) (uses map[lineage.ContentID][]string) {
	uses = map[lineage.ContentID][]string{}
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		for e, err := range main.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			uses[e.Content] = append(uses[e.Content], fmt.Sprint(e.Span, e.Index))
		}
	}
	for _, all := range uses {
		slices.Sort(all)
	}
	return uses
}

// requireWhere compares what is found by content with what the histories say.
func requireWhere(t *testing.T, s *lineage.Store, texts []string) {
	found := func(where func(context.Context, lineage.ContentID) iter.Seq2[*lineage.Entry, error], text string) (all []string) {
		last := uint64(0)
		for e, err := range where(bg, content.Sum([]byte(text))) {
			require.NoError(t, err)
			require.GreaterOrEqual(t, e.Commit, last, "uses are in the order of commits")
			last = e.Commit
			all = append(all, fmt.Sprint(e.Span, e.Index))
		}
		slices.Sort(all)
		return all
	}
	uses := usesOf(t, s)
	for _, text := range texts {
		require.Equal(t, uses[content.Sum([]byte(text))], found(s.Where, text), text)
	}
	for f, err := range s.Verify(bg, lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		t.Fatal(f)
	}
}

// Conversations of two users begin as others do, with texts that repeat within them and messages that differ. What is found by
// content is what the histories say: before and after packing, with additions, deletions, erasures and collections, and when
// the store is opened again.
//
//test:norace
func TestWhereInForks(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			s, err := lineage.Open(bg, dir, lineage.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			var texts []string
			text := func(words string) string {
				words = fmt.Sprintf("%s %d", words, len(texts))
				texts = append(texts, words)
				return words
			}
			yes, more := text("yes"), text("go on")
			var lines [][]string
			for range 4 {
				var line []string
				for range 60 {
					line = append(line, text("message"))
					if n := random.IntN(6); n < 2 {
						line = append(line, []string{yes, more}[n])
					}
				}
				lines = append(lines, line)
			}
			n := 0
			add := func(conversations int) {
				for range conversations {
					n++
					line := lines[random.IntN(len(lines))]
					line = slices.Clone(line[:1+random.IntN(len(line))])
					if random.IntN(3) == 0 {
						line[random.IntN(len(line))] = text("changed")
					}
					user := fmt.Sprint("user ", n%2)
					thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: fmt.Sprint("c", n), UserID: user})
					require.NoError(t, err)
					main, err := thread.Active(bg)
					require.NoError(t, err)
					for len(line) > 0 { // mostly in one commit
						now := len(line)
						if random.IntN(4) == 0 {
							now = 1 + random.IntN(now)
						}
						var items []lineage.Item
						for _, m := range line[:now] {
							items = append(items, lineage.User(m))
						}
						_, err = main.Extend(bg, items...)
						require.NoError(t, err)
						line = line[now:]
					}
				}
			}
			pack := func() {
				_, err := s.Pack(bg, lineage.PackOptions{All: true, Dense: random.IntN(2) == 0})
				require.NoError(t, err)
			}
			collect := func() {
				_, err := s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
				require.NoError(t, err)
			}
			reopen := func() {
				require.NoError(t, s.Close())
				s, err = lineage.Open(bg, dir, lineage.Options{})
				require.NoError(t, err)
			}
			check := func() { requireWhere(t, s, texts) }

			add(40)
			check()
			pack()
			check()
			add(10) // in leaves, or in memory
			check()
			reopen()
			check()
			pack()
			check()
			for range 2 {
				deleted := 0
				for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
					require.NoError(t, err)
					if random.IntN(5) > 0 {
						continue
					}
					require.NoError(t, thread.Delete(bg))
					deleted++
				}
				require.Positive(t, deleted)
				require.NoError(t, s.Erase(bg, content.Sum([]byte(lines[0][3]))))
				collect()
				check()
				add(5)
				check()
				pack()
				reopen()
				check()
			}
			backup := filepath.Join(t.TempDir(), "backup")
			_, err = s.Backup(bg, backup, lineage.BackupOptions{})
			require.NoError(t, err)
			copied, err := lineage.Open(bg, backup, lineage.Options{ReadOnly: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, copied.Close()) }()
			requireWhere(t, copied, texts)
		})
	}
}
