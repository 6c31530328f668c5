package sqltest

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// ManyChats returns the number of chats in tests of MetadataListings: LINEAGE_TEST_CHATS, if set.
func ManyChats(t testing.TB, usual int) int {
	text := os.Getenv("LINEAGE_TEST_CHATS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "LINEAGE_TEST_CHATS")
	return n
}

// MetadataListing is a listing of ten chats by metadata. The chats are numbered from 1. Chat n has the
// id "c<n>", the user "user<n % 2>", the update time n / 3 and the metadata
//
//	{"archived": n % 2 == 0, "n": n, "tags": ["all", n % 1000, "half <n % 2>"], "nested": {"k": [n % 500]}}
type MetadataListing struct {
	Name    string
	Options chat.ListOptions
	matches func(n int) bool
}

// MetadataListings are listings that no, few, many and all chats match.
func MetadataListings() []MetadataListing {
	is := func(key string, value any) chat.MetadataFilter { return chat.MetadataFilter{Key: key, Value: value} }
	list := func(name string, o chat.ListOptions, matches func(n int) bool, filters ...chat.MetadataFilter) MetadataListing {
		o.Limit, o.Metadata = 10, filters
		return MetadataListing{name, o, matches}
	}
	none := func(int) bool { return false }
	seven := func(n int) bool { return n%1000 == 7 }
	return []MetadataListing{
		list("no chat has it", chat.ListOptions{}, none, is("tags", "support")),
		list("few chats", chat.ListOptions{}, seven, is("tags", 7)),
		list("few of a user", chat.ListOptions{UserID: "user1"}, seven, is("tags", 7)),
		list("none of a user", chat.ListOptions{UserID: "user0"}, none, is("tags", 7)),
		list("inside an object", chat.ListOptions{Oldest: true}, func(n int) bool { return n%500 == 499 }, is("nested.k", 499)),
		list("half of the chats", chat.ListOptions{}, func(n int) bool { return n%2 == 0 }, is("archived", true)),
		list("all chats", chat.ListOptions{}, func(int) bool { return true }, is("tags", "all")),
		list("two values", chat.ListOptions{}, seven, is("tags", "half 1"), is("tags", 7)),
		list("none with anything", chat.ListOptions{}, none, is("tags", "support"), is("tags", "all")),
	}
}

// Want returns the ids that the listing has to return, and how many chats match.
func (l MetadataListing) Want(chats int) (ids []string, matching int) {
	var numbers []int
	for n := 1; n <= chats; n++ {
		if l.matches(n) {
			numbers = append(numbers, n)
		}
	}
	matching = len(numbers)
	if !l.Options.Oldest {
		slices.Reverse(numbers)
	}
	numbers = numbers[:min(matching, l.Options.Limit+2)] // up to three chats have the same time
	id := func(n int) string { return fmt.Sprint("c", n) }
	slices.SortFunc(numbers, func(a, b int) int {
		order := cmp.Or(cmp.Compare(a/3, b/3), cmp.Compare(id(a), id(b)))
		if l.Options.Oldest {
			return order
		}
		return -order
	})
	for _, n := range numbers[:min(matching, l.Options.Limit)] {
		ids = append(ids, id(n))
	}
	return ids, matching
}
