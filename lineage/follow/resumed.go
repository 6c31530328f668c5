package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Resumed says what the session of an agent was made of that 'lineage resume' has written. When its file is followed, the session is a
// branch of the thread that it was made of, and no thread of its own: what the agent adds follows the message that it was resumed from.
// The beginning of the file was written by this program, and is no message.
type Resumed struct {
	Agent  string           `json:"agent"`
	Thread lineage.ThreadID `json:"thread"`
	// At is the message that the session was resumed from.
	At lineage.SpanRef `json:"at"`
	// Lines is how many lines were written, of which the first Own are the agent's own: these have messages of the thread. Of the others
	// no message is added. Bytes and Digest are the size and the SHA-256 of what was written: a file that begins otherwise has
	// another history.
	Own    int64  `json:"own,omitempty"`
	Lines  int64  `json:"lines,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Digest string `json:"sha256,omitempty"`
	// Suffix ends the ids of the messages that were written, for an agent that may write them elsewhere.
	Suffix string `json:"suffix,omitempty"`
}

// resumedBy owns what a store knows of sessions that were made from it.
func resumedBy(store *lineage.Store) lineage.Owner {
	return lineage.Owner{Scope: lineage.ApplicationScope, Name: fmt.Sprintf("lineage resume %s", store.ID())}
}

// RememberResumed keeps in a store what a session was made of. It comes before the session, so that no follower reads that without it.
func RememberResumed(ctx context.Context, store *lineage.Store, session string, r Resumed) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return store.Values(resumedBy(store)).Set(ctx, session, b)
}

// FindResumed returns what a session was made of, nil for a session that was not made from the store.
func FindResumed(ctx context.Context, store *lineage.Store, session string) (*Resumed, error) {
	if session == "" || len(session) > maxSessionID {
		return nil, nil
	}
	value, err := store.Values(resumedBy(store)).Get(ctx, session)
	if errors.Is(err, lineage.ErrNotFound) || errors.Is(err, lineage.ErrInvalid) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Resumed{}
	if json.Unmarshal(value.JSON, r) != nil || r.Thread.IsZero() || r.At.IsZero() {
		return nil, nil // another program has set it
	}
	return r, nil
}

// ResumedInto returns the sessions that were made from a store, by their ids, with the threads that have them.
func ResumedInto(ctx context.Context, store *lineage.Store) (map[string]lineage.ThreadID, error) {
	all := make(map[string]lineage.ThreadID)
	for value, err := range store.Values(resumedBy(store)).All(ctx, "") {
		if err != nil {
			return nil, err
		}
		var r Resumed
		if json.Unmarshal(value.JSON, &r) == nil {
			all[value.Key] = r.Thread
		}
	}
	return all, nil
}

// maxSessionID is the length of the longest id that a session is made with, and more.
const maxSessionID = 256

// ThreadOf returns the thread that has a session: its own, or the one that the session was made from.
func ThreadOf(ctx context.Context, store *lineage.Store, session string) (*lineage.Thread, error) {
	thread, err := store.FindThread(ctx, session)
	if !errors.Is(err, lineage.ErrNotFound) {
		return thread, err
	}
	r, resumedErr := FindResumed(ctx, store, session)
	if resumedErr != nil {
		return nil, resumedErr
	}
	if r == nil {
		return nil, err
	}
	return store.Thread(ctx, r.Thread)
}

// branch is the name of the branch that a session becomes.
func (r *Resumed) branch(session string) string {
	return r.Agent + "-" + strings.ToLower(session[max(0, len(session)-12):]) // what is random of a UUID
}

// isOf reports whether a file begins with what was written. Of a file that its agent has compressed, or of a database, that is not known.
func (r *Resumed) isOf(path string) (bool, error) {
	if r.Lines == 0 || !strings.HasSuffix(path, ".jsonl") {
		return true, nil
	}
	f, err := vfs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, r.Bytes))
	return n == r.Bytes && hex.EncodeToString(sum.Sum(nil)) == r.Digest, err
}

// wrote reports whether a node is one that was written and is no message of the thread.
func (r *Resumed) wrote(n *archive.Node) bool {
	if r.Suffix != "" {
		id, _, _ := strings.Cut(n.ID, "#") // a later version of it
		return strings.HasSuffix(id, r.Suffix)
	}
	return n.At.Line > r.Own && n.At.Line <= r.Lines
}

// continuing reads the session that was made from a thread.
type continuing struct {
	*Resumed
	// written are the ids of the messages that were written, next is set until the message after those without ids.
	written map[string]bool
	next    bool
}

// continues returns what a session continues, nil if it is a conversation of its own.
func (t *taking) continues(session string) (*continuing, error) {
	if is, known := t.resumed[session]; known {
		return is, nil
	}
	is, err := t.findContinued(session)
	if err != nil {
		return nil, err
	}
	if t.resumed == nil {
		t.resumed = make(map[string]*continuing)
	}
	t.resumed[session] = is
	return is, nil
}

func (t *taking) findContinued(session string) (*continuing, error) {
	r, err := FindResumed(t.ctx, t.run.store, session)
	if r == nil || err != nil {
		return nil, err
	}
	switch is, err := r.isOf(t.path); {
	case err != nil:
		return nil, err
	case !is:
		return nil, nil
	}
	if _, err := t.run.store.Thread(t.ctx, r.Thread); err == nil {
		if _, err := t.run.store.Span(t.ctx, r.At); errors.Is(err, lineage.ErrNotFound) {
			return nil, nil // its branch was deleted
		} else if err != nil {
			return nil, err
		}
	} else if !errors.Is(err, lineage.ErrNotFound) {
		return nil, err
	}
	return &continuing{Resumed: r, written: make(map[string]bool)}, nil
}

// adapt makes a part of the session a part of a branch.
func (is *continuing) adapt(c *archive.Conversation) {
	c.Continues = &archive.Continues{Thread: is.Thread, Branch: is.branch(c.SourceID)}
	c.ForkedFrom, c.Current, c.Empty = "", "", nil
	var left []archive.Node
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Branch, n.BranchOf, n.BranchMetadata = "", "", nil
		if is.wrote(n) {
			if n.Aside == "" && n.ID != "" {
				is.written[n.ID] = true
			} else if n.Aside == "" {
				is.next = true
			}
			continue
		}
		switch {
		case is.written[n.Parent] && n.Parent != "":
			n.Follows, n.Parent, n.Root = is.At, "", false
		case n.Aside == "" && n.Parent == "" && is.next && !n.Root:
			n.Follows = is.At
		}
		if n.Aside == "" {
			is.next = false
		}
		left = append(left, *n)
	}
	c.Nodes = left
}
