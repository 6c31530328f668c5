package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Resumed describes how 'lineage resume' made a session of an agent from a thread. When the session's file is
// followed, the session becomes a branch of that thread instead of a thread of its own: new messages of the agent
// follow the message that the session was resumed from. The beginning of the file, which this program wrote, adds no
// messages.
type Resumed struct {
	Agent  string           `json:"agent"`
	Thread lineage.ThreadID `json:"thread"`
	// At is the message that the session was resumed from.
	At lineage.SpanRef `json:"at"`
	// Lines is the number of written lines. The first Own of them are the agent's own lines, whose messages are in
	// the thread; the others add no messages. Bytes and Digest are the size and SHA-256 of what was written: a file
	// that begins differently has another history.
	Own    int64  `json:"own,omitempty"`
	Lines  int64  `json:"lines,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Digest string `json:"sha256,omitempty"`
	// Suffix is the suffix of the ids of the written messages, for an agent that may write them elsewhere.
	Suffix string `json:"suffix,omitempty"`
}

// resumedBy is the owner of the values about sessions that were made from threads. Their copies in other stores count there, too: a
// bundle of a store has the threads with their ids.
var resumedBy = lineage.Owner{Scope: lineage.ApplicationScope, Name: "lineage resume"}

// RememberResumed stores how a session was made. It must be called before the session is written, so that no follower
// reads the session without it.
func RememberResumed(ctx context.Context, store *lineage.Store, session string, r Resumed) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return store.Values(resumedBy).Set(ctx, session, b)
}

// FindResumed returns how a session was made, or nil for a session that was not made from the store.
func FindResumed(ctx context.Context, store *lineage.Store, session string) (*Resumed, error) {
	if session == "" || len(session) > maxSessionID {
		return nil, nil
	}
	value, err := store.Values(resumedBy).Get(ctx, session)
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

// maxSessionID exceeds the length of all ids of sessions that this program makes.
const maxSessionID = 256

// ThreadOf returns the thread of a session: its own, or the one that it was made from.
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

// branch returns the name of the session's branch.
func (r *Resumed) branch(session string) string {
	return r.Agent + "-" + strings.ToLower(session[max(0, len(session)-12):]) // what is random of a UUID
}

// in returns what a file has of the session: what was written is at its beginning, or its messages are recognised by their ids, or it is of a
// subagent, and has nothing of that. in returns nil for any other file, which has another history.
func (r *Resumed) in(path, agent string) (*Resumed, error) {
	if r.Lines > 0 {
		if begins, err := r.begins(path); begins || err != nil {
			return r, err
		}
	}
	switch {
	case agent != r.Agent:
	case r.Lines == 0:
		return r, nil
	case strings.HasPrefix(filepath.Base(path), "agent-"):
		part := *r
		part.Own, part.Lines = 0, 0
		return &part, nil
	}
	return nil, nil
}

// begins reports whether a file begins with what was written.
func (r *Resumed) begins(path string) (bool, error) {
	f, err := vfs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(path, compressedSuffix) {
		z, err := archive.Zstd(f)
		if err != nil {
			return false, err
		}
		defer z.Close()
		from = z
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(from, r.Bytes))
	if err != nil && from == f {
		return false, err
	}
	return n == r.Bytes && hex.EncodeToString(sum.Sum(nil)) == r.Digest, nil
}

// wrote reports whether a node was written by this program and adds no message to the thread.
func (r *Resumed) wrote(n *archive.Node) bool {
	if r.Suffix != "" {
		id, _, _ := strings.Cut(n.ID, "#") // a later version of it
		return strings.HasSuffix(id, r.Suffix)
	}
	return n.At.Line > r.Own && n.At.Line <= r.Lines
}

// continuing reads a session that was made from a thread.
type continuing struct {
	*Resumed
	// written are the ids of the written messages. next is set until the message after those without ids.
	written map[string]bool
	next    bool
}

// adapt turns a part of the session into a part of a branch.
func (r *continuing) adapt(c *archive.Conversation) {
	c.Continues = &archive.Continues{Thread: r.Thread, Branch: r.branch(c.SourceID)}
	c.ForkedFrom, c.Current, c.Empty = "", "", nil
	var left []archive.Node
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Branch, n.BranchOf, n.BranchMetadata = "", "", nil
		if r.wrote(n) {
			if n.Aside == "" && n.ID != "" {
				r.written[n.ID] = true
			} else if n.Aside == "" {
				r.next = true
			}
			continue
		}
		switch {
		case r.written[n.Parent] && n.Parent != "":
			n.Follows, n.Parent, n.Root = r.At, "", false
		case n.Aside == "" && n.Parent == "" && r.next && !n.Root:
			n.Follows = r.At
		}
		if n.Aside == "" {
			r.next = false
		}
		left = append(left, *n)
	}
	c.Nodes = left
}
