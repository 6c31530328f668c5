package importer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/lineage-store/lineage/lineage/archive"
)

// derivedID returns the source id of a conversation that has none. It is a hash of its whole content and of the
// number of equal conversations before it in the file. It is short, because hashes do not compress, but unique among
// a billion conversations.
func (l *loader) derivedID(c *archive.Conversation) string {
	h := &l.hash
	h.buf = h.buf[:0]
	for _, s := range [...]string{l.format, c.Title, c.UserID, c.Model, c.Current, c.ForkedFrom} {
		h.buf.Text(s)
	}
	h.buf.Time(c.Created)
	h.buf.Time(c.Updated)
	h.buf.Bytes(c.Metadata)
	sum := sha256.New()
	node := func(n *archive.Node) {
		for _, s := range [...]string{n.ID, n.Parent, n.Role, n.Name, n.Type, n.Model, n.UserID, n.Branch, n.Aside} {
			h.buf.Text(s)
		}
		if n.Root {
			h.buf.Number(1)
		}
		h.buf.Time(n.Created)
		h.buf.Bytes(n.Metadata)
		h.buf.Bytes(n.Body)
		for k := range n.Attachments {
			a := &n.Attachments[k]
			h.buf.Text(a.Filename)
			h.buf.Text(a.Type)
			h.buf.Bytes(a.Body)
		}
		h.buf.Number(int64(len(n.Attachments)))
		sum.Write(h.buf)
		h.buf = h.buf[:0]
	}
	for nodes := range c.Parts() {
		for i := range nodes {
			node(&nodes[i])
		}
	}
	sum.Write(h.buf)
	id := derivedPrefix + hex.EncodeToString(sum.Sum(nil)[:10])
	k := shortHash(l.options.Prefix + id)
	if l.met[k] != l.number {
		return l.options.Prefix + id
	}
	l.copies[k]++
	h.buf = h.buf[:0]
	h.buf.Text(id)
	h.buf.Number(int64(l.copies[k]))
	another := sha256.Sum256(h.buf)
	return l.options.Prefix + derivedPrefix + hex.EncodeToString(another[:10])
}

const derivedPrefix = "sha256:"

// shortHash returns a hash that is unique among the strings of an import.
func shortHash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:])
}
