package server

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

func needSockets(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("there are no sockets here")
	}
}

// Two servers of a store are found both, and each gives links of its own on its socket, without a token.
func TestFind(t *testing.T) {
	needSockets(t)
	store := lineagetest.New(t, lineage.Options{})
	dir := runtimeDir(t)
	use := func(o *Options) { o.Runtime, o.Name = dir, "the store" }
	a, b := openOf(t, store, use), openOf(t, store, use)
	open(t, use) // of another store
	all, err := Find(dir, store.ID())
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, one := range all {
		require.Equal(t, os.Getpid(), one.PID)
		require.Equal(t, "the store", one.Store)
		for _, name := range []string{one.file, filepath.Join(dir, one.Socket)} {
			info, err := os.Lstat(name)
			require.NoError(t, err)
			require.EqualValues(t, 0o600, info.Mode().Perm(), name)
		}
		of := a
		if one.URL == b.URL() {
			of = b
		}
		link, err := one.Link(t.Context())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(link, of.URL()+"/login#"))
		_, code, _ := strings.Cut(link, "#")
		require.Equal(t, http.StatusNoContent, of.do("POST", "/login", code, ours).status)
		answer, err := one.Client().Get("http://any.example/") // the whole store, for processes of this user
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, pageText, string(body))
	}
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())
	require.NoError(t, a.Close(t.Context()))
	all, err = Find(dir, store.ID())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, b.URL(), all[0].URL)
	require.NoError(t, b.Close(t.Context()))
	left, err := filepath.Glob(filepath.Join(dir, store.ID().String()+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// What a killed server left is not found, and the next server removes it. Hostile files lead nowhere.
func TestLeftByKilled(t *testing.T) {
	needSockets(t)
	store := lineagetest.New(t, lineage.Options{})
	dir := runtimeDir(t)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	outside := filepath.Join(t.TempDir(), "outside.sock")
	require.NoError(t, os.WriteFile(outside, []byte("kept"), 0o600))
	write := func(name string, found Found) string {
		text, err := json.Marshal(found)
		require.NoError(t, err)
		file := filepath.Join(dir, store.ID().String()+name)
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return file
	}
	dead := write("-1-a.json", Found{PID: 1, Socket: "gone.sock"})
	hostile := write("-2-b.json", Found{PID: 2, Socket: "../" + filepath.Base(filepath.Dir(outside)) + "/outside.sock"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, store.ID().String()+"-3-c.json"), []byte("{"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, store.ID().String()+"-4-d.json")))
	all, err := Find(dir, store.ID())
	require.NoError(t, err)
	require.Empty(t, all)
	openOf(t, store, func(o *Options) { o.Runtime = dir })
	require.NoFileExists(t, dead)
	require.FileExists(t, hostile)
	require.FileExists(t, outside)
	all, err = Find(dir, store.ID())
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// A directory that others can write to, or that is a link, is no place for a socket.
func TestRuntimeIsPrivate(t *testing.T) {
	needSockets(t)
	shared := filepath.Join(t.TempDir(), "shared")
	require.NoError(t, os.Mkdir(shared, 0o700))
	require.NoError(t, os.Chmod(shared, 0o777))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	store := lineagetest.New(t, lineage.Options{})
	for _, dir := range []string{shared, link} {
		h := open(t)
		_, err := Open(t.Context(), Options{Store: store, Access: h.access, Listen: "127.0.0.1:0", Runtime: dir})
		require.Error(t, err, dir)
	}
}

// TestSocketOfAnotherUser connects as another user.
func TestSocketOfAnotherUser(t *testing.T) {
	needSockets(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	store := lineagetest.New(t, lineage.Options{})
	dir, err := os.MkdirTemp("", "lineage-run")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	openOf(t, store, func(o *Options) { o.Runtime = dir })
	all, err := Find(dir, store.ID())
	require.NoError(t, err)
	require.Len(t, all, 1)
	socket := filepath.Join(dir, all[0].Socket)
	// The modes would refuse the other user before the server does.
	require.NoError(t, os.Chmod(dir, 0o711))
	require.NoError(t, os.Chmod(socket, 0o666))
	ask := func(c *exec.Cmd) string {
		c.Dir = dir // the whole name may be too long for a socket
		out, err := c.CombinedOutput()
		if err != nil {
			return "refused"
		}
		return string(out)
	}
	call := []string{"-s", "--max-time", "60", "--unix-socket", all[0].Socket, "http://lineage/"}
	require.Equal(t, pageText, ask(exec.Command(curl, call...)))
	other := exec.Command(curl, call...)
	asUser(other, 65534)
	require.Equal(t, "refused", ask(other))
}

func FuzzFound(f *testing.F) {
	f.Add([]byte(`{"pid":1,"socket":"a.sock","url":"http://x"}`))
	f.Add([]byte(`{"socket":"../a.sock"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeFound(b)
		if err == nil && got.Socket != "" {
			require.Equal(t, filepath.Join("/dir", got.Socket), "/dir/"+got.Socket)
			require.NotContains(t, got.Socket, "/")
		}
	})
}
