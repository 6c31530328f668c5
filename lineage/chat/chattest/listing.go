package chattest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/chat"
)

// Values of the chats in a listing. Ids and titles have characters that patterns and case folding treat specially.
var (
	listedIDs    = []string{"trip", "Trip", "tr%p", "tr_p", "tr[p", "tr^p", `tr\p`, "trüp", "import/1", "import/10", "import 1", "o'hara", "日本", "t"}
	listedTitles = []string{
		"", "Trip to Porto", "trip", "TRIP", "Übung", "übung", "ÜBUNG", "ſtraße", "STRASSE", "straße", "\u212Aelvin", "kelvin", "İzmir", "izmir", "ızmir",
		"100% sure", "a_b", "[x]", `back\slash`, "a 😀", "A 😀",
	}
	listedMetadata = []string{
		"", `null`, `{}`, `[]`, `"x"`, `7`, `{"p":"x"}`, `{"p":"X"}`, `{"p":["x"]}`, `{"p":["y","x","x"],"n":[]}`, `{"p":[1,"1",true]}`, `{"p":[["x"]]}`, `{"p":[{"p":"x"}]}`, `{"p":[null]}`,
		`{"q":{"p":["x",-5e-1]}}`, `{"n":[-0.50,9007199254740993,1e300],"p":"x"}`, `{"p":["x😀","X"," x"]}`, `{"p":{"p":"x"}}`, `{"q":{"p":"x"}}`, `{"p":1}`, `{"p":1.0}`,
		`{"p":10e-1}`, `{"p":"1"}`, `{"p":true}`, `{"p":null}`, `{"p":9007199254740993}`, `{"p":9007199254740992}`, `{"p":1e300,"n":-0.5}`,
		`{"\u0070":"x"}`, `{"p":"x\ud83d\ude00"}`, `{"p":"","n":0}`, `{"n":-5e-1,"p":"x"}`, `{"a.b":"x"}`, `{"o'k \"q\"":"x"}`,
	}
	listedValues = []any{"x", "X", "1", "", "x😀", 1, 1.0, true, false, nil, json.Number("1e0"), int64(9007199254740993), json.Number("1e300"),
		-0.5, 0, json.Number("1e999999"), json.Number("1E-400")}
)

// testChatPages compares listings, whole and by page, with what the options mean for each chat.
//
// feature: storage/chat-list
func testChatPages(t *testing.T, s *store) {
	for i, id := range listedIDs {
		c := chat.Chat{ID: id, UserID: []string{"ada", "bob", ""}[i%3]}
		_, err := s.CreateChat(background, c)
		require.NoError(t, err)
		if i%4 == 0 {
			tick()
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		own := *s
		own.t = r
		for range rapid.IntRange(0, 4).Draw(r, "changed") {
			title := rapid.SampledFrom(listedTitles).Draw(r, "title")
			update := chat.ChatUpdate{Title: &title}
			if metadata := rapid.SampledFrom(listedMetadata).Draw(r, "metadata"); metadata != "" {
				update.Metadata = json.RawMessage(metadata)
			}
			_, err := s.UpdateChat(background, rapid.SampledFrom(listedIDs).Draw(r, "chat"), update)
			require.NoError(r, err)
		}
		all := collect(r, s.ListChats(background, chat.ListOptions{}))
		require.Len(r, all, len(listedIDs))
		require.True(r, slices.IsSortedFunc(all, func(a, b chat.ChatInfo) int { return int(b.UpdatedAt - a.UpdatedAt) }))
		o := drawListOptions(r, all)
		var want []string
		for _, c := range all {
			if o.Passes(c.Chat) {
				want = append(want, c.ID)
			}
		}
		if o.Oldest {
			slices.Reverse(want)
		}
		require.Equal(r, want, own.list(o), "%+v", o)
		skipped := o
		skipped.Limit, skipped.Offset = rapid.IntRange(1, 5).Draw(r, "limit"), rapid.IntRange(0, 5).Draw(r, "offset")
		from := min(skipped.Offset, len(want))
		require.Equal(r, append([]string(nil), want[from:min(from+skipped.Limit, len(want))]...), own.list(skipped), "%+v", skipped)
		require.Equal(r, want, own.pages(o, skipped.Limit), "by pages of %d: %+v", skipped.Limit, o)
	})
	for _, err := range s.ListChats(background, chat.ListOptions{After: "no token"}) {
		require.ErrorIs(t, err, chat.ErrInvalid)
	}
	for _, err := range s.ListChats(background, chat.ListOptions{Metadata: make([]chat.MetadataFilter, 1000)}) {
		require.ErrorIs(t, err, chat.ErrInvalid)
	}
	// A chat that is updated during the listing does not appear again and again.
	n := 0
	for c, err := range s.ListChats(background, chat.ListOptions{Oldest: true}) {
		require.NoError(t, err)
		title := fmt.Sprint("number ", n)
		_, err = s.UpdateChat(background, c.ID, chat.ChatUpdate{Title: &title})
		require.NoError(t, err)
		n++
		require.LessOrEqual(t, n, 2*len(listedIDs))
	}
}

// pages lists by pages of the given size.
func (s *store) pages(o chat.ListOptions, size int) (ids []string) {
	o.Limit = size
	for {
		page := collect(s.t, s.ListChats(background, o))
		for _, c := range page {
			ids = append(ids, c.ID)
		}
		if len(page) < size {
			return ids
		}
		o.After = page[len(page)-1].Page
	}
}

func drawListOptions(r *rapid.T, all []chat.ChatInfo) (o chat.ListOptions) {
	prefixOf := func(list []string, label string) string {
		runes := []rune(rapid.SampledFrom(list).Draw(r, label))
		return string(runes[:rapid.IntRange(0, len(runes)).Draw(r, label+" runes")])
	}
	o.Oldest = rapid.Bool().Draw(r, "oldest")
	if rapid.Bool().Draw(r, "of a user") {
		o.UserID = rapid.SampledFrom([]string{"ada", "bob", "eve"}).Draw(r, "user")
	}
	if rapid.Bool().Draw(r, "with an id") {
		o.IDPrefix = prefixOf(listedIDs, "id")
	}
	if rapid.Bool().Draw(r, "with a title") {
		o.TitlePrefix = prefixOf(listedTitles, "title")
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(r, "filters") {
		o.Metadata = append(o.Metadata, chat.MetadataFilter{
			Key:   rapid.SampledFrom([]string{"p", "n", "q.p", "p.p", "q", "a.b", `o'k "q"`, "missing"}).Draw(r, "key"),
			Value: rapid.SampledFrom(listedValues).Draw(r, "value"),
		})
	}
	at := func(label string) int64 { return rapid.SampledFrom(all).Draw(r, label).UpdatedAt }
	if rapid.Bool().Draw(r, "bounded") {
		o.From, o.To = at("from"), at("to")+rapid.Int64Range(0, 1).Draw(r, "after that")
	}
	return o
}
