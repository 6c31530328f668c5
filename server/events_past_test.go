package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
)

// replayed returns the events that a caller gets of the commits after a position.
func (h *harness) replayed(bearer string, after uint64) (all []records.Event) {
	h.t.Helper()
	head, err := h.store.View().Head(h.t.Context())
	require.NoError(h.t, err)
	s := h.stream("?from="+strconv.FormatUint(after+1, 10), bearer)
	defer s.body.Close()
	for last := ""; ; {
		line, err := s.in.ReadString('\n')
		require.NoError(h.t, err, h.log.String())
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
		case name == "id":
			last = value
		case name == "data":
			var some []records.Event
			require.NoError(h.t, json.Unmarshal([]byte(value), &some))
			all = append(all, some...)
		case name == "" && last == eventID(head): // a heartbeat has the position, if the last commit is left out
			return all
		}
	}
}

// past is a store in which ids are given to other users. It knows whose threads its commits are about.
type past struct {
	t     *testing.T
	store *lineage.Store
	// owners are those of the commits. lost are commits about threads and contexts that were deleted.
	owners map[uint64]string
	lost   map[uint64]bool
}

// do makes changes of a user's thread, and returns their commits.
func (p *past) do(user string, change func(ctx context.Context) error) (commits []uint64) {
	p.t.Helper()
	before, err := p.store.View().Head(p.t.Context())
	require.NoError(p.t, err)
	require.NoError(p.t, change(p.t.Context()))
	after, err := p.store.View().Head(p.t.Context())
	require.NoError(p.t, err)
	for n := before.Number + 1; n <= after.Number; n++ {
		p.owners[n], commits = user, append(commits, n)
	}
	return commits
}

// lose marks commits as those of a thread or context that is deleted.
func (p *past) lose(commits ...uint64) {
	for _, n := range commits {
		p.lost[n] = true
	}
}

func (p *past) thread(user, source string) (made *lineage.Thread, commits []uint64) {
	commits = p.do(user, func(ctx context.Context) (err error) {
		made, err = p.store.CreateThread(ctx, lineage.ThreadOptions{SourceID: source, UserID: user})
		return err
	})
	return made, commits
}

// branch makes a branch and events of all kinds in it.
func (p *past) branch(user string, in *lineage.Thread, name, source string) (made *lineage.Context, commits []uint64) {
	return made, p.do(user, func(ctx context.Context) (err error) {
		made, err = in.CreateBranch(ctx, name, lineage.BranchOptions{SourceID: source, Empty: true})
		require.NoError(p.t, err)
		var spans []lineage.SpanRef
		for i := range 2 {
			spans, err = made.Extend(ctx, lineage.User(fmt.Sprint(i, " of ", user)))
			require.NoError(p.t, err)
			require.NoError(p.t, p.store.Values(lineage.Owner{Scope: lineage.ContextScope, Context: made.ID()}).Set(ctx, "k", []byte("1")))
		}
		_, err = in.SetCheckpoint(ctx, name+" of "+user, lineage.CheckpointOptions{At: spans[0]})
		require.NoError(p.t, err)
		require.NoError(p.t, made.MoveTo(ctx, lineage.SpanRef{Run: spans[0].Run, Seq: 1}, "back"))
		_, err = made.Extend(ctx, lineage.User("again of "+user))
		return err
	})
}

func (p *past) delete(user string, gone *lineage.Thread) (commits []uint64) {
	return p.do(user, func(ctx context.Context) error { return gone.Delete(ctx) })
}

// pasts are changes after which ids belong to others. In each, ada and bob have a thread with a branch.
var pasts = map[string]func(p *past, ada, bob *lineage.Thread){
	"thread": func(p *past, ada, bob *lineage.Thread) {
		shared, commits := p.thread("ada", "thread")
		p.lose(commits...)
		_, commits = p.branch("ada", shared, "one", "one")
		p.lose(commits...)
		p.lose(p.delete("ada", shared)...)
		shared, _ = p.thread("bob", "thread")
		p.branch("bob", shared, "one", "one")
	},
	"branch": func(p *past, ada, bob *lineage.Thread) {
		_, commits := p.branch("ada", ada, "one", "one")
		p.lose(commits...)
		p.lose(p.do("ada", func(ctx context.Context) error { return ada.DeleteBranch(ctx, "one") })...)
		p.branch("bob", bob, "one", "one")
	},
	"branch of a deleted thread": func(p *past, ada, bob *lineage.Thread) {
		gone, commits := p.thread("ada", "")
		p.lose(commits...)
		_, commits = p.branch("ada", gone, "one", "one")
		p.lose(commits...)
		p.lose(p.delete("ada", gone)...)
		p.branch("bob", bob, "one", "one")
	},
	"twice": func(p *past, ada, bob *lineage.Thread) {
		for _, user := range []string{"ada", "bob", "ada"} {
			shared, commits := p.thread(user, "thread")
			p.lose(commits...)
			_, commits = p.branch(user, shared, "one", "one")
			p.lose(commits...)
			p.lose(p.delete(user, shared)...)
		}
		shared, _ := p.thread("bob", "thread")
		p.branch("bob", shared, "one", "one")
	},
	"others are deleted": func(p *past, ada, bob *lineage.Thread) {
		other, _ := p.thread("ada", "")
		p.do("ada", func(ctx context.Context) error {
			from, err := ada.BranchContext(ctx, "kept")
			require.NoError(p.t, err)
			fork, err := other.CreateBranch(ctx, "fork", lineage.BranchOptions{From: from})
			require.NoError(p.t, err)
			return p.store.Values(lineage.Owner{Scope: lineage.ContextScope, Context: fork.ID()}).Set(ctx, "k", []byte("1"))
		})
		gone, commits := p.thread("bob", "")
		p.lose(commits...)
		p.lose(p.delete("bob", gone)...)
	},
}

// TestEventsOfThePast: whatever the position at which a stream begins, a token for a user gets the events of the threads of that
// user that are there, and none of a thread that was deleted, even if another user has its id now. Likewise for branches.
func TestEventsOfThePast(t *testing.T) {
	for name, change := range pasts {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/store"
			owner, err := lineage.Open(t.Context(), dir, lineage.Options{Durability: lineage.Normal})
			require.NoError(t, err)
			defer owner.Close()
			guest, err := lineage.Open(t.Context(), dir, lineage.Options{Durability: lineage.Normal})
			require.NoError(t, err)
			defer guest.Close()
			p := &past{t: t, store: owner, owners: make(map[uint64]string), lost: make(map[uint64]bool)}
			ada, _ := p.thread("ada", "")
			kept, _ := p.branch("ada", ada, "kept", "kept")
			bob, _ := p.thread("bob", "")
			p.branch("bob", bob, "kept", "kept too")
			change(p, ada, bob)
			p.do("ada", func(ctx context.Context) error {
				_, err := kept.Extend(ctx, lineage.User("more"))
				return err
			})
			head, err := owner.View().Head(t.Context())
			require.NoError(t, err)
			quick := func(o *Options) { o.Limits.Heartbeat = 5 * time.Millisecond }
			for _, h := range []*harness{openOf(t, owner, quick), openOf(t, guest, quick)} {
				for _, user := range []string{"ada", "bob"} {
					bearer := h.token(access.Token{Scope: access.Scope{Users: []string{user}}})
					for after := range head.Number {
						seen := make(map[uint64]bool)
						for _, e := range h.replayed(bearer, after) {
							require.Equal(t, user, p.owners[e.Commit], "after %d: %+v", after, e)
							seen[e.Commit] = true
						}
						for n := after + 1; n <= head.Number; n++ {
							if p.owners[n] == user && !p.lost[n] {
								require.True(t, seen[n], "after %d: commit %d of %s", after, n, user)
							}
						}
					}
				}
			}
		})
	}
}

// A thread that is deleted and made again in one commit is another one in the middle of the commit.
func TestEventsOfAThreadThatIsReplaced(t *testing.T) {
	h := open(t, func(o *Options) { o.Limits.Heartbeat = 5 * time.Millisecond })
	was, _ := thread(t, h.store, lineage.ThreadOptions{SourceID: "thread", UserID: "ada"})
	require.NoError(t, h.store.Update(t.Context(), func(ctx context.Context, tx *lineage.Tx) error {
		old, err := tx.Thread(ctx, was.ID())
		require.NoError(t, err)
		require.NoError(t, old.Update(ctx, func(info *lineage.ThreadInfo) error { info.Title = "secret"; return nil }))
		require.NoError(t, old.Delete(ctx))
		_, err = tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: "thread", UserID: "bob"})
		return err
	}))
	kinds := func(user string) (all []string) {
		for _, e := range h.replayed(h.token(access.Token{Scope: access.Scope{Users: []string{user}}}), 1) {
			all = append(all, e.Kind)
		}
		return all
	}
	require.Empty(t, kinds("ada"))
	require.Equal(t, string(lineage.ThreadCreated), kinds("bob")[0])
}

// While a stream sends what was, threads change hands: it sends only what its caller may read now and could read then.
func TestEventsWhileThreadsChange(t *testing.T) {
	h := open(t)
	was, _ := thread(t, h.store, lineage.ThreadOptions{SourceID: "thread", UserID: "ada"}, "of ada")
	sent := make(map[string]int)
	filters := make(map[string]*eventFilter)
	head, err := h.store.View().Head(t.Context())
	require.NoError(t, err)
	for _, user := range []string{"ada", "bob"} {
		f := &eventFilter{store: h.store, caller: &caller{scope: access.Scope{Users: []string{user}}}, homes: make(map[lineage.ContextID]lineage.ThreadID)}
		_, end, err := f.begin(t.Context(), lineage.Cursor{}, func() error { return nil })
		require.NoError(t, err)
		defer end()
		filters[user] = f
	}
	count := func() {
		for user, f := range filters {
			for change, err := range h.store.Changes(t.Context(), lineage.Cursor{}) {
				require.NoError(t, err)
				if change.Commit.Number > head.Number {
					break
				}
				for i := range change.Events {
					if is, err := f.sends(t.Context(), &change, &change.Events[i]); is {
						sent[user]++
					} else {
						require.NoError(t, err)
					}
				}
			}
		}
	}
	count()
	require.NotZero(t, sent["ada"])
	require.Zero(t, sent["bob"])
	require.NoError(t, was.Delete(t.Context()))
	thread(t, h.store, lineage.ThreadOptions{SourceID: "thread", UserID: "bob"}, "of bob")
	clear(sent)
	count()
	require.Empty(t, sent)
}
