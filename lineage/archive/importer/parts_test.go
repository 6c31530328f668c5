package importer_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// largeArchive is a conversation of more than PartNodes messages with texts of their own.
type largeArchive struct {
	messages []string
	ids      []string // the nodes', "" for a repeated one
	parents  []string // as stated
	current  string
}

// smallMessages is the number of messages in a small conversation.
const smallMessages = 1000

var ownText = regexp.MustCompile(`(fill|odd|no id|\\ud800)"`)

// makeLarge makes a conversation for largeFormats[k]. forks is the share of messages that follow another one than the last.
func makeLarge(k int, choose *rand.Rand, forks float64) (a largeArchive) {
	f := largeFormats[k]
	n := archive.PartNodes + 1 + choose.IntN(1500)
	used := make(map[string]bool)
	for i := range n {
		id, parent := fmt.Sprint("m", i), fmt.Sprint("m", i-1)
		if i == 0 {
			parent = ""
		}
		if choose.Float64() < forks {
			switch choose.IntN(40) {
			case 0:
				id = fmt.Sprint("m", choose.IntN(n))
			case 1:
				parent = "missing"
			default:
				parent = fmt.Sprint("m", choose.IntN(n)) // it may come later, and be circular
			}
		}
		text := f.fill
		if i%smallMessages != 0 && choose.IntN(4) == 0 { // some formats are recognised by a list's first message
			text = f.odd[choose.IntN(len(f.odd))]
		}
		text = ownText.ReplaceAllString(text, fmt.Sprintf(`${1} %d"`, i))
		if strings.Contains(text, "%[") {
			text = fmt.Sprintf(text, id, parent)
		}
		if used[id] || !strings.Contains(text, `"`+id+`"`) {
			id = ""
		}
		used[id] = true
		a.messages, a.ids, a.parents = append(a.messages, text), append(a.ids, id), append(a.parents, parent)
	}
	a.current = a.ids[choose.IntN(n)]
	return a
}

// readLarge reads a conversation, and all its nodes twice.
func readLarge(t require.TestingT, k int, messages []string, current string) (*archive.Conversation, []archive.Node) {
	f := largeFormats[k]
	var c *archive.Conversation
	for read, err := range archive.Read(context.Background(), archive.Stream("made.json", strings.NewReader(f.join(messages, current))), archive.ReadOptions{Format: f.name, Formats: formats.All()}) {
		require.NoError(t, err)
		require.Nil(t, c)
		c = read
	}
	require.NotNil(t, c)
	var nodes []archive.Node
	for round := range 2 {
		runtime.GC() // a text in a file must be there still
		var again []archive.Node
		for some := range c.Parts() {
			require.LessOrEqual(t, len(some), archive.PartNodes)
			again = append(again, some...)
		}
		if round > 0 {
			require.True(t, slices.EqualFunc(nodes, again, equalNodes))
		}
		nodes = again
	}
	return c, nodes
}

func equalNodes(a, b archive.Node) bool { return reflect.DeepEqual(a, b) }

// tree returns for each message the one that it follows, -1 for none, and whether it is one of its own ancestors.
func (a *largeArchive) tree() (parents []int, circular []bool) {
	owner := make(map[string]int)
	for i, id := range a.ids {
		if id != "" {
			owner[id] = i
		}
	}
	for i := range a.parents {
		p, there := owner[a.parents[i]]
		if !there || p == i {
			p = -1
		}
		parents = append(parents, p)
	}
	circular = make([]bool, len(parents))
	visited := make([]int, len(parents))
	for i := range parents {
		at := i
		for ; at >= 0 && visited[at] == 0; at = parents[at] {
			visited[at] = i + 1
		}
		for ; at >= 0 && visited[at] == i+1 && !circular[at]; at = parents[at] {
			circular[at] = true
		}
	}
	return parents, circular
}

var textNumber = regexp.MustCompile(`(?:fill|odd|no id|\\ud800) ([0-9]+)"`)

// numberOf returns the number of a message.
func numberOf(t require.TestingT, n *archive.Node) int {
	found := textNumber.FindSubmatch(n.Body)
	require.NotNil(t, found, "%s", n.Body)
	i, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return i
}

// The nodes of a large conversation are those of its messages in small ones, in the tree that the messages state.
func TestNodesOfLargeConversations(t *testing.T) {
	defer campaign.Checks(2)()
	for k, f := range largeFormats {
		t.Run(f.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				choose := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				a := makeLarge(k, choose, rapid.SampledFrom([]float64{0, 0.01, 0.5, 1}).Draw(t, "forks"))
				messages, inFile := slices.Clone(a.messages), rapid.Bool().Draw(t, "in a file")
				if inFile {
					messages[len(messages)-1] += strings.Repeat(" ", archive.LargeItem)
				}
				c, nodes := readLarge(t, k, messages, a.current)
				require.NotNil(t, c.Rest)
				if text := int64(len(strings.Join(messages[archive.PartNodes:], ""))); !inFile {
					require.Greater(t, c.Size(), text, "its text is memory")
				} else if runtime.GOOS != "windows" {
					require.Less(t, c.Size(), text, "its text is in a file")
				}

				alone := make(map[int]archive.Node)
				for some := range slices.Chunk(a.messages, smallMessages) {
					small, of := readLarge(t, k, some, "")
					require.Nil(t, small.Rest)
					for i := range of {
						if of[i].Aside == "" {
							alone[numberOf(t, &of[i])] = of[i]
						}
					}
				}
				require.Len(t, alone, len(a.messages))
				parents, circular := a.tree()
				place := make(map[string]int) // by id
				depth := make([]int, 0, len(nodes))
				roots := 0
				for at := range nodes {
					n := &nodes[at]
					if n.Aside != "" {
						continue
					}
					i := numberOf(t, n)
					got, left := alone[i]
					require.True(t, left, "message %d is there twice", i)
					delete(alone, i)
					got.ID = a.ids[i]
					above := -1
					switch {
					case f.unlinked:
						got.At.Inside = n.At.Inside[:strings.LastIndex(n.At.Inside, " ")+1] + strconv.Itoa(i+1)
					case circular[i] && n.Root:
						roots++
						got.Parent, got.Root = "", true
					case parents[i] < 0:
						got.Parent, got.Root = "", true
					default:
						got.Parent, got.Root = a.parents[i], false
						var before bool
						above, before = place[got.Parent]
						require.True(t, before, "message %d comes before its parent", i)
					}
					require.Equal(t, got, *n)
					if depth = append(depth, 0); above >= 0 {
						depth[at] = depth[above] + 1
					}
					if n.ID != "" {
						place[n.ID] = at
					}
				}
				require.Empty(t, alone, "messages that are left out")
				if f.unlinked {
					return
				}
				require.Equal(t, circles(parents, circular), roots)
				if at, there := place[c.Current]; there {
					require.Equal(t, at, depth[at], "the path to the current message comes first")
				}
			})
		})
	}
}

// circles counts the circles of messages.
func circles(parents []int, circular []bool) (n int) {
	seen := make([]bool, len(parents))
	for i := range parents {
		if !circular[i] || seen[i] {
			continue
		}
		n++
		for at := i; !seen[at]; at = parents[at] {
			seen[at] = true
		}
	}
	return n
}

// A large conversation that is read in parts makes the store that it makes as a whole, also if two handles import it at the
// same time.
func TestLargeConversationsAreWhole(t *testing.T) {
	defer campaign.Checks(1)()
	for k, f := range largeFormats {
		t.Run(f.name, func(t *testing.T) {
			dir := t.TempDir()
			n := 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				choose := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				a := makeLarge(k, choose, 0.005)
				open := func(name string) *lineage.Store { return openIn(t, fmt.Sprintf("%s/%d%s", dir, n, name)) }
				parts, whole, both := open("parts"), open("whole"), open("both")
				defer parts.Close()
				defer whole.Close()
				defer both.Close()
				other := open("both")
				defer other.Close()
				source := func() archive.Source {
					return archive.Stream("made.json", strings.NewReader(f.join(a.messages, a.current)))
				}
				options := importer.Options{Format: f.name}
				_, err := importer.Import(context.Background(), parts, source(), options)
				require.NoError(t, err)
				var wait sync.WaitGroup
				for _, s := range []*lineage.Store{both, other} {
					wait.Go(func() {
						_, err := importer.Import(context.Background(), s, source(), options)
						assert.NoError(t, err)
					})
				}
				wait.Wait()
				c, nodes := readLarge(t, k, a.messages, a.current)
				c.Nodes, c.Rest = nodes, nil
				importMade(t, whole, []*archive.Conversation{c})

				want := counts(t, parts)
				texts := contextsOf(t, parts)
				for name, s := range map[string]*lineage.Store{"whole": whole, "both": both} {
					require.Equal(t, want, counts(t, s), name)
					require.Equal(t, texts, contextsOf(t, s), name)
				}
				report, err := importer.Import(context.Background(), other, source(), options)
				require.NoError(t, err)
				require.Zero(t, report.NewMessages)
			})
		})
	}
}

// contextsOf returns the hash of the texts of each context of a store, in order.
func contextsOf(t require.TestingT, s *lineage.Store) (all []string) {
	for thread, err := range s.Threads(context.Background(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		of, _ := histories(t, s, thread.Thread)
		for h := range of {
			all = append(all, fmt.Sprintf("%x", sha256.Sum256([]byte(h))))
		}
	}
	slices.Sort(all)
	return all
}
