//lint:file-ignore SA1019 roots are deprecated from revision 2026-07-28 on. Clients of the earlier ones have them.

package mcp

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// TestScopeOfRoots takes the scope of a client from its roots, or from the working directory.
func TestScopeOfRoots(t *testing.T) {
	b := newBench(t)
	b.thread("ours", "/src/a", "ada", lineage.User("of a"))
	b.thread("theirs", "/src/b", "ada", lineage.User("of b"))
	b.thread("nobody", "", "ada", lineage.User("of none"))
	titles := func(c *client) (titles []string) {
		for _, r := range c.ok("threads", nil).Records {
			titles = append(titles, r["title"].(string))
		}
		return titles
	}
	withRoots := func(uris ...string) (*sdk.Client, *client) {
		got := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		for _, uri := range uris {
			got.AddRoots(&sdk.Root{URI: uri})
		}
		ours, theirs := sdk.NewInMemoryTransports()
		server, err := b.service.Server(Client{Scope: Project("/src/a")}).Connect(t.Context(), ours, nil)
		require.NoError(t, err)
		// Roots are of revisions before 2026-07-28.
		c, err := got.Connect(t.Context(), theirs, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = c.Close()
			_ = server.Wait()
		})
		return got, &client{t, c}
	}
	_, none := withRoots()
	require.Equal(t, []string{"Title of ours"}, titles(none), "the working directory")
	got, c := withRoots("file:///src/b")
	require.Equal(t, []string{"Title of theirs"}, titles(c))
	got.AddRoots(&sdk.Root{URI: "file:///src/a/"})
	require.ElementsMatch(t, []string{"Title of ours", "Title of theirs"}, titles(c))
	got.RemoveRoots("file:///src/b", "file:///src/a/")
	got.AddRoots(&sdk.Root{URI: "https://example.org/src/a"})
	c.fails("threads", nil, "none of its roots is a folder")
	require.Equal(t, []string{"Title of ours"}, titles(b.connect(Client{Scope: Project("/src/a")}, nil)))
	b.connect(Client{Scope: Project("")}, nil).fails("threads", nil, ErrNoProject.Error())
}

func TestFolderOf(t *testing.T) {
	for uri, want := range map[string][2]string{
		"file:///src/a": {"/src/a", `Src\a`}, "file:///src/a%20b/": {"/src/a b", ""}, "file:///": {"/", ""}, "file://localhost/x": {"/x", ""},
		"file://host/x": {"", ""}, "http://x/y": {"", ""}, "": {"", ""}, "file:": {"", ""}, "\x00": {"", ""},
	} {
		require.Equal(t, want[0], folderOf(uri, "linux"), uri)
	}
	require.Equal(t, `C:\src\a`, folderOf("file:///c:/src/a/", "windows"))
	require.Equal(t, `C:\`, folderOf("file:///C:/", "windows"))
}
