package rawjson

import "bytes"

// MergePatch applies a JSON merge patch (RFC 7386) to a document: members of the patch
// replace those of the document, objects are merged member by member, and null removes a
// member. Anything but an object is replaced completely. A nil document has no members.
// Values that are not merged keep their bytes.
func MergePatch(document, patch []byte) []byte {
	return merge(bytes.TrimSpace(document), bytes.TrimSpace(patch), false)
}

// JoinPatch is MergePatch for a document that is a patch itself: it keeps null.
func JoinPatch(document, patch []byte) []byte {
	return merge(bytes.TrimSpace(document), bytes.TrimSpace(patch), true)
}

func merge(document, patch []byte, keepNull bool) []byte {
	if !IsObject(patch) {
		return patch
	}
	if !IsObject(document) {
		if keepNull || !bytes.Contains(patch, []byte("null")) {
			return patch
		}
		document = nil
	}
	var members []Member
	at := make(map[string]int)
	put := func(m Member) {
		if i, known := at[m.Key]; known {
			members[i] = m
			return
		}
		at[m.Key] = len(members)
		members = append(members, m)
	}
	for m := range Members(document) {
		put(m)
	}
	for m := range Members(patch) {
		var was []byte
		if i, known := at[m.Key]; known {
			was = members[i].Value
		}
		switch {
		case !IsNull(m.Value):
			m.Value = merge(was, m.Value, keepNull)
		case !keepNull:
			m.Value = nil // removed
		}
		put(m)
	}
	out := []byte("{")
	for _, m := range members {
		if m.Value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.Quoted...), ':'), m.Value...)
	}
	return append(out, '}')
}
