// Package access keeps who may use the server of a store from elsewhere than its own page: tokens, and the host name of
// the page. They are in a file of the user's configuration that only the user can read, outside the store and its copies.
// Of a token the file has only a hash.
package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

var (
	// ErrRefused is returned for a secret that no token has, or whose token has ended.
	ErrRefused = errors.New("no valid token")
	// ErrDamaged is returned where the file is not one of this package.
	ErrDamaged = errors.New("not a file of tokens")
)

const (
	// MaxTokens is the number of tokens that a store can have.
	MaxTokens = 1000
	// maxText limits the name of a token, and each user and project of its scope, in bytes.
	maxText = 4096
	// maxScope limits the users and projects of a token.
	maxScope = 100
	// maxFile limits the file in bytes.
	maxFile = 16 << 20
	version = 1
	// prefix begins each secret, so that scanners recognise it.
	prefix = "lineage_"
	// lockTimeout is how long a change waits for that of another process.
	lockTimeout = 5 * time.Second
)

// Token is what a program may do that has the secret.
type Token struct {
	// ID names the token to people.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Writes is set if the program may change the store.
	Writes bool  `json:"writes,omitempty"`
	Scope  Scope `json:"scope,omitzero"`
	// Created and Expires are its beginning and end. A zero end is none.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// Scope limits what a token is for. The zero scope is the whole store.
type Scope struct {
	// Users and Projects are the users of threads, and the folders their sessions began in. With both, a thread must be
	// of one of the users and of one of the projects.
	Users    []string `json:"users,omitempty"`
	Projects []string `json:"projects,omitempty"`
}

// All reports whether the scope is the whole store.
func (s *Scope) All() bool { return len(s.Users) == 0 && len(s.Projects) == 0 }

// Allows reports whether a thread is in the scope.
func (s *Scope) Allows(t *lineage.ThreadInfo) bool {
	if len(s.Users) > 0 && !slices.Contains(s.Users, t.UserID) {
		return false
	}
	return len(s.Projects) == 0 || slices.Contains(s.Projects, projectOf(t))
}

// projectOf returns the folder that the session of a thread began in, empty if there is none.
func projectOf(t *lineage.ThreadInfo) (project string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(t.Metadata, &members) != nil || json.Unmarshal(members[archive.KeyProject], &project) != nil {
		return ""
	}
	return project
}

// Valid reports whether the token has not ended.
func (t *Token) Valid(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// check refuses a token that cannot be kept.
func (t *Token) check() error {
	if len(t.Scope.Users)+len(t.Scope.Projects) > maxScope {
		return fmt.Errorf("token: more than %d users and projects: %w", maxScope, lineage.ErrInvalid)
	}
	if slices.Contains(t.Scope.Users, "") || slices.Contains(t.Scope.Projects, "") {
		return fmt.Errorf("token: a user or project without a name: %w", lineage.ErrInvalid)
	}
	for _, text := range slices.Concat([]string{t.Name}, t.Scope.Users, t.Scope.Projects) {
		if len(text) > maxText {
			return fmt.Errorf("token: a name of %d bytes, more than %d: %w", len(text), maxText, lineage.ErrInvalid)
		}
	}
	return nil
}

// kept is a token as the file has it.
type kept struct {
	Token
	// Hash is the SHA-256 of the secret, which is random.
	Hash string `json:"hash"`
}

type content struct {
	Version int    `json:"version"`
	Host    string `json:"host"`
	Tokens  []kept `json:"tokens"`
}

// File is the file of a store. It is safe for concurrent use, also by several processes.
type File struct {
	path string

	mu   sync.Mutex
	read content     // what was read last
	info os.FileInfo // the file that it was read from; nil for none
}

// Open returns the file of a store below the user's configuration, such as os.UserConfigDir. The file need not exist.
func Open(config string, store structure.StoreID) *File {
	return &File{path: filepath.Join(config, "lineage", "access", store.String()+".json")}
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Host returns the host name of the store's page: a random name below localhost, which stays the same.
func (f *File) Host(ctx context.Context) (string, error) {
	c, err := f.load()
	if err == nil && c.Host == "" {
		err = f.change(ctx, func(is *content) error {
			c = *is
			return nil
		})
	}
	return c.Host, err
}

// Create adds a token, with an id and the time, and returns it with its secret, which is kept nowhere.
func (f *File) Create(ctx context.Context, t Token) (Token, string, error) {
	if err := t.check(); err != nil {
		return Token{}, "", err
	}
	secret := prefix + random(32)
	t.ID, t.Created = hash(secret)[:8], time.Now().UTC().Truncate(time.Second)
	err := f.change(ctx, func(c *content) error {
		if len(c.Tokens) >= MaxTokens {
			return fmt.Errorf("token: there are %d: %w", len(c.Tokens), lineage.ErrTooLarge)
		}
		for _, k := range c.Tokens {
			if k.ID == t.ID {
				return fmt.Errorf("token %s: %w", t.ID, lineage.ErrExists)
			}
		}
		c.Tokens = append(c.Tokens, kept{t, hash(secret)})
		return nil
	})
	return t, secret, err
}

// List returns the tokens, those that have ended too, oldest first.
func (f *File) List() ([]Token, error) {
	c, err := f.load()
	var all []Token
	for _, k := range c.Tokens {
		all = append(all, k.Token)
	}
	return all, err
}

// Delete deletes a token.
func (f *File) Delete(ctx context.Context, id string) error {
	return f.change(ctx, func(c *content) error {
		left := slices.DeleteFunc(slices.Clone(c.Tokens), func(k kept) bool { return k.ID == id })
		if len(left) == len(c.Tokens) {
			return fmt.Errorf("token %s: %w", id, lineage.ErrNotFound)
		}
		c.Tokens = left
		return nil
	})
}

// Check returns the token with a secret. A token that another process has deleted is refused from then on.
func (f *File) Check(secret string, now time.Time) (Token, error) {
	c, err := f.load()
	if err != nil {
		return Token{}, err
	}
	is, found := []byte(hash(secret)), -1
	for i := range c.Tokens {
		if subtle.ConstantTimeCompare(is, []byte(c.Tokens[i].Hash)) == 1 {
			found = i
		}
	}
	if found < 0 || !c.Tokens[found].Valid(now) {
		return Token{}, ErrRefused
	}
	return c.Tokens[found].Token, nil
}

// load returns what the file has. Each change replaces the file, so that one that is still the same need not be read again.
func (f *File) load() (content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, nil
	}
	if err != nil {
		return content{}, fmt.Errorf("tokens: %w", err)
	}
	if f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() {
		return f.read, nil
	}
	b, err := vfs.ReadFile(f.path, maxFile)
	if err != nil {
		return content{}, fmt.Errorf("tokens: %w", err)
	}
	c, err := decode(b)
	if err != nil {
		return content{}, fmt.Errorf("tokens: %s: %w", f.path, err)
	}
	f.read, f.info = c, info
	return c, nil
}

// decode reads the content of a file.
func decode(b []byte) (content, error) {
	var c content
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields() // a newer program may limit tokens in ways that this one does not know
	if err := d.Decode(&c); err != nil {
		return content{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if c.Version != version {
		return content{}, fmt.Errorf("%w: version %d", ErrDamaged, c.Version)
	}
	label, ok := strings.CutSuffix(c.Host, ".localhost")
	if raw, err := hex.DecodeString(label); !ok || err != nil || len(raw) != hostSize {
		return content{}, fmt.Errorf("%w: host %q", ErrDamaged, c.Host)
	}
	for _, k := range c.Tokens {
		if raw, err := hex.DecodeString(k.Hash); err != nil || len(raw) != sha256.Size {
			return content{}, fmt.Errorf("%w: the hash of token %q", ErrDamaged, k.ID)
		}
	}
	return c, nil
}

// hostSize is the size of the random part of a host name in bytes.
const hostSize = 10

// change replaces the file by what a function makes of its content. No other process changes it meanwhile.
func (f *File) change(ctx context.Context, do func(*content) error) (err error) {
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	unlock, err := lock(ctx, f.path+".lock")
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	c, err := f.load()
	if err != nil {
		return err
	}
	c.Version = version
	c.Tokens = slices.Clone(c.Tokens)
	if c.Host == "" {
		var label [hostSize]byte
		rand.Read(label[:]) // never fails
		c.Host = hex.EncodeToString(label[:]) + ".localhost"
	}
	if err := do(&c); err != nil {
		return err
	}
	b, err := json.MarshalIndent(c, "", "\t")
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	if err := replace(f.path, append(b, '\n')); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return nil
}

// replace gives a file new content, completely or not at all. Only its owner can read it.
func replace(path string, b []byte) error {
	t, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = t.Write(b)
	if err = errors.Join(err, t.Sync(), t.Close()); err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

// lock takes the lock of a file, which is created.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	l, err := vfs.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		if err = vfs.TryLock(l, false); err == nil {
			return l.Close, nil
		}
		if !errors.Is(err, vfs.ErrBusy) {
			return nil, errors.Join(err, l.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s: %w", path, cmp.Or(err, ctx.Err())), l.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// random returns so many random bytes as text for a URL.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
