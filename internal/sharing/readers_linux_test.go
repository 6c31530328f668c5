package sharing

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/localsocket"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

func readOnly() Options {
	o := normal
	o.ReadOnly = true
	return o
}

// TestReaderOwns opens a store for reading that no other process has open. It excludes no other
// process, and writes nothing.
func TestReaderOwns(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(background, dir, readOnly())
	require.ErrorIs(t, err, backend.ErrNotFound)
	writer := open(t, dir, normal)
	apply(t, writer, "one")
	require.NoError(t, writer.Close())

	reader := open(t, dir, readOnly())
	require.True(t, owns(reader))
	second, third := open(t, dir, normal), open(t, dir, readOnly())
	apply(t, second, "two")
	require.Equal(t, map[string]int{"one": 1, "two": 1}, threads(t, reader))
	require.NoError(t, reader.Close())
	apply(t, second, "three") // third may own the store now
	for _, e := range []*Engine{reader, third} {
		_, err = e.Apply(background, newThread("none"), backend.Options{})
		require.Error(t, err)
		_, err = e.Upload(background, nil)
		require.Error(t, err)
	}
	_, err = third.Apply(background, newThread("none"), backend.Options{})
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.Equal(t, map[string]int{"one": 1, "two": 1, "three": 1}, threads(t, third))
}

// damage damages the first commit of a store, so that the store opens for reading only.
func damage(t *testing.T, dir string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, journalDir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	b, err := os.ReadFile(all[0])
	require.NoError(t, err)
	at := bytes.LastIndex(b, []byte("in the middle"))
	require.Positive(t, at)
	b[at] ^= 1
	require.NoError(t, os.WriteFile(all[0], b, 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "index.bolt")))
}

// TestReaderGivesWay reads a store all the time that cannot be opened for writing. A process that
// asks for the lock gets it.
func TestReaderGivesWay(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, normal)
	for _, name := range []string{"first", "in the middle", "last"} {
		apply(t, e, name)
	}
	require.NoError(t, e.Close())
	damage(t, dir)
	_, err := Open(background, dir, normal)
	require.ErrorIs(t, err, backend.ErrCorrupt)

	reader := open(t, dir, readOnly())
	require.ErrorIs(t, reader.Damage(), backend.ErrCorrupt)
	snapshot, err := reader.Snapshot(background)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(background)
	defer stop()
	read := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := reader.Head(background); err != nil {
				read <- err
				return
			}
		}
		read <- nil
	}()
	_, err = embedded.Open(background, dir, embedded.Options{Wait: hangs})
	require.ErrorIs(t, err, backend.ErrCorrupt, "it got the lock")
	_, err = snapshot.Head(background)
	require.ErrorIs(t, err, backend.ErrExpired)
	_, err = reader.Head(background)
	require.NoError(t, err, "the reader opens it again")
	stop()
	require.NoError(t, <-read)
	require.ErrorIs(t, reader.Damage(), backend.ErrCorrupt)
}

// TestReaderGivesWayAtOnce has a process ask for the lock while a reader is opening the store.
func TestReaderGivesWayAtOnce(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, normal)
	for _, name := range []string{"first", "in the middle", "last"} {
		apply(t, e, name)
	}
	require.NoError(t, e.Close())
	damage(t, dir)
	reader := open(t, dir, readOnly())
	first := reader.current.Load()
	require.True(t, first.readOnly)
	reader.lose(first)
	<-first.done
	h, err := reader.read(background)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(filepath.Join(dir, embedded.LockFile), time.Time{}, time.Unix(1, 0)))
	reader.mu.Lock()
	reader.set(h)
	reader.mu.Unlock()
	<-h.done
	require.NotSame(t, h, reader.current.Load())
}

// TestIdleGuestTakesOver kills the owner of a guest that does nothing.
func TestIdleGuestTakesOver(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "hold "+dir)
	require.Equal(t, "ready true", c.line(t))
	e := open(t, dir, normal)
	require.False(t, owns(e))
	c.kill(t)
	require.Eventually(t, func() bool { return owns(e) }, hangs, time.Millisecond)
}

// TestWaiting gives up on a locked store that has had no socket for some time, but not in the moment
// between two owners.
func TestWaiting(t *testing.T) {
	now := time.Now()
	w := waiting{since: now, socket: now}
	enough := func(after, wait time.Duration, why error) bool { return w.enough(now.Add(after), wait, why) }
	require.False(t, enough(socketTimeout/2, 0, fs.ErrNotExist))
	require.True(t, enough(socketTimeout, 0, fs.ErrNotExist))
	require.False(t, enough(socketTimeout, time.Minute, fs.ErrNotExist))
	require.True(t, enough(0, 0, localsocket.ErrUnsupported))
	require.False(t, enough(2*socketTimeout, 0, syscall.ECONNREFUSED), "there is a socket")
	require.False(t, enough(2*socketTimeout, 0, fs.ErrNotExist), "there was a socket just now")
	require.True(t, enough(3*socketTimeout, 0, fs.ErrNotExist))
	require.True(t, enough(ownerTimeout, 0, errSilent))
}

// TestCloseBesideAStoppedOwner closes a guest whose owner does not answer.
func TestCloseBesideAStoppedOwner(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "hold "+dir)
	require.Equal(t, "ready true", c.line(t))
	e := open(t, dir, normal)
	apply(t, e, "one")
	c.stop(t)
	asked := make(chan error, 2)
	go func() {
		_, err := e.Head(background)
		asked <- err
	}()
	go func() {
		_, err := e.Apply(background, newThread("two"), backend.Options{})
		asked <- err
	}()
	require.NoError(t, e.Close())
	require.Error(t, <-asked)
	require.Error(t, <-asked)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	c.finish(t)
}

// TestCommitBehindClosedGuests applies the first request of a session that began before other guests
// connected, wrote and closed.
func TestCommitBehindClosedGuests(t *testing.T) {
	dir := t.TempDir()
	owner := open(t, dir, normal)
	since, err := owner.Head(background)
	require.NoError(t, err)
	for range 3 {
		e := open(t, dir, normal)
		require.False(t, owns(e))
		apply(t, e, "of a guest")
		require.NoError(t, e.Close())
	}
	once := backend.Once{Session: [16]byte{1}, Since: since, Sequence: 1}
	_, err = owner.Apply(background, newThread("late"), backend.Options{Once: &once})
	require.NoError(t, err)
}

// TestWhomToTrust checks which users may serve a store.
func TestWhomToTrust(t *testing.T) {
	dir := t.TempDir()
	me := os.Geteuid()
	require.NoError(t, mayServe(dir, me, me))
	require.NoError(t, mayServe(dir, me, 0), "root trusts the user of the store")
	require.ErrorIs(t, mayServe(dir, me+1, me), fs.ErrPermission)
	require.ErrorIs(t, mayServe(dir, me+1, 0), fs.ErrPermission)
	require.ErrorIs(t, mayServe(filepath.Join(dir, "none"), 4711, 0), fs.ErrPermission)
}

// someone is a user who is not root.
const someone = 4711

// TestRootBesideAnotherUser has root use the store of another user, as a guest and for reading.
func TestRootBesideAnotherUser(t *testing.T) {
	dir, startAs := forSomeone(t)
	require.NoError(t, os.Chown(dir, someone, someone))
	begin := func() *child {
		c := startAs("hold " + dir)
		require.Equal(t, "ready true", c.line(t))
		return c
	}
	c := begin()
	guest := open(t, dir, normal)
	require.False(t, owns(guest))
	apply(t, guest, "as a guest")
	c.finish(t)
	_, err := guest.Apply(background, newThread("as the owner"), backend.Options{})
	require.ErrorIs(t, err, fs.ErrPermission)
	_, err = Open(background, dir, normal)
	require.ErrorIs(t, err, fs.ErrPermission)

	reader := open(t, dir, readOnly())
	require.True(t, reader.current.Load().readOnly)
	require.Equal(t, map[string]int{"as a guest": 1}, threads(t, reader))
	c = begin() // the reader gives way
	require.Equal(t, map[string]int{"as a guest": 1}, threads(t, reader))
	require.False(t, owns(reader))
	apply(t, guest, "again")
	c.finish(t)
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			user, _ := userOf(path)
			require.Equal(t, someone, user, path)
		}
		return err
	}))
}

// TestOtherUsers makes a store of root accessible to all users. The owner refuses another user, who
// refuses that owner too, and no process becomes the guest of a socket that another user created.
func TestOtherUsers(t *testing.T) {
	dir, startAs := forSomeone(t)
	e := open(t, dir, normal)
	apply(t, e, "one")
	for _, name := range []string{dir, filepath.Join(dir, embedded.SocketFile)} {
		require.NoError(t, os.Chmod(name, 0o777))
	}
	require.Equal(t, "got 0 true", startAs("knock "+dir).line(t))
	require.NoError(t, e.Close())
	c := startAs("plant " + dir)
	require.Equal(t, "ready", c.line(t))
	require.NoError(t, os.Chmod(filepath.Join(dir, embedded.SocketFile), 0o777))
	e = open(t, dir, normal)
	require.True(t, owns(e))
	second := open(t, dir, normal)
	require.False(t, owns(second))
	require.Equal(t, map[string]int{"one": 1}, threads(t, second))
	c.kill(t)
}

// forSomeone returns a directory that other users can reach, and a function that starts a child as one.
func forSomeone(t *testing.T) (dir string, startAs func(do string) *child) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	base := t.TempDir()
	for _, dir := range []string{base, filepath.Dir(base)} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	program := filepath.Join(base, "child")
	require.NoError(t, copyFile(os.Args[0], program))
	dir = filepath.Join(base, "store")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir, func(do string) *child {
		cmd := exec.Command(program)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
		return startCommand(t, cmd, do)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// TestReaderOfHardLinks reads a store of which a file is a hard link. It writes to no file, and a
// writer is refused.
func TestReaderOfHardLinks(t *testing.T) {
	dir := t.TempDir()
	writer := open(t, dir, normal)
	apply(t, writer, "one")
	require.NoError(t, writer.Close())
	for _, name := range []string{embedded.LockFile, "index.bolt"} {
		other := filepath.Join(t.TempDir(), "other")
		require.NoError(t, os.Link(filepath.Join(dir, name), other))
		before, err := os.ReadFile(other)
		require.NoError(t, err)
		_, err = Open(background, dir, normal)
		require.ErrorIs(t, err, vfs.ErrNotRegular)
		require.ErrorContains(t, err, filepath.Join(dir, name))
		reader := open(t, dir, readOnly())
		require.Equal(t, map[string]int{"one": 1}, threads(t, reader))
		require.NoError(t, reader.Close())
		after, err := os.ReadFile(other)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.NoError(t, os.Remove(other))
	}
}
