//go:build !windows

package index

import "os"

// mapSize64 is the least size on 64-bit systems: address space, not memory.
const mapSize64 = 256 << 30

// fillsMap reports whether an open file is as large as what is mapped of it.
const fillsMap = false

// replaceFile gives the name of an open file to another open file.
func replaceFile(fresh, name string) (aside string, err error) { return "", os.Rename(fresh, name) }

func prepareFile(*os.File) error { return nil }

func removeAside(string) error { return nil }
