package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/chat"
)

const (
	// workNames is the prefix of rows about operations in stores with many branches and threads.
	workNames       = "among branches and threads: "
	workNamesImport = workNames + "import, each branch"

	fewNames  = 100 // in the smallest store
	namesEach = 50  // operations in a round
)

// names measures operations on a branch, context or thread in stores that differ only in the number
// of branches of a thread and of other threads. It also imports conversations with as many branches
// into empty stores.
func (r *run) names(ctx context.Context) (err error) {
	if !r.wantsSystem(nameLineage) {
		return nil
	}
	var stores []*namesStore
	defer func() {
		for _, s := range stores {
			err = errors.Join(err, s.close())
		}
	}()
	for n := fewNames; n == fewNames || n <= r.config.Forks; n *= 10 {
		s, err := r.newNamesStore(ctx, n)
		if err != nil {
			return err
		}
		stores = append(stores, s)
	}
	largest := stores[len(stores)-1].n
	for i, first := range stores[0].operations() {
		var contenders []contender
		for _, s := range stores {
			contenders = append(contenders, s.contender(s.operations()[i]))
		}
		if err := r.compare(ctx, subject{workload: workNames + first.name, size: largest}, contenders); err != nil {
			return err
		}
	}
	var imports []contender
	for _, s := range stores {
		imports = append(imports, r.importsBranches(s.n))
	}
	return r.compare(ctx, subject{workload: workNamesImport, size: largest, rounds: slow(r.config.Rounds), warm: true}, imports)
}

// namesStore is a store with a chat of n branches, each with a message of its own, and n other
// threads. Objects created by operations are deleted before the next round.
type namesStore struct {
	*lineageStore
	n        int
	seed     uint64
	messages *messages
	thread   *lineage.Thread
	main     *lineage.Context
	chats    chat.Store
	branches []namesBranch // a random sample for the operations

	// created by operations
	made     int // branches
	contexts []*lineage.Context
	threads  []*lineage.Thread
	branch   *chat.Branch // the branch to append to
	appended int
}

// namesBranch is one of the n branches.
type namesBranch struct {
	number  int
	context *lineage.Context
	first   lineage.SpanRef // its own message
}

func (b namesBranch) name() string    { return "branch " + strconv.Itoa(b.number) }
func (b namesBranch) message() string { return "message " + strconv.Itoa(b.number) }
func (b namesBranch) thread() string  { return "thread " + strconv.Itoa(b.number) }

func madeName(i int) string { return "made " + strconv.Itoa(i) }

const namesChat = "chat"

func (r *run) newNamesStore(ctx context.Context, n int) (*namesStore, error) {
	dir, err := r.directory("names")
	if err != nil {
		return nil, err
	}
	s := &namesStore{
		lineageStore: &lineageStore{dir: dir, options: lineage.Options{Durability: lineage.Normal, NoPacking: true}},
		n:            n, seed: r.config.Seed, messages: newMessages(&r.config, streamStore),
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(s.fill(ctx, &r.config), s.shut()); err != nil {
		return nil, err
	}
	// Reopening writes the index to its file, as in a store that is not new.
	if err := s.openAgain(ctx); err != nil {
		return nil, err
	}
	if err := s.find(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// fill creates the chat, its branches and the other threads.
func (s *namesStore) fill(ctx context.Context, c *Config) error {
	if _, err := chat.On(s.store).CreateChat(ctx, chat.Chat{ID: namesChat, UserID: "bench"}); err != nil {
		return err
	}
	thread, err := s.store.FindThread(ctx, namesChat)
	if err != nil {
		return err
	}
	main, err := thread.Active(ctx)
	if err != nil {
		return err
	}
	if err := (&lineageHistory{s.lineageStore, main}).load(ctx, s.messages.some(10)); err != nil {
		return err
	}
	for i := range s.n {
		if i%1_000 == 0 {
			c.Progress(fmt.Sprintf("creating %s branches and threads: %s", count(s.n), count(i)))
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		b := namesBranch{number: i}
		if b.context, err = thread.CreateBranch(ctx, b.name(), lineage.BranchOptions{}); err != nil {
			return err
		}
		if _, err = b.context.Extend(ctx, item(0, s.messages.one()).WithID(b.message())); err != nil {
			return err
		}
		if _, err = s.store.CreateThread(ctx, lineage.ThreadOptions{SourceID: b.thread(), UserID: "bench"}); err != nil {
			return err
		}
	}
	return nil
}

// find reads what operations need from the reopened store.
func (s *namesStore) find(ctx context.Context) (err error) {
	s.chats = chat.On(s.store)
	if s.thread, err = s.store.FindThread(ctx, namesChat); err != nil {
		return err
	}
	if s.main, err = s.thread.BranchContext(ctx, "main"); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(s.seed, streamStore))
	for _, number := range random.Perm(s.n)[:namesEach] { // equal distances would collide in the CPU cache
		b := namesBranch{number: number}
		if b.context, err = s.thread.BranchContext(ctx, b.name()); err != nil {
			return err
		}
		if b.first, err = b.context.Tip(ctx); err != nil {
			return err
		}
		s.branches = append(s.branches, b)
	}
	return nil
}

func (s *namesStore) close() error {
	return errors.Join(s.lineageStore.close(), os.RemoveAll(s.dir))
}

// namesOperation is an operation that is done namesEach times per round.
type namesOperation struct {
	name string
	// before, when not nil, prepares a round, after the results of the last one were deleted.
	before func(ctx context.Context) error
	do     func(ctx context.Context, i int) error
}

func (s *namesStore) contender(o namesOperation) contender {
	return contender{
		system: nameLineage, durability: normal, at: s.n,
		before: func(ctx context.Context) error {
			if err := s.clean(ctx); err != nil || o.before == nil {
				return err
			}
			return o.before(ctx)
		},
		round: func(ctx context.Context) (int, error) {
			for i := range namesEach {
				if err := o.do(ctx, i); err != nil {
					return 0, err
				}
			}
			return namesEach, nil
		},
	}
}

func (s *namesStore) operations() []namesOperation {
	return []namesOperation{
		{"create a branch", nil, s.createBranch},
		{"find a branch", nil, func(ctx context.Context, i int) error {
			_, err := s.thread.Branch(ctx, s.branches[i].name())
			return err
		}},
		{"switch", nil, func(ctx context.Context, i int) error { return s.thread.Switch(ctx, s.branches[i].name()) }},
		{"delete a branch", s.times(s.createBranch), s.deleteBranch},
		{"fork", nil, s.fork},
		{"name a fork", s.times(s.fork), func(ctx context.Context, _ int) error {
			if err := s.thread.NameBranch(ctx, madeName(s.made), s.contexts[len(s.contexts)-1]); err != nil {
				return err
			}
			s.contexts = s.contexts[:len(s.contexts)-1]
			s.made++
			return nil
		}},
		{"delete a context", s.times(s.fork), s.deleteContext},
		{"extend", nil, s.extend},
		{"rewind", s.times(s.extend), func(ctx context.Context, i int) error {
			return s.branches[i].context.MoveTo(ctx, s.branches[i].first, "rewind")
		}},
		{"find a message by its id", nil, func(ctx context.Context, i int) error {
			_, err := s.thread.Find(ctx, s.branches[i].message())
			return err
		}},
		{"create a thread", nil, s.createThread},
		{"find a thread", nil, func(ctx context.Context, i int) error {
			_, err := s.store.FindThread(ctx, s.branches[i].thread())
			return err
		}},
		{"delete a thread", s.times(s.createThread), s.deleteThread},
		{"append to a chat", s.findChatBranch, s.appendToChat},
	}
}

// times repeats an operation as often as in a round.
func (s *namesStore) times(do func(ctx context.Context, i int) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range namesEach {
			if err := do(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
}

// clean deletes what operations created.
func (s *namesStore) clean(ctx context.Context) error {
	for s.made > 0 {
		if err := s.deleteBranch(ctx, 0); err != nil {
			return err
		}
	}
	for len(s.contexts) > 0 {
		if err := s.deleteContext(ctx, 0); err != nil {
			return err
		}
	}
	for len(s.threads) > 0 {
		if err := s.deleteThread(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *namesStore) createBranch(ctx context.Context, _ int) error {
	_, err := s.thread.CreateBranch(ctx, madeName(s.made), lineage.BranchOptions{From: s.main})
	s.made++
	return err
}

func (s *namesStore) deleteBranch(ctx context.Context, _ int) error {
	s.made--
	return s.thread.DeleteBranch(ctx, madeName(s.made))
}

func (s *namesStore) fork(ctx context.Context, _ int) error {
	c, err := s.main.Fork(ctx, lineage.ForkOptions{})
	s.contexts = append(s.contexts, c)
	return err
}

func (s *namesStore) deleteContext(ctx context.Context, _ int) error {
	last := len(s.contexts) - 1
	c := s.contexts[last]
	s.contexts = s.contexts[:last]
	return c.Delete(ctx)
}

func (s *namesStore) createThread(ctx context.Context, i int) error {
	t, err := s.store.CreateThread(ctx, lineage.ThreadOptions{SourceID: madeName(i), UserID: "bench"})
	s.threads = append(s.threads, t)
	return err
}

func (s *namesStore) deleteThread(ctx context.Context, _ int) error {
	last := len(s.threads) - 1
	t := s.threads[last]
	s.threads = s.threads[:last]
	return t.Delete(ctx)
}

func (s *namesStore) extend(ctx context.Context, i int) error {
	_, err := s.branches[i].context.Extend(ctx, item(0, s.messages.one()))
	return err
}

func (s *namesStore) findChatBranch(ctx context.Context) (err error) {
	s.branch, err = s.chats.Branch(ctx, namesChat, "main")
	return err
}

func (s *namesStore) appendToChat(ctx context.Context, _ int) error {
	id := "appended " + strconv.Itoa(s.appended)
	s.appended++
	head, err := s.chats.Append(ctx, chat.AppendRequest{
		ChatID: namesChat, BranchID: s.branch.ID, ExpectedHead: s.branch.HeadMessageID,
		Messages: []chat.Message{{ID: id, Name: "user", Data: messageJSON(id, "user", s.messages.one())}},
	})
	s.branch.HeadMessageID = head
	return err
}

// importsBranches is a contender that imports a conversation with n branches into an empty store,
// without parsing. Small ones are imported several times per round.
func (r *run) importsBranches(n int) contender {
	times := max(1, 1_000/n)
	format := branchyFormat(r.branchy(n))
	var stores []*lineageStore
	return contender{
		system: nameLineage, durability: normal, at: n,
		before: func(ctx context.Context) error {
			stores = nil
			for range times {
				dir, err := r.directory("names-import")
				if err != nil {
					return err
				}
				s := &lineageStore{dir: dir, options: lineage.Options{Durability: lineage.Normal, NoPacking: true}}
				if err := s.open(ctx); err != nil {
					return err
				}
				stores = append(stores, s)
			}
			return nil
		},
		round: func(ctx context.Context) (int, error) {
			for _, s := range stores {
				report, err := importer.Import(ctx, s.store, archive.Stream("", strings.NewReader("branchy")), format)
				if err != nil {
					return 0, err
				}
				if int(report.NewMessages) != 2*n {
					return 0, errWrongCount{nameLineage, int(report.NewMessages), 2 * n}
				}
			}
			return times * n, nil
		},
		after: func(context.Context) error {
			var err error
			for _, s := range stores {
				err = errors.Join(err, s.shut(), os.RemoveAll(s.dir))
			}
			return err
		},
	}
}

// branchy returns a conversation with n branches: a chain of n messages, each with an answer that
// has no successor.
func (r *run) branchy(n int) *archive.Conversation {
	m := newMessages(&r.config, streamImport)
	c := &archive.Conversation{SourceID: "branchy", Nodes: make([]archive.Node, 0, 2*n)}
	parent := ""
	for i := range n {
		id := strconv.Itoa(i)
		c.Nodes = append(c.Nodes,
			archive.Node{ID: id, Parent: parent, Root: parent == "", Role: "user", Body: m.one()},
			archive.Node{ID: "answer to " + id, Parent: id, Role: "assistant", Body: m.one()})
		parent = id
	}
	return c
}

// branchyFormat is a format that yields a conversation in memory for any input.
func branchyFormat(c *archive.Conversation) importer.Options {
	return importer.Options{Formats: []archive.Format{{
		Name:   "branchy",
		Detect: func(archive.Head) bool { return true },
		Read: func(context.Context, *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				copied := *c
				copied.Nodes = append([]archive.Node(nil), c.Nodes...)
				yield(&copied, nil)
			}
		},
	}}}
}
