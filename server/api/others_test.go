package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
)

var (
	anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// varying are times, and names and pages that are made of ids and times.
	varying = regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+Z|"name":"[0-9a-f]{8}"|"next":"[^"]*"`)
	number  = regexp.MustCompile(`<\d+>`)
)

// numbering replaces the ids of a store by their numbers, in the order in which they were first seen.
type numbering struct {
	*harness
	ids     []string
	numbers map[string]string
}

func (n *numbering) number(id string) string {
	if n.numbers[id] == "" {
		n.numbers[id] = fmt.Sprintf("<%d>", len(n.ids))
		n.ids = append(n.ids, id)
	}
	return n.numbers[id]
}

func (n *numbering) numbered(text string) string {
	return varying.ReplaceAllString(anyID.ReplaceAllStringFunc(text, n.number), "")
}

func (n *numbering) named(text string) string {
	return number.ReplaceAllStringFunc(text, func(number string) string {
		var i int
		_, _ = fmt.Sscanf(number, "<%d>", &i)
		return n.ids[i]
	})
}

// TestOthersDoNotShow sends the same random requests of a user to two stores. In one of them others are at work with the
// same texts, names and ids, and the user guesses ids of theirs. All answers are the same but for ids and times.
func TestOthersDoNotShow(t *testing.T) {
	for range campaign.Rounds(5) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testOthers(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func testOthers(t *testing.T, random *rand.Rand) {
	alone := &numbering{harness: open(t), numbers: make(map[string]string)}
	among := &numbering{harness: open(t), numbers: make(map[string]string)}
	pick := func(names []string) string { return names[random.IntN(len(names))] }
	user := pick([]string{"bob", "proj"})
	others := &guessed{pick: pick, folder: "/projects/z"}
	own := &guessed{pick: pick, folder: "/projects/a", more: func() string { // an id of others: in the other store there is nothing
		if len(others.ids) == 0 || random.IntN(4) > 0 {
			return ""
		}
		id := pick(others.ids)
		none := fmt.Sprintf("00000000-0000-7000-8000-%012d", len(among.ids))
		if among.numbers[id] == "" {
			require.Equal(t, among.number(id), alone.number(none))
		}
		return among.numbers[id]
	}}
	for range 120 {
		for range random.IntN(3) {
			method, path, body, headers := others.request()
			a := among.do(method, path, body, append(headers, "Caller: ada")...)
			others.remember(anyID.FindAllString(string(a.Body), -1))
		}
		method, path, body, headers := own.request()
		headers = append(headers, "Caller: "+user)
		want := alone.do(method, alone.named(path), alone.named(body), headers...)
		got := among.do(method, among.named(path), among.named(body), headers...)
		text := fmt.Sprintf("%s %s %s as %s", method, path, body, user)
		require.Equal(t, want.Status, got.Status, "%s\n%s\n%s", text, want.Body, got.Body)
		if list, _, _ := strings.Cut(path, "?"); want.Status == 200 && (list == "/v1/threads" || list == "/v1/chats") {
			want.Body, got.Body = sorted(t, want.Body), sorted(t, got.Body)
		}
		require.Equal(t, alone.numbered(string(want.Body)), among.numbered(string(got.Body)), text)
		if want.Status < 300 {
			own.remember(number.FindAllString(alone.numbered(string(want.Body)), -1))
		}
	}
}

// sorted returns a list of threads or chats in the order of the ids that their creators chose. Listings have them by time
// and, within a millisecond, by an id that is made of the store's.
func sorted(t *testing.T, body []byte) []byte {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	require.NoError(t, json.Unmarshal(body, &list))
	slices.SortStableFunc(list.Items, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["source_id"], a["id"]), fmt.Sprint(b["source_id"], b["id"]))
	})
	body, err := json.Marshal(list)
	require.NoError(t, err)
	return body
}

// guessed makes requests with ids that were seen, and with names that others use too.
type guessed struct {
	pick   func([]string) string
	more   func() string
	folder string // of the project
	ids    []string
}

func (g *guessed) remember(ids []string) {
	for _, id := range ids {
		if !slices.Contains(g.ids, id) {
			g.ids = append(g.ids, id)
		}
	}
}

func (g *guessed) id() string {
	if g.more != nil {
		if id := g.more(); id != "" {
			return id
		}
	}
	return g.pick(append([]string{"00000000-0000-7000-8000-0000000000ff"}, g.ids...))
}

func (g *guessed) thread() string {
	return g.pick([]string{"=a", "=b", "=a", "=b", g.id(), g.id()})
}

func (g *guessed) context() string { return g.pick([]string{"main", "main", "side", "@", g.id()}) }

func (g *guessed) position() string {
	return g.pick([]string{"main~0", ":1", "side", "here", "m1", "m2", g.id() + "/1", g.id() + ":1"})
}

func (g *guessed) text() string { return g.pick([]string{"alpha", "beta"}) }

func (g *guessed) request() (method, path, body string, headers []string) {
	t := "/v1/threads/" + g.thread()
	c := g.pick([]string{t + "/contexts/" + g.context(), "/v1/contexts/" + g.id()})
	v := g.pick([]string{t, c, "/v1/users/bob", "/v1/users/ada", "/v1/store"}) + "/values"
	sum := content.Sum([]byte(g.text())).String()
	message := g.pick([]string{
		fmt.Sprintf(`{"text":%q}`, g.text()), fmt.Sprintf(`{"text":%q,"role":"assistant","id":%q}`, g.text(), g.pick([]string{"m1", "m2"})),
		fmt.Sprintf(`{"document":"plan","text":%q}`, g.text()), fmt.Sprintf(`{"content_id":%q}`, sum),
	})
	operation := func() string {
		in := fmt.Sprintf(`"thread":%q,"context":%q`, g.thread(), g.context())
		return g.pick([]string{
			fmt.Sprintf(`{"op":"create_thread","id":%q,"reuse":true,"metadata":{"cwd":%q}}`, g.pick([]string{"a", "b"}), g.folder),
			fmt.Sprintf(`{"op":"append",%s,"messages":[%s]}`, in, message), fmt.Sprintf(`{"op":"append",%s,"messages":[%s]}`, in, message),
			fmt.Sprintf(`{"op":"create_branch","thread":%q,"name":"side","from":%q,"reuse":true}`, g.thread(), g.position()),
			fmt.Sprintf(`{"op":"fork","thread":%q,"from":%q}`, g.thread(), g.position()),
			fmt.Sprintf(`{"op":"set_checkpoint","thread":%q,"name":"here","at":%q}`, g.thread(), g.position()),
			fmt.Sprintf(`{"op":"edit",%s,"at":%q,"message":%s}`, in, g.position(), message),
			fmt.Sprintf(`{"op":"send",%s,"to":%q}`, in, g.context()), fmt.Sprintf(`{"op":"merge",%s,"from":%q}`, in, g.context()),
			fmt.Sprintf(`{"op":"move",%s,"to":%q}`, in, g.position()), fmt.Sprintf(`{"op":"set_value",%s,"key":"k","value":%q}`, in, g.text()),
			fmt.Sprintf(`{"op":"copy_thread","thread":%q,"id":%q}`, g.thread(), g.pick([]string{"a", "b"})),
			fmt.Sprintf(`{"op":"add_chat_message","thread":%q,"id":"m1","role":"user","data":{"text":%q}}`, g.thread(), g.text()),
			fmt.Sprintf(`{"op":"create_chat_branch","thread":%q,"id":"b1","name":"chosen","head":"m1"}`, g.thread()),
			fmt.Sprintf(`{"op":"set_chat_checkpoint","thread":%q,"id":"k1","name":"there","message":"m1"}`, g.thread()),
			fmt.Sprintf(`{"op":"delete_thread","thread":%q}`, g.thread()), fmt.Sprintf(`{"op":"delete_context","context":%q}`, g.id()),
		})
	}
	switch g.pick([]string{"batch", "batch", "append", "create", "read", "read", "read", "change"}) {
	case "batch":
		if g.pick([]string{"", "key"}) != "" {
			headers = []string{"Idempotency-Key: " + g.pick([]string{"1", "2", "3", "4"})}
		}
		return "POST", "/v1/batch", `{"operations":[` + strings.Join([]string{operation(), operation()}[:len(g.pick([]string{"1", "12"}))], ",") + `]}`, headers
	case "append":
		return "POST", c + "/messages", `{"messages":[` + message + `]}`, nil
	case "create":
		return "POST", "/v1/threads", fmt.Sprintf(`{"id":%q,"reuse":true}`, g.pick([]string{"a", "b"})), nil
	case "change":
		change := strings.Fields(g.pick([]string{"DELETE " + t, "DELETE " + t + "/branches/side", "DELETE " + t + "/checkpoints/here", "DELETE " + c, "PUT " + v + "/k", "DELETE " + v + "/k", "POST " + c + "/undo"}))
		if change[0] == "PUT" {
			body = `"` + g.text() + `"`
		}
		return change[0], change[1], body, nil
	}
	return "GET", g.pick([]string{
		"/v1/threads", "/v1/threads?user=ada", "/v1/threads?source_prefix=a", "/v1/chats", "/v1/chats?message=m1", "/v1/chats?branch=b1",
		t, t + "/branches", t + "/checkpoints", t + "/contexts", t + "/graph", t + "/export?format=openai", t + "/chat/messages?to=m1", t + "/chat/messages?id=m2", t + "/chat/branches", t + "/chat/checkpoints", t + "/chat/graph",
		c, c + "/messages", c + "/messages?dialect=openai", c + "/messages?at=" + g.position(), c + "/resolved", c + "/moves", c + "/documents", c + "/documents/plan", c + "/alternatives", c + "/summaries",
		c + "/diff?with=" + g.position(), v, v + "/k", v + "/k/history", "/v1/content/" + sum + "/uses", "/v1/content/" + sum + "/provenance", "/v1/stats",
	}), "", nil
}

// The requests of TestOthersDoNotShow are not all refused.
func TestGuessedRequestsSucceed(t *testing.T) {
	h, done, random := open(t), make(map[string]int), rand.New(rand.NewPCG(1, 0))
	g := &guessed{pick: func(names []string) string { return names[random.IntN(len(names))] }}
	for range 3000 {
		method, path, body, _ := g.request()
		a := h.do(method, path, body, "Caller: bob")
		if a.Status < 300 {
			done[method]++
			g.remember(anyID.FindAllString(string(a.Body), 1))
		}
		if len(g.ids) > 12 {
			g.ids = g.ids[6:]
		}
	}
	require.Greater(t, done["GET"], 200)
	require.Greater(t, done["POST"], 200)
	require.Greater(t, done["DELETE"], 20)
	require.Greater(t, done["PUT"], 5)
}
