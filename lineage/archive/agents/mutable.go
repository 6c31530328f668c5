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
	owner := m.at(path[:len(path)-1])
	if owner == nil {
		return false
	}
	step := path[len(path)-1]
	i, ok := owner.place(step)
	kid := &mutable{raw: value}
	switch {
	case !ok:
		return false
	case owner.list && value == nil:
		kid.raw = []byte("null") // the list keeps its length
		fallthrough
	case owner.list:
		if i == len(owner.kids) {
			owner.kids = append(owner.kids, kid)
		} else {
			owner.kids[i] = kid
		}
	case value == nil && i >= 0:
		owner.keys, owner.quoted, owner.kids = slices.Delete(owner.keys, i, i+1), slices.Delete(owner.quoted, i, i+1), slices.Delete(owner.kids, i, i+1)
	case value == nil:
	case i >= 0:
		owner.kids[i] = kid
	default:
		owner.keys, owner.quoted, owner.kids = append(owner.keys, rawjson.Str(step)), append(owner.quoted, step), append(owner.kids, kid)
	}
	return true
}

// push adds elements to the list at a path. If from is not negative, the list is first cut at that index. It returns
// false if there is no such list.
func (m *mutable) push(path [][]byte, from int, elements []byte) bool {
	list := m.at(path)
	if list == nil || !list.divide() || !list.list || from > len(list.kids) {
		return false
	}
	if from >= 0 {
		list.kids = list.kids[:from]
	}
	for e := range rawjson.Elements(elements) {
		list.kids = append(list.kids, &mutable{raw: e})
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
