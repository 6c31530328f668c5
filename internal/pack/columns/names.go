package columns

// Kinds of what a usage names.
const (
	namesContent = iota
	namesForm
	namesMetadata
	nameKinds
)

const recentNames = 8

// Content is the last that the commit named, an earlier name, a body of the pack, or any id. Histories that repeat others
// use one name or body after the other, and few forms are used again and again.
const (
	contentLatest = iota
	contentBack
	contentBody
	contentID
	contentNextName // after the last one of its kind
	contentNextBody
	contentRecentName // one of the recent ones of its kind
	contentRecentBody
)

// named is content that a usage named: its place among the names of the commit, negative in an earlier chapter, and its
// body, or -1.
type named struct {
	name int
	body int64
}

// recentContents are the last contents of a kind that usages named. Places of an earlier commit only predict badly.
type recentContents struct {
	next   named // after the last one
	recent [recentNames]named
}

// used records the content that a usage named.
func (n *recentContents) used(x named) {
	n.next.name = x.name + 1
	if x.body >= 0 {
		n.next.body = x.body + 1
	}
	i := 0
	for ; i < recentNames-1; i++ {
		if y := n.recent[i]; y.body == x.body && (x.body >= 0 || y.name == x.name) {
			break
		}
	}
	copy(n.recent[1:i+1], n.recent[:i])
	n.recent[0] = x
}

// back returns how a writer codes the name so many back of a number of names, and which of the recent ones it is.
func (n *recentContents) back(back, total int) (how, recent int) {
	place := total - 1 - back
	switch {
	case back == 0:
		return contentLatest, 0
	case place == n.next.name:
		return contentNextName, 0
	}
	for i, x := range n.recent {
		if x.name == place {
			return contentRecentName, i
		}
	}
	return contentBack, 0
}

// elsewhere returns how a writer codes content that the commit did not name before, or in an earlier chapter.
func (n *recentContents) elsewhere(r *ContentRef) (how, recent int) {
	switch {
	case r.Body < 0:
		return contentID, 0
	case r.Body == n.next.body:
		return contentNextBody, 0
	}
	for i, x := range n.recent {
		if x.body == r.Body {
			return contentRecentBody, i
		}
	}
	return contentBody, 0
}
