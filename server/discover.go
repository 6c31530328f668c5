package server

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lineage-store/lineage/internal/localsocket"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/structure"
)

// Found is a server of this user on this machine.
type Found struct {
	PID int `json:"pid"`
	// Store is the name of the store for people.
	Store string `json:"store"`
	// URL is the address of the server. Socket is the name of its socket in the directory. Either is empty if there
	// is none.
	URL      string    `json:"url"`
	Socket   string    `json:"socket,omitempty"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Started  time.Time `json:"started"`

	dir, file string
}

// RuntimeDir returns the directory in which servers of this user are found: the one of the user's session, else one
// among the caches.
func RuntimeDir() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "lineage"), nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "lineage", "run"), err
}

// discovery is what a server publishes so that others can find it.
type discovery struct {
	file   string
	socket net.Listener // nil if there can be none
	path   string       // of the socket
}

// publish creates the socket of a server in a directory, and the file that describes the server. Their names contain
// the store, the process, and random digits, because process ids are reused.
func publish(dir string, store structure.StoreID, found Found) (d *discovery, err error) {
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	tidy(dir)
	var digits [4]byte
	rand.Read(digits[:]) // never fails
	name := fmt.Sprintf("%s-%d-%s", store, found.PID, hex.EncodeToString(digits[:]))
	d = &discovery{file: filepath.Join(dir, name+".json")}
	switch l, err := localsocket.Listen(dir, name+".sock"); {
	case err == nil:
		found.Socket, d.path = name+".sock", filepath.Join(dir, name+".sock")
		l.SetUnlinkOnClose(false) // remove does it
		d.socket = &userListener{l}
		if err := os.Chmod(d.path, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close(), os.Remove(d.path))
		}
	case !errors.Is(err, localsocket.ErrUnsupported):
		return nil, fmt.Errorf("socket: %w", err)
	}
	text, err := json.Marshal(found)
	if err == nil {
		err = writePrivate(d.file, append(text, '\n'))
	}
	if err != nil {
		if d.socket != nil {
			err = errors.Join(err, d.socket.Close())
		}
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

// remove removes what publish created.
func (d *discovery) remove() (err error) {
	for _, name := range []string{d.file, d.path} {
		if name == "" {
			continue
		}
		if removed := os.Remove(name); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// userListener accepts only processes of this user, and of root.
type userListener struct{ *net.UnixListener }

// Accept implements net.Listener.
func (l *userListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if localsocket.Allow(c) == nil {
			return c, nil
		}
		_ = c.Close() // it is refused
	}
}

// privateDir creates a directory that only this user can use. It refuses one that others can use.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	if err := vfs.CheckDir(dir); err != nil {
		return fmt.Errorf("directory for sockets: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && filepath.Separator == '/' && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("%s: others can write there: %w", dir, fs.ErrPermission)
	}
	return err
}

// writePrivate creates a file that only this user can read, completely or not at all.
func writePrivate(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

const (
	// maxFound limits the size of a file, in bytes.
	maxFound = 64 << 10
	// dialTimeout limits the wait for a server on this machine.
	dialTimeout = 5 * time.Second
)

// Find returns the running servers of a store that belong to this user, the newest last.
func Find(dir string, store structure.StoreID) ([]Found, error) {
	files, err := filepath.Glob(filepath.Join(dir, store.String()+"-*.json"))
	var all []Found
	for _, file := range files {
		if found, err := readFound(file); err == nil && found.alive() {
			all = append(all, found)
		}
	}
	for i := range all { // there are few
		for k := i; k > 0 && all[k].Started.Before(all[k-1].Started); k-- {
			all[k], all[k-1] = all[k-1], all[k]
		}
	}
	return all, err
}

// readFound reads the file of a server.
func readFound(file string) (Found, error) {
	b, err := vfs.ReadFile(file, maxFound)
	if err != nil {
		return Found{}, err
	}
	found, err := decodeFound(b)
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", file, err)
	}
	found.dir, found.file = filepath.Dir(file), file
	return found, nil
}

var errFound = errors.New("not the file of a server")

func decodeFound(b []byte) (found Found, err error) {
	if err := json.Unmarshal(b, &found); err != nil {
		return Found{}, fmt.Errorf("%w: %w", errFound, err)
	}
	// The socket is in the same directory.
	if found.Socket != "" && (filepath.Base(found.Socket) != found.Socket || !strings.HasSuffix(found.Socket, ".sock")) {
		return Found{}, fmt.Errorf("%w: socket %q", errFound, found.Socket)
	}
	return found, nil
}

// alive reports whether the server listens on its socket. A server without a socket counts as alive.
func (f *Found) alive() bool {
	if f.Socket == "" {
		return true
	}
	c, err := localsocket.Dial(f.dir, f.Socket)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// gone reports whether nothing will listen on the socket again.
func (f *Found) gone() bool {
	if f.Socket == "" {
		return false
	}
	c, err := localsocket.Dial(f.dir, f.Socket)
	if err == nil {
		_ = c.Close()
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// tidy removes the files of servers that were killed.
func tidy(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json")) // only the pattern can be wrong
	for _, file := range files {
		if found, err := readFound(file); err == nil && found.gone() {
			_ = os.Remove(filepath.Join(dir, found.Socket)) // the next server tries again
			_ = os.Remove(file)
		}
	}
}

// Client returns a client that calls the server on its socket, whatever the host of the request. The other end must
// be a process of this user.
func (f *Found) Client() *http.Client {
	dir, socket := f.dir, f.Socket
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			c, err := localsocket.Dial(dir, socket)
			if err != nil {
				return nil, err
			}
			if err := localsocket.Allow(c); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			return c, nil
		},
	}}
}

// Link asks the server for a link to the page.
func (f *Found) Link(ctx context.Context) (string, error) {
	if f.Socket == "" {
		return "", fmt.Errorf("server of process %d: it has no socket: %w", f.PID, localsocket.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lineage/links", nil)
	if err != nil {
		return "", err
	}
	answer, err := f.Client().Do(r)
	if err != nil {
		return "", fmt.Errorf("server of process %d: %w", f.PID, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxFound))
	if err != nil {
		return "", fmt.Errorf("server of process %d: %w", f.PID, err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("server of process %d: %s: %s", f.PID, answer.Status, bytes.TrimSpace(b))
	}
	var record linkRecord
	if err := json.Unmarshal(b, &record); err != nil {
		return "", fmt.Errorf("server of process %d: %w", f.PID, err)
	}
	return record.Link, nil
}

// linkRecord is the answer to a request for a link.
type linkRecord struct {
	Link string `json:"link"`
}
