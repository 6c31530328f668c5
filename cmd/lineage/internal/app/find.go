package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
)

// StoreDir is the name of the directory that is searched for.
const StoreDir = ".lineage"

// MustExist and MayBeNew are arguments of functions that find a store.
const (
	MustExist = false
	MayBeNew  = true
)

// FindStore returns the name of the store: its directory, which is the named one, the nearest or else the user's, or its URL.
// With create, a directory that does not exist is returned too.
func (a *App) FindStore(create bool) (string, error) {
	if named := a.NamedStore(); named != "" {
		return StoreNamed(named, create)
	}
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		if below := filepath.Join(at, StoreDir); IsStore(below) {
			return a.near(below), nil
		}
		if IsStore(at) {
			return a.near(at), nil
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	none := fmt.Errorf("store: %w in %s or a folder above it", lineage.ErrNotFound, start)
	home, err := os.UserHomeDir()
	if err != nil {
		return "", Hint(none, "'lineage init' makes one here; --store and LINEAGE_STORE name one elsewhere")
	}
	own := filepath.Join(home, StoreDir)
	if IsStore(own) {
		return own, nil
	}
	if err := unreadable(own); err != nil {
		return "", err
	}
	if create {
		return own, NotAFile(own)
	}
	return "", Hint(none, "'lineage follow --once' makes one in %s, of the sessions of this machine's agents; 'lineage init' makes an empty one for this folder", own)
}

// near returns a store that is near the current folder. If the user has another one, what is not found in this store may be there.
func (a *App) near(store string) string {
	if home, err := os.UserHomeDir(); err == nil {
		if own := filepath.Join(home, StoreDir); IsStore(own) && !sameFile(own, store) {
			a.elsewhere = fmt.Sprintf("the store is that of this folder, %s; --store %s names the one in the home directory", store, own)
		}
	}
	return store
}

func sameFile(one, other string) bool {
	a, err := os.Stat(one)
	b, errOther := os.Stat(other)
	return err == nil && errOther == nil && os.SameFile(a, b)
}

// StoreNamed is like FindStore, for a named store.
func StoreNamed(dir string, create bool) (string, error) {
	if IsServed(dir) {
		return dir, nil
	}
	if IsDSN(dir) {
		return "", Hint(Usagef("%s: this command needs a store, not a database of chats", Redact(dir)),
			"'lineage thread', 'log', 'show', 'tree', 'append', 'branch', 'switch', 'checkpoint', 'restore-checkpoint', 'rewind', 'delete' and 'search' work on databases too")
	}
	if err := NotAFile(dir); err != nil {
		return "", err
	}
	isStore, err := embedded.IsStore(dir)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", dir, err)
	}
	if isStore || create {
		return dir, nil
	}
	if err := unreadable(dir); err != nil {
		return "", err
	}
	// The name may be of a folder that contains the store.
	if below := filepath.Join(dir, StoreDir); IsStore(below) {
		return below, nil
	}
	return "", Hint(fmt.Errorf("store %s: %w", dir, lineage.ErrNotFound), "'lineage init %s' makes one", dir)
}

// unreadable returns an error if a directory may be a store that this user may not read.
func unreadable(dir string) error {
	if _, err := os.ReadDir(filepath.Join(dir, "journal")); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("store %s: %w", dir, err)
	}
	return nil
}

// ShownStore returns the name of a store for people and programs: its full directory, or its URL without a password.
func ShownStore(named string) string {
	if IsServed(named) {
		return Redact(named)
	}
	if full, err := filepath.Abs(named); err == nil {
		return full
	}
	return named
}

// StoreForFile returns the full name of the store, to be written into a file. A URL with a password is refused.
func (a *App) StoreForFile(create bool) (string, error) {
	named, err := a.FindStore(create)
	if err != nil {
		return "", err
	}
	shown := ShownStore(named)
	if IsServed(named) && shown != named {
		return "", Hint(Usagef("store %s: its URL has a password, which would be written into a file", shown), "keep it in a password file, such as ~/.pgpass")
	}
	return shown, nil
}

// NotAFile returns an error if a file has the name of the store.
func NotAFile(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Hint(Usagef("store %s: it is not a directory", dir), "a store is a directory that 'lineage init DIR' creates")
	}
	return nil
}

// IsStore reports whether a directory looks like a store.
func IsStore(dir string) bool {
	isStore, _ := embedded.IsStore(dir)
	return isStore
}
