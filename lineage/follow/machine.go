package follow

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
)

// Machine identifies the machine, and the user on it, whose files are followed.
type Machine struct {
	// ID is random. The states of files are stored under it.
	ID string
	// Name is the machine's name for people. It is in the metadata of threads.
	Name string
	// Secret proves that this machine recorded a session file: see [Source.IsOf]. It is never stored in a store.
	// Without it nothing can be proven.
	Secret string
}

// Machine returns this machine. Its id and secret are in files of the user's configuration, which are created on
// first use and readable by the user only.
func (e *Environment) Machine() (Machine, error) {
	id, err := randomIn(filepath.Join(e.config(), "lineage", "machine"), machineSize)
	if err != nil {
		return Machine{}, err
	}
	secret, err := randomIn(filepath.Join(e.config(), "lineage", "secret"), secretSize)
	if err != nil {
		return Machine{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return Machine{}, fmt.Errorf("machine: %w", err)
	}
	return Machine{ID: id, Secret: secret, Name: strings.ToValidUTF8(name, "\uFFFD")}, nil
}

// Sizes of the id of a machine and of its secret in bytes.
const (
	machineSize = 16
	secretSize  = 32
)

// randomIn returns the random number in a file. It creates the file if necessary.
func randomIn(file string, size int) (string, error) {
	number, err := readRandom(file, size)
	if !errors.Is(err, fs.ErrNotExist) {
		return number, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	// The file gets its name once it is complete, unless another process was first.
	random := make([]byte, size)
	rand.Read(random)                                                     // never fails
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-*") // for the user only
	if err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintln(f, hex.EncodeToString(random))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	if err := os.Link(f.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("machine: %w", err)
	}
	return readRandom(file, size)
}

func readRandom(file string, size int) (string, error) {
	b, err := vfs.ReadFile(file, 1024)
	if err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	number := strings.TrimSpace(string(b))
	if raw, err := hex.DecodeString(number); err != nil || len(raw) != size {
		return "", fmt.Errorf("machine: %s has no number of %d hexadecimal digits: %w", file, 2*size, lineage.ErrInvalid)
	}
	return number, nil
}
