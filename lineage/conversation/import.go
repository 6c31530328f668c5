package conversation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

var (
	// ErrBadFile is matched by the problem of a file that is not a branch.
	ErrBadFile = errors.New("not a branch file")
	// ErrDiverged is matched by the problem of a branch whose messages in the store
	// are not those of the file.
	ErrDiverged = errors.New("the branch in the store has other messages")
)

// ImportOptions say what to import. The zero value of each field is a default.
type ImportOptions struct {
	// Sessions are the ids of those wanted. Default all.
	Sessions []string
	// UserID is that of threads that are made.
	UserID string
	// MaxFile is the most bytes of a file. Default DefaultMaxFile.
	MaxFile int64
}

// DefaultMaxFile is the most bytes of a branch file, unless told otherwise.
const DefaultMaxFile = 256 << 20

// Problem tells what was left out of an import and why.
type Problem struct {
	Session string
	// File is the file's name, empty if it is about the session.
	File string
	Err  error
}

func (p *Problem) Error() string {
	at := fmt.Sprintf("session %q", p.Session)
	if p.File != "" {
		at += fmt.Sprintf(", file %q", p.File)
	}
	return at + ": " + p.Err.Error()
}

func (p *Problem) Unwrap() error { return p.Err }

// ImportReport tells what an import did.
type ImportReport struct {
	// Sessions and Branches were found and are in the store now.
	Sessions, Branches int
	// NewBranches and NewMessages were added. Messages that a branch has in common
	// with its parent are shared, and not counted.
	NewBranches, NewMessages int
	// Problems are what was left out.
	Problems []*Problem
}

// Import brings the files of branch managers into a store: in a folder for each
// session, a JSON file for each branch, named after its id. A session becomes the
// conversation of that id.
//
// What cannot be read, or is there with other messages, is left out and reported;
// the rest is imported, and nothing is overwritten. Importing again adds what the
// files have more, or nothing. Only what lies below root is read, wherever links
// and ids point.
//
// The files do not say which branch is current. A new conversation is on its main
// branch, as with those who wrote them, and one that is there stays where it is.
func Import(ctx context.Context, store *lineage.Store, root string, o ImportOptions) (ImportReport, error) {
	var report ImportReport
	dir, err := os.OpenRoot(root)
	if err != nil {
		return report, fmt.Errorf("import branch files: %w", err)
	}
	defer dir.Close()
	sessions := o.Sessions
	if sessions == nil {
		if sessions, err = sessionsIn(dir); err != nil {
			return report, fmt.Errorf("import branch files: %w", err)
		}
	}
	for _, id := range sessions {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		if !isFileName(id) {
			report.leaveOut(id, "", fmt.Errorf("its id is no name of a folder: %w", lineage.ErrInvalid))
			continue
		}
		branches, err := readSession(dir, id, o, &report)
		if err != nil {
			report.leaveOut(id, "", err)
			continue
		}
		if len(branches) == 0 {
			continue
		}
		if err := importSession(ctx, store, id, o, branches, &report); err != nil {
			return report, fmt.Errorf("import session %q: %w", id, err)
		}
		report.Sessions++
	}
	return report, nil
}

func (r *ImportReport) leaveOut(session, file string, err error) {
	r.Problems = append(r.Problems, &Problem{Session: session, File: file, Err: err})
}

// isFileName reports whether an id can be that of a session or branch, which are
// names of files, whatever the operating system.
func isFileName(id string) bool {
	return id != "" && id != "." && id != ".." && !strings.ContainsAny(id, "/\\\x00")
}

func sessionsIn(dir *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		// What is no folder may be a link to one; opening it tells.
		if info, err := dir.Stat(e.Name()); e.IsDir() || e.Type()&fs.ModeSymlink != 0 && (err != nil || info.IsDir()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// readSession returns the branches of a session, each after its parent.
func readSession(dir *os.Root, id string, o ImportOptions, report *ImportReport) ([]*branchFile, error) {
	entries, err := fs.ReadDir(dir.FS(), id)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*branchFile)
	var ids []string
	for _, e := range entries {
		if path.Ext(e.Name()) != ".json" || e.IsDir() {
			continue
		}
		b, err := readBranchFile(dir, id, e.Name(), o)
		if err != nil {
			report.leaveOut(id, e.Name(), err)
			continue
		}
		other, twice := byID[b.id]
		if twice && b.file == b.id+".json" {
			b, other = other, b
			byID[other.id] = other
		}
		if twice {
			report.leaveOut(id, b.file, fmt.Errorf("branch %q is in %q too: %w", b.id, other.file, lineage.ErrExists))
			continue
		}
		byID[b.id] = b
		ids = append(ids, b.id)
	}
	slices.SortFunc(ids, func(x, y string) int {
		switch {
		case x == Main:
			return -1
		case y == Main:
			return 1
		}
		return byID[x].compare(byID[y])
	})
	return parentsFirst(id, ids, byID, report), nil
}

// parentsFirst orders branches so that each comes after its parent. A branch whose
// parent is not there, or in the end the branch itself, has none.
func parentsFirst(session string, ids []string, byID map[string]*branchFile, report *ImportReport) []*branchFile {
	var ordered []*branchFile
	done := make(map[string]bool, len(ids))
	for _, id := range ids {
		var line []*branchFile
		above := make(map[string]bool)
		for at := byID[id]; at != nil && !done[at.id]; {
			line = append(line, at)
			above[at.id] = true
			parent := byID[at.parentID]
			switch {
			case at.id == Main || at.parentID == "":
				parent, at.parentID = nil, ""
			case parent == nil:
				report.leaveOut(session, at.file, fmt.Errorf("only where it begins: its parent %q: %w", at.parentID, lineage.ErrNotFound))
				at.parentID = ""
			case above[parent.id]:
				report.leaveOut(session, at.file, fmt.Errorf("only where it begins: it is above its parent %q: %w", at.parentID, lineage.ErrInvalid))
				parent, at.parentID = nil, ""
			}
			at = parent
		}
		for _, b := range slices.Backward(line) {
			done[b.id] = true
			ordered = append(ordered, b)
		}
	}
	return ordered
}

// importSession brings the branches of a session into its conversation.
func importSession(ctx context.Context, store *lineage.Store, id string, o ImportOptions, branches []*branchFile, report *ImportReport) error {
	c, err := Open(ctx, store, id, Options{UserID: o.UserID})
	if err != nil {
		return err
	}
	for _, b := range branches {
		made, added := false, 0
		err := c.inTransaction(ctx, func(in *Conversation) (err error) {
			made, added, err = in.importBranch(ctx, b)
			return err
		})
		if errors.Is(err, ErrDiverged) {
			report.leaveOut(id, b.file, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("branch %q: %w", b.id, err)
		}
		report.Branches++
		report.NewMessages += added
		if made {
			report.NewBranches++
		}
	}
	return nil
}

// importBranch makes a branch that is not there, adds the messages that it has more in the file, and keeps
// what the file says beside these. It returns whether it made the branch, and how many messages it added.
func (c *Conversation) importBranch(ctx context.Context, b *branchFile) (made bool, added int, err error) {
	on, err := c.thread.On(ctx, b.id)
	if made = errors.Is(err, lineage.ErrNotFound); made {
		on, err = c.startImported(ctx, b)
	}
	if err != nil {
		return made, 0, err
	}
	tip, err := on.Tip(ctx)
	if err != nil {
		return made, 0, err
	}
	after, kept, err := c.commonPrefix(ctx, tip, b.messages)
	if err != nil {
		return made, 0, err
	}
	added = len(b.messages) - kept
	switch {
	case added == 0 && after != tip:
		return made, 0, nil // it went on here
	case added > 0 && after != tip:
		return made, 0, fmt.Errorf("%w after the first %d", ErrDiverged, kept)
	}
	if err := extend(ctx, on, b.messages[kept:]); err != nil {
		return made, 0, err
	}
	info, err := on.Info(ctx)
	if err != nil || !made && added == 0 && readImported(info.Metadata).At != "" {
		return made, added, err
	}
	return made, added, on.Update(ctx, func(is *lineage.ContextInfo) (err error) {
		is.Metadata, err = b.withImported(is.Metadata, info.Tip)
		return err
	})
}

// startImported makes a branch with what it has in common with its parent.
func (c *Conversation) startImported(ctx context.Context, b *branchFile) (*lineage.Context, error) {
	above := b.parentID
	if above == "" {
		above = Main // no parent, but its context has one before it all the same
	}
	parent, err := c.thread.On(ctx, above)
	if errors.Is(err, lineage.ErrNotFound) { // it could not be imported
		above = Main
		parent, err = c.thread.On(ctx, above)
	}
	if err != nil {
		return nil, err
	}
	if above != b.parentID {
		return c.thread.CreateBranch(ctx, b.id, lineage.BranchOptions{From: parent, Empty: true, Metadata: newMetadata(b.name, "", 0)})
	}
	tip, err := parent.Tip(ctx)
	if err != nil {
		return nil, err
	}
	after, index, err := c.commonPrefix(ctx, tip, b.messages)
	if err != nil {
		return nil, err
	}
	if b.parentMessageIndex != nil {
		index = *b.parentMessageIndex
	}
	return c.thread.CreateBranch(ctx, b.id, lineage.BranchOptions{
		From: parent, At: after, Empty: after.IsZero(), Metadata: newMetadata(b.name, b.parentID, index),
	})
}
