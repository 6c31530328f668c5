package conversation_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

// writeSession writes files of a session, by their names.
func writeSession(t *testing.T, root, id string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, id)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

// branchJSON returns a branch file as their writers lay it out.
func branchJSON(id, name, parent string, index int, contents ...string) string {
	var messages []string
	for _, c := range contents {
		messages = append(messages, fmt.Sprintf(`    { "role": "user", "content": %q }`, c))
	}
	from := ""
	if parent != "" {
		from = fmt.Sprintf("\n  \"parentId\": %q,\n  \"parentMessageIndex\": %d,", parent, index)
	}
	return fmt.Sprintf("{\n  \"id\": %q,\n  \"name\": %q,%s\n  \"messages\": [\n%s\n  ],\n"+
		"  \"createdAt\": \"2025-03-01T10:00:0%d.000Z\",\n  \"updatedAt\": \"2025-03-02T10:00:0%d.000Z\"\n}\n",
		id, name, from, strings.Join(messages, ",\n"), len(contents), len(contents))
}

func importFrom(t *testing.T, s *lineage.Store, root string, o conversation.ImportOptions) conversation.ImportReport {
	t.Helper()
	report, err := conversation.Import(bg, s, root, o)
	require.NoError(t, err)
	return report
}

func saidOn(t *testing.T, c *conversation.Conversation, id string) []string {
	t.Helper()
	messages, err := c.MessagesOf(bg, id)
	require.NoError(t, err)
	return contents(messages)
}

// feature: branches/files-read
func TestImport(t *testing.T) {
	root, s := t.TempDir(), newStore(t)
	writeSession(t, root, "one", map[string]string{
		"main.json":       branchJSON("main", "Main conversation", "", 0, "a", "b", "c"),
		"branch_x.json":   branchJSON("branch_x", "Try x", "main", 2, "a", "b", "X", "Y"),
		"grandchild.json": branchJSON("grandchild", "Deeper", "branch_x", 3, "a", "b", "X", "Z", "!"),
		"main.json.lock":  `{"pid":1}`,
		"notes.txt":       "not a branch",
	})
	writeSession(t, root, "two", map[string]string{"main.json": branchJSON("main", "Renamed", "", 0)})
	writeSession(t, root, "empty", nil)

	report := importFrom(t, s, root, conversation.ImportOptions{UserID: "ada"})
	require.Equal(t, conversation.ImportReport{Sessions: 2, Branches: 4, NewBranches: 2, NewMessages: 3 + 2 + 2}, report)

	c, err := conversation.Open(bg, s, "one", conversation.Options{})
	require.NoError(t, err)
	info, err := c.Thread().Info(bg)
	require.NoError(t, err)
	require.Equal(t, "ada", info.UserID)
	require.Equal(t, conversation.Main, currentID(t, c))
	require.Equal(t, []string{"a", "b", "c"}, saidOn(t, c, "main"))
	require.Equal(t, []string{"a", "b", "X", "Y"}, saidOn(t, c, "branch_x"))
	require.Equal(t, []string{"a", "b", "X", "Z", "!"}, saidOn(t, c, "grandchild"))
	x, err := c.Branch(bg, "branch_x")
	require.NoError(t, err)
	require.Equal(t, conversation.Branch{
		ID: "branch_x", Name: "Try x", ParentID: "main", ParentMessageIndex: 2, MessageCount: 4,
		CreatedAt: time.Date(2025, 3, 1, 10, 0, 4, 0, time.UTC), UpdatedAt: time.Date(2025, 3, 2, 10, 0, 4, 0, time.UTC),
	}, x)
	all, err := c.Branches(bg)
	require.NoError(t, err)
	require.Equal(t, []string{"grandchild", "branch_x", "main"}, []string{all[0].ID, all[1].ID, all[2].ID}, "newest update first, as in the files")
	history, err := c.History(bg, "grandchild")
	require.NoError(t, err)
	require.Len(t, history, 3)
	_, err = s.FindThread(bg, "empty")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	two, err := conversation.Open(bg, s, "two", conversation.Options{})
	require.NoError(t, err)
	main, err := two.Branch(bg, "main")
	require.NoError(t, err)
	require.Equal(t, "Renamed", main.Name)

	// Again: nothing is new, and nothing that was done since is undone.
	before, err := s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, conversation.ImportReport{Sessions: 2, Branches: 4}, importFrom(t, s, root, conversation.ImportOptions{}))
	after, err := s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, before, after)

	checkout(t, c, "branch_x")
	say(t, c, "went on here")
	require.NoError(t, c.RenameBranch(bg, "branch_x", "My name"))
	require.Equal(t, conversation.ImportReport{Sessions: 2, Branches: 4}, importFrom(t, s, root, conversation.ImportOptions{}))
	require.Equal(t, []string{"a", "b", "X", "Y", "went on here"}, said(t, c))
	x, err = c.Branch(bg, "branch_x")
	require.NoError(t, err)
	require.Equal(t, "My name", x.Name)
	require.True(t, x.Current)
	require.Equal(t, 2026, x.UpdatedAt.Year())

	// The files went on as well.
	writeSession(t, root, "one", map[string]string{
		"main.json":     branchJSON("main", "Main conversation", "", 0, "a", "b", "c", "d"),
		"branch_x.json": branchJSON("branch_x", "Try x", "main", 2, "a", "b", "X", "Y", "went on there"),
	})
	report = importFrom(t, s, root, conversation.ImportOptions{Sessions: []string{"one"}})
	require.Equal(t, 1, report.NewMessages)
	require.Len(t, report.Problems, 1)
	require.ErrorIs(t, report.Problems[0], conversation.ErrDiverged)
	require.Equal(t, "branch_x.json", report.Problems[0].File)
	require.ErrorContains(t, report.Problems[0], `session "one", file "branch_x.json"`)
	require.Equal(t, []string{"a", "b", "c", "d"}, saidOn(t, c, "main"))
	require.Equal(t, []string{"a", "b", "X", "Y", "went on here"}, said(t, c), "nothing is overwritten")
}

func TestImportKeepsMessages(t *testing.T) {
	root, s := t.TempDir(), newStore(t)
	writeSession(t, root, "s", map[string]string{"main.json": `{"id":"main","name":"Main conversation","messages":[
		{"role":"system","content":"Be brief <now>"},
		{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"ls","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"t1","content":"a\nb","n":1.50}],
		"createdAt":"2025-03-01T10:00:00.000Z","updatedAt":"2025-03-01T10:00:00.000Z","metadata":{"model":"m"}}`})
	require.Empty(t, importFrom(t, s, root, conversation.ImportOptions{}).Problems)
	c, err := conversation.Open(bg, s, "s", conversation.Options{})
	require.NoError(t, err)
	messages, err := c.Messages(bg)
	require.NoError(t, err)
	require.Len(t, messages, 4)
	require.Equal(t, conversation.Message{Role: "system", Content: "Be brief <now>"}, messages[0])
	require.Equal(t, `[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,"}}]`, string(messages[1].Fields["content"]))
	require.Equal(t, `null`, string(messages[2].Fields["content"]))
	require.Contains(t, string(messages[2].Fields["tool_calls"]), `"arguments":"{}"`)
	require.Equal(t, "a\nb", messages[3].Content)
	require.Equal(t, `1.50`, string(messages[3].Fields["n"]))
	require.Zero(t, importFrom(t, s, root, conversation.ImportOptions{}).NewMessages)

	active, err := c.Thread().Active(bg)
	require.NoError(t, err)
	info, err := active.Info(bg)
	require.NoError(t, err)
	require.Contains(t, string(info.Metadata), `"metadata":{"model":"m"}`, "what else the file says is kept")
}

// TestImportDamage has a good branch among all that can be wrong with a file.
func TestImportDamage(t *testing.T) {
	whole := branchJSON("main", "Main conversation", "", 0, "a", "b")
	for name, damage := range map[string]struct {
		text string
		want error
	}{
		"truncated":       {whole[:len(whole)/2], conversation.ErrBadFile},
		"empty":           {"", conversation.ErrBadFile},
		"null":            {"null", conversation.ErrBadFile},
		"a list":          {"[]", conversation.ErrBadFile},
		"no id":           {`{"messages":[]}`, conversation.ErrBadFile},
		"no messages":     {`{"id":"bad"}`, conversation.ErrBadFile},
		"null messages":   {`{"id":"bad","messages":null}`, conversation.ErrBadFile},
		"odd messages":    {`{"id":"bad","messages":{}}`, conversation.ErrBadFile},
		"odd id":          {`{"id":7,"messages":[]}`, conversation.ErrBadFile},
		"odd time":        {`{"id":"bad","messages":[],"updatedAt":"yesterday"}`, conversation.ErrBadFile},
		"a text message":  {`{"id":"bad","messages":["hi"]}`, conversation.ErrBadFile},
		"a null message":  {`{"id":"bad","messages":[null]}`, conversation.ErrBadFile},
		"no role":         {`{"id":"bad","messages":[{"content":"x"}]}`, conversation.ErrBadFile},
		"blank role":      {`{"id":"bad","messages":[{"role":" ","content":"x"}]}`, conversation.ErrBadFile},
		"negative index":  {`{"id":"bad","messages":[],"parentId":"good","parentMessageIndex":-1}`, conversation.ErrBadFile},
		"odd index":       {`{"id":"bad","messages":[],"parentMessageIndex":"1"}`, conversation.ErrBadFile},
		"escaping up":     {`{"id":"../evil","messages":[]}`, conversation.ErrBadFile},
		"escaping":        {`{"id":"..","messages":[]}`, conversation.ErrBadFile},
		"a Windows path":  {`{"id":"..\\evil","messages":[]}`, conversation.ErrBadFile},
		"an absolute one": {`{"id":"/etc/passwd","messages":[]}`, conversation.ErrBadFile},
		"a NUL":           {`{"id":"a\u0000b","messages":[]}`, conversation.ErrBadFile},
		"deep nesting":    {`{"id":"bad","messages":[` + strings.Repeat("[", 100000), conversation.ErrBadFile},
		"an id twice":     {branchJSON("good", "Other", "", 0, "other"), lineage.ErrExists},
		"too large":       {branchJSON("bad", "Bad", "", 0, strings.Repeat("x", 200000)), lineage.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			root, s := t.TempDir(), newStore(t)
			writeSession(t, root, "s", map[string]string{
				"damaged.json": damage.text,
				"good.json":    branchJSON("good", "Good", "", 0, "g"),
			})
			report := importFrom(t, s, root, conversation.ImportOptions{MaxFile: 200000})
			require.Equal(t, 1, report.Branches)
			require.Len(t, report.Problems, 1)
			require.Equal(t, "damaged.json", report.Problems[0].File)
			require.ErrorIs(t, report.Problems[0], damage.want)
			c, err := conversation.Open(bg, s, "s", conversation.Options{})
			require.NoError(t, err)
			require.Equal(t, []string{"g"}, saidOn(t, c, "good"))
			all, err := c.Branches(bg)
			require.NoError(t, err)
			require.Len(t, all, 2, "main and good")
			left, err := os.ReadFile(filepath.Join(root, "s", "damaged.json"))
			require.NoError(t, err)
			require.Equal(t, damage.text, string(left), "the file is as it was")
		})
	}
}

// A damaged main branch does not become an empty one for good.
func TestImportDamagedMain(t *testing.T) {
	root, s := t.TempDir(), newStore(t)
	main := branchJSON("main", "Main conversation", "", 0, "a", "b")
	writeSession(t, root, "s", map[string]string{
		"main.json": main[:40],
		"side.json": branchJSON("side", "Side", "main", 1, "a", "S"),
	})
	report := importFrom(t, s, root, conversation.ImportOptions{})
	require.Len(t, report.Problems, 2, "main, and that side lacks its parent")
	require.ErrorIs(t, report.Problems[0], conversation.ErrBadFile)
	require.ErrorIs(t, report.Problems[1], lineage.ErrNotFound)
	c, err := conversation.Open(bg, s, "s", conversation.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "S"}, saidOn(t, c, "side"))
	require.Empty(t, saidOn(t, c, "main"))

	writeSession(t, root, "s", map[string]string{"main.json": main})
	report = importFrom(t, s, root, conversation.ImportOptions{})
	require.Empty(t, report.Problems)
	require.Equal(t, 2, report.NewMessages)
	require.Equal(t, []string{"a", "b"}, saidOn(t, c, "main"))
}

func TestImportOddParents(t *testing.T) {
	root, s := t.TempDir(), newStore(t)
	writeSession(t, root, "s", map[string]string{
		"main.json": branchJSON("main", "Main conversation", "a", 1, "m"),
		"a.json":    branchJSON("a", "A", "b", 1, "x", "1"),
		"b.json":    branchJSON("b", "B", "a", 1, "x", "2"),
		"self.json": branchJSON("self", "Self", "self", 0, "y"),
		"far.json":  branchJSON("far", "Far", "main", 99, "elsewhere"),
	})
	report := importFrom(t, s, root, conversation.ImportOptions{})
	require.Equal(t, 5, report.Branches)
	require.Len(t, report.Problems, 2)
	for _, p := range report.Problems {
		require.ErrorIs(t, p, lineage.ErrInvalid)
	}
	c, err := conversation.Open(bg, s, "s", conversation.Options{})
	require.NoError(t, err)
	for id, want := range map[string][]string{"main": {"m"}, "a": {"x", "1"}, "b": {"x", "2"}, "self": {"y"}, "far": {"elsewhere"}} {
		require.Equal(t, want, saidOn(t, c, id))
	}
	_, err = c.Tree(bg)
	require.NoError(t, err)
	require.Empty(t, importFrom(t, s, root, conversation.ImportOptions{}).NewMessages)
}

func TestImportStaysInItsFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not tested: links need rights that users lack")
	}
	outside, root, s := t.TempDir(), t.TempDir(), newStore(t)
	secret := branchJSON("secret", "Secret", "", 0, "secret")
	writeSession(t, outside, "theirs", map[string]string{"secret.json": secret})
	writeSession(t, root, "s", map[string]string{"main.json": branchJSON("main", "Main conversation", "", 0, "a")})
	require.NoError(t, os.Symlink(filepath.Join(outside, "theirs", "secret.json"), filepath.Join(root, "s", "link.json")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "theirs"), filepath.Join(root, "linked")))
	require.NoError(t, os.Symlink("gone", filepath.Join(root, "dangling")))
	require.NoError(t, os.Symlink("main.json", filepath.Join(root, "s", "within.json")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "s", "folder.json"), 0o755))
	require.NoError(t, os.Symlink("folder.json", filepath.Join(root, "s", "tofolder.json")))

	report := importFrom(t, s, root, conversation.ImportOptions{})
	require.Equal(t, 1, report.Sessions)
	require.Equal(t, 1, report.Branches)
	var at []string
	for _, p := range report.Problems {
		at = append(at, p.Session+"/"+p.File)
	}
	require.ElementsMatch(t, []string{"dangling/", "linked/", "s/link.json", "s/tofolder.json", "s/within.json"}, at)

	bad := []string{"", ".", "..", "../" + filepath.Base(outside), "a/b", `a\b`, outside, "nothing"}
	report = importFrom(t, s, root, conversation.ImportOptions{Sessions: bad})
	require.Zero(t, report.Sessions)
	require.Len(t, report.Problems, len(bad))
	require.ErrorIs(t, report.Problems[3], lineage.ErrInvalid)
	require.ErrorIs(t, report.Problems[len(bad)-1], fs.ErrNotExist)
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := thread.Info(bg)
		require.NoError(t, err)
		require.Equal(t, "s", info.SourceID)
	}

	_, err := conversation.Import(bg, s, filepath.Join(root, "nowhere"), conversation.ImportOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Two imports at once add everything once.
func TestImportTogether(t *testing.T) {
	root, s := t.TempDir(), newStore(t)
	files := map[string]string{"main.json": branchJSON("main", "Main conversation", "", 0, "a", "b")}
	for i := range 8 {
		id := fmt.Sprint("b", i)
		files[id+".json"] = branchJSON(id, id, "main", 2, "a", "b", id)
	}
	writeSession(t, root, "s", files)
	errs := make(chan error)
	for range 4 {
		go func() {
			report, err := conversation.Import(bg, s, root, conversation.ImportOptions{})
			if err == nil && len(report.Problems) > 0 {
				err = errors.Join(err, report.Problems[0])
			}
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
	c, err := conversation.Open(bg, s, "s", conversation.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, saidOn(t, c, "main"))
	for i := range 8 {
		require.Equal(t, []string{"a", "b", fmt.Sprint("b", i)}, saidOn(t, c, fmt.Sprint("b", i)))
	}
}
