package lists

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// BranchFiles reads the files of branch managers, one per branch, in the session's folder: {id, name, parentId?,
// parentMessageIndex?, messages, createdAt, updatedAt}. Each file repeats the messages that it shares with its
// parent. A session becomes a thread with a branch per file. Other members of the file, and the number of its
// messages, become metadata of the branch.
func BranchFiles() archive.Format {
	return archive.Format{
		Name: "branch-files",
		Detect: func(h archive.Head) bool {
			object := h.Object()
			if object == nil || bytes.HasPrefix(bytes.TrimLeft(h.Bytes, " \t\r\n"), []byte("[")) {
				return false
			}
			var id string
			var name, messages, created, other bool
			for m := range rawjson.Members(object) {
				switch m.Key {
				case "id":
					id = rawjson.Str(m.Value)
				case "name":
					name = rawjson.IsString(m.Value)
				case "messages":
					messages = rawjson.IsArray(m.Value)
				case "createdAt":
					created = true
				case "parentId", "parentMessageIndex", "updatedAt":
				default:
					other = true
				}
			}
			// The messages may fill the head, so that later members are not visible. Files are named after their
			// branch.
			return id != "" && name && messages && (created || len(h.Bytes) >= archive.HeadSize) && (!other || h.Name == id+".json")
		},
		Group: func(names []string) []string {
			return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".json") })
		},
		Sift: true,
		Read: readBranchFiles,
	}
}

// readBranchFiles yields a whole session, because one branch defines where others begin. A single
// file without its session is a conversation with one branch.
func readBranchFiles(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		s := &branchSession{c: &archive.Conversation{SourceID: in.Folder(), Title: in.Folder()}}
		read := func(in *archive.Input) bool {
			for item, err := range in.Items(ctx) {
				if err == nil {
					if bad := s.add(item); bad != nil {
						err = archive.Damaged(item.At, bad)
					}
				}
				if err != nil && !yield(nil, err) {
					return false
				}
			}
			return true
		}
		if len(in.Files) == 0 && !read(in) {
			return
		}
		for _, name := range mainFirst(in.Files) {
			input, f, err := in.OpenInput(ctx, name)
			if err != nil {
				if !yield(nil, in.Unreadable(archive.Position{File: in.FileName(name)}, err)) {
					return
				}
				continue
			}
			more := read(input)
			f.Close()
			if !more {
				return
			}
		}
		if c := s.conversation(); c != nil {
			yield(c, nil)
		}
	}
}

// mainFirst moves the main branch's file to the front.
func mainFirst(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	if i := slices.Index(names, "main.json"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "main.json")
	}
	return names
}

// branchSession collects the branches read so far.
type branchSession struct {
	c     *archive.Conversation
	only  string
	count int
}

func (s *branchSession) conversation() *archive.Conversation {
	if s.count == 0 {
		return nil
	}
	if s.c.Title == "" && s.count == 1 {
		s.c.Title = s.only
	}
	return s.c
}

// add adds a branch.
func (s *branchSession) add(item archive.Item) error {
	var id, parent string
	var messages []byte
	var created, updated time.Time
	var more rawjson.Object
	for m := range rawjson.Members(item.Raw) {
		switch m.Key {
		case "id":
			id = rawjson.Str(m.Value)
			continue
		case "messages":
			messages = m.Value
			continue
		case "parentId":
			parent = rawjson.Str(m.Value)
		case "createdAt":
			created = archive.ParseTime(m.Value)
		case "updatedAt":
			updated = archive.ParseTime(m.Value)
		}
		more.Add(m)
	}
	switch {
	case id == "":
		return archive.Malformed("branch without an id")
	case !rawjson.IsArray(messages):
		return archive.Malformed("branch %q without messages", id)
	}
	s.count++
	s.only = id
	c := s.c
	if c.Created.IsZero() || !created.IsZero() && created.Before(c.Created) {
		c.Created = created
	}
	if updated.After(c.Updated) {
		c.Updated = updated
	}
	first, i := len(c.Nodes), 0
	for raw := range rawjson.Elements(messages) {
		i++
		at := item.At.Element("message", i)
		n, err := chatNode(raw, at)
		if err != nil {
			c.Skip(at, err)
			continue
		}
		n.ID = "" // each branch repeats the message
		c.Nodes = append(c.Nodes, n)
	}
	if i == 0 {
		c.Empty = append(c.Empty, archive.EmptyBranch{Name: id, Of: parent, Metadata: more.Bytes()})
	}
	if len(c.Nodes) > first {
		c.Nodes[first].Root = true
		last := &c.Nodes[len(c.Nodes)-1]
		more.Set("messages", strconv.AppendInt(nil, int64(len(c.Nodes)-first), 10))
		last.Branch, last.BranchOf, last.BranchMetadata = id, parent, more.Bytes()
	}
	return nil
}
