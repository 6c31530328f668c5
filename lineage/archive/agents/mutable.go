package agents

import (
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// mutable is a JSON value that can be changed. Parts that are not changed stay byte for byte.
type mutable struct {
	raw    []byte // nil if the value is divided
	list   bool
	keys   []string
	quoted [][]byte
	kids   []*mutable
}

// divide splits an object or list into its members. It returns false for other values.
func (m *mutable) divide() bool {
	switch {
	case m.raw == nil:
	case rawjson.IsObject(m.raw):
		for e := range rawjson.Members(m.raw) {
			m.keys, m.quoted, m.kids = append(m.keys, e.Key), append(m.quoted, e.Quoted), append(m.kids, &mutable{raw: e.Value})
		}
		m.raw = nil
	case rawjson.IsArray(m.raw):
		m.list = true
		for e := range rawjson.Elements(m.raw) {
			m.kids = append(m.kids, &mutable{raw: e})
		}
		m.raw = nil
	default:
		return false
	}
	return true
}

// place returns the index of the member or element that a step of a path names. The index is -1 if an object does not
// have the member, and may be the length of a list. It returns false if the value has no such place.
func (m *mutable) place(step []byte) (int, bool) {
	if !m.divide() {
		return -1, false
	}
	if m.list {
		i, err := strconv.Atoi(string(step))
		return i, err == nil && i >= 0 && i <= len(m.kids)
	}
	if !rawjson.IsString(step) {
		return -1, false
	}
	return slices.Index(m.keys, rawjson.Str(step)), true
}

// at returns the value at a path, nil if there is none.
func (m *mutable) at(path [][]byte) *mutable {
	for _, step := range path {
		i, ok := m.place(step)
		if !ok || i < 0 || i >= len(m.kids) {
			return nil
		}
		m = m.kids[i]
	}
	return m
}

// get returns a member of an object, nil if there is none.
func (m *mutable) get(key string) *mutable {
	if m.raw == nil && m.list || !m.divide() || m.list {
		return nil
	}
	if i := slices.Index(m.keys, key); i >= 0 {
		return m.kids[i]
	}
	return nil
}

// set replaces the value at a path, or removes it if value is nil. It returns false if the path leads to no place in
// the value.
func (m *mutable) set(path [][]byte, value []byte) bool {
	if len(path) == 0 {
		*m = mutable{raw: value}
		return value != nil
	}
	of := m.at(path[:len(path)-1])
	if of == nil {
		return false
	}
	step := path[len(path)-1]
	i, ok := of.place(step)
	kid := &mutable{raw: value}
	switch {
	case !ok:
		return false
	case of.list && value == nil:
		kid.raw = []byte("null") // the list keeps its length
		fallthrough
	case of.list:
		if i == len(of.kids) {
			of.kids = append(of.kids, kid)
		} else {
			of.kids[i] = kid
		}
	case value == nil && i >= 0:
		of.keys, of.quoted, of.kids = slices.Delete(of.keys, i, i+1), slices.Delete(of.quoted, i, i+1), slices.Delete(of.kids, i, i+1)
	case value == nil:
	case i >= 0:
		of.kids[i] = kid
	default:
		of.keys, of.quoted, of.kids = append(of.keys, rawjson.Str(step)), append(of.quoted, step), append(of.kids, kid)
	}
	return true
}

// push adds elements to the list at a path. If from is not negative, the list is first cut at that index. It returns
// false if there is no such list.
func (m *mutable) push(path [][]byte, from int, elements []byte) bool {
	of := m.at(path)
	if of == nil || !of.divide() || !of.list || from > len(of.kids) {
		return false
	}
	if from >= 0 {
		of.kids = of.kids[:from]
	}
	for e := range rawjson.Elements(elements) {
		of.kids = append(of.kids, &mutable{raw: e})
	}
	return true
}

// bytes returns the value.
func (m *mutable) bytes() []byte {
	if m.raw != nil {
		return m.raw
	}
	brackets := "{}"
	if m.list {
		brackets = "[]"
	}
	out := []byte{brackets[0]}
	for i, k := range m.kids {
		if i > 0 {
			out = append(out, ',')
		}
		if !m.list {
			out = append(append(out, m.quoted[i]...), ':')
		}
		out = append(out, k.bytes()...)
	}
	return append(out, brackets[1])
}
