package archive

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// branchFiles reads the files of branch managers, one per branch, in the session's folder: {id,
// name, parentId?, parentMessageIndex?, messages, createdAt, updatedAt}. Each repeats the messages
// it shares with its parent. A session becomes a thread with a branch per file. What a file says beside id and
// messages is metadata of the branch, with the number of its messages.
func branchFiles() Format {
	return Format{
		Name: "branch-files",
		Detect: func(h Head) bool {
			object := headObject(h)
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
			// The messages may fill the head, so that later members are not visible. Their writers name files
			// after the branch.
			return id != "" && name && messages && (created || len(h.Bytes) >= HeadSize) && (!other || h.Name == id+".json")
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
func readBranchFiles(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		s := &branchSession{c: &Conversation{SourceID: in.folder, Title: in.folder}}
		read := func(in *Input) bool {
			for item, err := range in.Items(ctx) {
				if err == nil {
					if bad := s.add(item); bad != nil {
						err = damaged(item.At, bad)
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
			at := joinName(in.Name, name)
			f, err := in.OpenFile(ctx, name)
			if err != nil {
				if !yield(nil, in.unreadable(Position{File: at}, err)) {
					return
				}
				continue
			}
			one := NewInput(at, &cancelReader{ctx, f})
			one.limits = in.limits
			more := read(one)
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
	c     *Conversation
	only  string
	count int
}

func (s *branchSession) conversation() *Conversation {
	if s.count == 0 {
		return nil
	}
	if s.c.Title == "" && s.count == 1 {
		s.c.Title = s.only
	}
	return s.c
}

// add adds a branch.
func (s *branchSession) add(item Item) error {
	var id, parent string
	var messages []byte
	var created, updated time.Time
	var more jsonObject
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
			created = parseTime(m.Value)
		case "updatedAt":
			updated = parseTime(m.Value)
		}
		more.add(m)
	}
	switch {
	case id == "":
		return malformed("branch without an id")
	case !rawjson.IsArray(messages):
		return malformed("branch %q without messages", id)
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
		at := item.At.inside("message", i)
		n, err := chatNode(raw, at)
		if err != nil {
			c.skip(at, err)
			continue
		}
		n.ID = "" // each branch repeats the message
		c.Nodes = append(c.Nodes, n)
	}
	if i == 0 {
		c.Empty = append(c.Empty, EmptyBranch{Name: id, Of: parent, Metadata: more.bytes()})
	}
	if len(c.Nodes) > first {
		c.Nodes[first].Root = true
		last := &c.Nodes[len(c.Nodes)-1]
		more.set("messages", strconv.AppendInt(nil, int64(len(c.Nodes)-first), 10))
		last.Branch, last.BranchOf, last.BranchMetadata = id, parent, more.bytes()
	}
	return nil
}
