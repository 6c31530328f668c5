// Package access stores who may use the server of a store from outside its own page: tokens, and the host name of the
// page. They are in a file of the user's configuration that only the user can read, outside of the store and its
// copies. The file contains only a hash of each token's secret.
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
	// ErrRefused is returned for a secret that belongs to no token, or to an expired one.
	ErrRefused = errors.New("no valid token")
	// ErrDamaged is returned if the file is not one of this package.
	ErrDamaged = errors.New("not a file of tokens")
)

const (
	// MaxTokens limits the tokens of a store.
	MaxTokens = 1000
	// maxText limits the name of a token, and each user and project of its scope, in bytes.
	maxText = 4096
	// maxScope limits the users and projects of a token.
	maxScope = 100
	// maxFile limits the size of the file, in bytes.
	maxFile = 16 << 20
	version = 1
	// prefix is at the start of each secret, so that scanners recognise it.
	prefix = "lineage_"
)

// lockTimeout limits how long a change waits for another process. Tests change it.
var lockTimeout = 5 * time.Second

// Token describes the rights of a program that has the secret.
type Token struct {
	// ID identifies the token for people.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Writes is set if the program may change the store.
	Writes bool  `json:"writes,omitempty"`
	Scope  Scope `json:"scope,omitzero"`
	// Created and Expires are its start and end. A zero Expires means no end.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// Scope restricts a token to a part of the store. The zero scope is the whole store.
type Scope struct {
	// Users are users of threads. Projects are the folders in which sessions began. If both are set, a thread must
	// belong to one of the users and to one of the projects.
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

// Check returns ErrNotFound for a thread that is not in the scope.
func (s *Scope) Check(ctx context.Context, t *lineage.Thread) error {
	if s.All() {
		return nil
	}
	info, err := t.Info(ctx)
	if err == nil && !s.Allows(&info) {
		err = fmt.Errorf("thread %q: %w", t.ID(), lineage.ErrNotFound)
	}
	return err
}

// projectOf returns the folder in which the session of a thread began, empty if unknown.
func projectOf(t *lineage.ThreadInfo) (project string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(t.Metadata, &members) != nil || json.Unmarshal(members[archive.KeyProject], &project) != nil {
		return ""
	}
	return project
}

// Valid reports whether the token has not expired.
func (t *Token) Valid(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// check returns an error if a token cannot be stored.
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

// storedToken is a token in the file.
type storedToken struct {
	Token
	// Hash is the SHA-256 of the secret. The secret is random.
	Hash string `json:"hash"`
}

type content struct {
	Version int           `json:"version"`
	Host    string        `json:"host"`
	Tokens  []storedToken `json:"tokens"`
}

// File is the access file of a store. It is safe for concurrent use, also by several processes.
type File struct {
	path string

	mu   sync.Mutex
	read content     // content as last read
	info os.FileInfo // the file that it was read from; nil if there was none
}

// Open returns the access file of a store below a folder for configuration, such as os.UserConfigDir. The file need
// not exist.
func Open(config string, store structure.StoreID) *File {
	return &File{path: filepath.Join(config, "lineage", "access", store.String()+".json")}
}

// Host returns the host name of the store's page. It is a random name below localhost that never changes.
func (f *File) Host(ctx context.Context) (string, error) {
	c, err := f.load()
	if err == nil && c.Host == "" {
		err = f.change(ctx, func(tokens *content) error {
			c = *tokens
			return nil
		})
	}
	return c.Host, err
}

// Create adds a token with a new id and the current time. It returns the token with its secret, which is not stored
// anywhere.
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
		c.Tokens = append(c.Tokens, storedToken{t, hash(secret)})
		return nil
	})
	return t, secret, err
}

// List returns the tokens, oldest first, including expired ones.
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
		left := slices.DeleteFunc(slices.Clone(c.Tokens), func(k storedToken) bool { return k.ID == id })
		if len(left) == len(c.Tokens) {
			return fmt.Errorf("token %s: %w", id, lineage.ErrNotFound)
		}
		c.Tokens = left
		return nil
	})
}

// Check returns the token with a secret. A token is refused as soon as another process has deleted it.
func (f *File) Check(secret string, now time.Time) (Token, error) {
	c, err := f.load()
	if err != nil {
		return Token{}, err
	}
	sum, found := []byte(hash(secret)), -1
	for i := range c.Tokens {
		if subtle.ConstantTimeCompare(sum, []byte(c.Tokens[i].Hash)) == 1 {
			found = i
		}
	}
	if found < 0 || !c.Tokens[found].Valid(now) {
		return Token{}, ErrRefused
	}
	return c.Tokens[found].Token, nil
}

// load returns the content of the file. Each change replaces the file, so a file that is still the same is not read
// again.
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
	d.DisallowUnknownFields() // a newer program may restrict tokens in unknown ways
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

// change applies a function to the content and replaces the file. No other process can change it in between.
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

// replace writes new content to a file, completely or not at all. Only its owner can read it.
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

// lock locks a file, creating it if necessary.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	l, err := vfs.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		if err = vfs.TryLock(l, vfs.Exclusive); err == nil {
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

// random returns n random bytes as text for a URL.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
