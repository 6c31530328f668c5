package vfs

import (
	"errors"
	"os"
)

// ReadMapped is not supported here.
func ReadMapped(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

// Unmap is for the result of ReadMapped.
func Unmap([]byte) error { return errors.ErrUnsupported }
