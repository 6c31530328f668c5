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

// Machine is the machine, and on it the user, whose files are followed.
type Machine struct {
	// ID is random. What is known of files belongs to it.
	ID string
	// Name is the name of the machine for people: the metadata of threads has it.
	Name string
}

// Machine returns this machine. Its id is in a file of the user's configuration, which is created the
// first time.
func (e *Environment) Machine() (Machine, error) {
	id, err := machineID(filepath.Join(e.config(), "lineage", "machine"))
	if err != nil {
		return Machine{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return Machine{}, fmt.Errorf("machine: %w", err)
	}
	return Machine{ID: id, Name: strings.ToValidUTF8(name, "\uFFFD")}, nil
}

// machineSize is the size of a machine's id in bytes.
const machineSize = 16

// machineID returns the id in a file, and creates the file if it does not exist.
func machineID(file string) (string, error) {
	id, err := readMachineID(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	// The file gets its name when it is complete, and only if no other process was first.
	var random [machineSize]byte
	rand.Read(random[:]) // never fails
	f, err := os.CreateTemp(filepath.Dir(file), "machine-*")
	if err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintln(f, hex.EncodeToString(random[:]))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	if err := os.Link(f.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("machine: %w", err)
	}
	return readMachineID(file)
}

func readMachineID(file string) (string, error) {
	b, err := vfs.ReadFile(file, 1024)
	if err != nil {
		return "", fmt.Errorf("machine: %w", err)
	}
	id := strings.TrimSpace(string(b))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != machineSize {
		return "", fmt.Errorf("machine: %s has no id of %d hexadecimal digits: %w", file, 2*machineSize, lineage.ErrInvalid)
	}
	return id, nil
}
