package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lock"
)

// ExportOptions configure Export.
type ExportOptions struct {
	// Sessions are the ids of the sessions to export. Default all.
	Sessions []string
	// Prune deletes branch files without a branch, such as those of deleted branches. By default they are
	// reported, because an import would restore their branches.
	Prune bool
}

// ExportReport is the result of Export.
type ExportReport struct {
	// Sessions and Branches count what was written.
	Sessions, Branches int
	// Pruned is the number of files that were deleted.
	Pruned int
	// Problems are the sessions and branches that were left out.
	Problems []*Problem
}

// Problem is a session or branch that was left out, and why.
type Problem struct {
	Session string
	// File is the file name of a branch, even if it is not a valid one. It is empty for a session.
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

// Export writes the branches of conversations as the files that package archive reads: below root a folder for each
// session, in it a JSON file for each branch. The folders are made where they are missing. A file is
// replaced as a whole or not at all, under its session lock (package lock), and no other file is touched,
// but see ExportOptions.Prune. What imported files had beside messages, and what is not known here, is written again.
//
// A branch or session whose id is no name of a file, a thread without a source id, and a branch whose file
// another process has locked for longer than a second, is left out and reported. Nothing is written outside of
// root, wherever links lead.
func Export(ctx context.Context, store *lineage.Store, root string, o ExportOptions) (ExportReport, error) {
	var report ExportReport
	if err := os.MkdirAll(root, 0o700); err != nil {
		return report, fmt.Errorf("export branch files: %w", err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return report, fmt.Errorf("export branch files: %w", err)
	}
	defer dir.Close()
	sessions := o.Sessions
	if sessions == nil {
		for t, err := range store.Threads(ctx, lineage.ThreadQuery{}) {
			if err != nil {
				return report, err
			}
			if t.Was.SourceID == "" {
				report.Problems = append(report.Problems, &Problem{
					Session: t.Was.ID.String(), Err: fmt.Errorf("it has no source id to name its folder: %w", lineage.ErrInvalid),
				})
				continue
			}
			sessions = append(sessions, t.Was.SourceID)
		}
	}
	for _, id := range sessions {
		t, err := store.FindThread(ctx, id)
		if err == nil && !isFileName(id) {
			err = fmt.Errorf("its id is no name of a folder: %w", lineage.ErrInvalid)
		}
		if errors.Is(err, lineage.ErrNotFound) || errors.Is(err, lineage.ErrInvalid) {
			report.Problems = append(report.Problems, &Problem{Session: id, Err: err})
			continue
		}
		if err == nil {
			c := &Conversation{store: store, thread: t}
			err = c.export(ctx, root, dir, id, o.Prune, &report)
		}
		if err != nil {
			return report, fmt.Errorf("export session %q: %w", id, err)
		}
	}
	return report, nil
}

// isFileName reports whether an id is a valid file name on all operating systems.
func isFileName(id string) bool {
	return id != "" && id != "." && id != ".." && !strings.ContainsAny(id, "/\\\x00")
}

// patience limits the wait for the lock of a file.
const patience = time.Second

// export writes the files of one session below root. dir is root, open.
func (c *Conversation) export(ctx context.Context, root string, dir *os.Root, session string, prune bool, report *ExportReport) error {
	branches, err := c.list(ctx)
	if err != nil {
		return err
	}
	if err := dir.MkdirAll(session, 0o700); err != nil {
		return err
	}
	for i := range branches {
		b := &branches[i]
		name := b.ID + ".json"
		file, err := c.branchFile(ctx, b)
		if err == nil {
			err = lock.With(ctx, filepath.Join(root, session, name), lock.Options{Wait: patience}, func(context.Context) error {
				return replaceFile(dir, path.Join(session, name), file)
			})
		}
		switch {
		case err == nil:
			report.Branches++
		case errors.Is(err, lineage.ErrInvalid), errors.Is(err, lock.ErrHeld):
			report.Problems = append(report.Problems, &Problem{Session: session, File: name, Err: err})
		default:
			return fmt.Errorf("branch %q: %w", b.ID, err)
		}
	}
	report.Sessions++
	return abandoned(ctx, root, dir, session, branches, prune, report)
}

// abandoned reports or deletes the branch files of a session without a branch.
func abandoned(ctx context.Context, root string, dir *os.Root, session string, branches []branch, prune bool, report *ExportReport) error {
	entries, err := fs.ReadDir(dir.FS(), session)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, file := e.Name(), path.Join(session, e.Name())
		id, isJSON := strings.CutSuffix(name, ".json")
		// Some file systems ignore case.
		if !isJSON || !e.Type().IsRegular() || slices.ContainsFunc(branches, func(b branch) bool { return strings.EqualFold(b.ID, id) }) {
			continue
		}
		err := lock.With(ctx, filepath.Join(root, session, name), lock.Options{Wait: patience}, func(context.Context) error {
			data, err := dir.ReadFile(file)
			if err != nil || !isBranchFile(data, id) {
				return err
			}
			if !prune {
				return fmt.Errorf("no branch has it, and an import brings it back: %w", lineage.ErrConflict)
			}
			report.Pruned++
			return dir.Remove(file)
		})
		switch {
		case errors.Is(err, lineage.ErrConflict), errors.Is(err, lock.ErrHeld):
			report.Problems = append(report.Problems, &Problem{Session: session, File: name, Err: err})
		case err != nil:
			return fmt.Errorf("file %q: %w", name, err)
		}
	}
	return nil
}

// isBranchFile reports whether data is the file of a branch with an id.
func isBranchFile(data []byte, id string) bool {
	return rawjson.Valid(data) && rawjson.Str(rawjson.Get(data, "id")) == id && rawjson.IsArray(rawjson.Get(data, "messages"))
}

// replaceFile writes a file and renames it over an existing one.
func replaceFile(dir *os.Root, name string, data []byte) error {
	temporary := name + ".tmp"
	if err := dir.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = dir.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temporary))
	}
	return nil
}

// branchFile returns the content of a branch's file. The error is ErrInvalid if the id is not a file name, or
// JSON cannot express a message.
func (c *Conversation) branchFile(ctx context.Context, b *branch) ([]byte, error) {
	if !isFileName(b.ID) {
		return nil, branchError(b.ID, lineage.ErrInvalid, "its id is no name of a file")
	}
	messages, err := c.messages(ctx, b.state.Tip)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		if m.Erased {
			m = Message{Role: m.Role, Fields: map[string]json.RawMessage{"erased": json.RawMessage("true")}}
		}
		if list[i], err = m.encode(); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	const layout = "2006-01-02T15:04:05.000Z"
	file := branchJSON{
		ID: b.ID, Name: b.Name, ParentID: b.ParentID, Messages: list,
		CreatedAt: b.CreatedAt.UTC().Format(layout), UpdatedAt: b.UpdatedAt.UTC().Format(layout),
	}
	if b.ParentID != "" {
		file.ParentMessageIndex = &b.ParentMessageIndex
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	if b.imported {
		others := rawjson.RemoveFunc(b.state.Metadata, func(key string) bool { return key == "id" || isOurs(key) })
		data = rawjson.JoinPatch(data, others)
	}
	return append(data, '\n'), nil
}

// branchJSON has the fields of every branch file.
type branchJSON struct {
	ID                 string            `json:"id"`
	Name               string            `json:"name"`
	ParentID           string            `json:"parentId,omitempty"`
	ParentMessageIndex *int              `json:"parentMessageIndex,omitempty"`
	Messages           []json.RawMessage `json:"messages"`
	CreatedAt          string            `json:"createdAt"`
	UpdatedAt          string            `json:"updatedAt"`
}
