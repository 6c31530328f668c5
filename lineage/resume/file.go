package resume

import (
	"bytes"
	"os"
	"path"
)

// extraFile is an additional file of a session.
type extraFile struct {
	path    string
	content []byte
}

// exclusive writes a file that must not exist yet.
func (f extraFile) exclusive(root *os.Root) error {
	if err := root.MkdirAll(path.Dir(f.path), 0o700); err != nil {
		return err
	}
	to, err := root.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = to.ReadFrom(bytes.NewReader(f.content))
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}
