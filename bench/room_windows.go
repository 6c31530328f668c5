package bench

import "golang.org/x/sys/windows"

// freeBytes returns how many bytes can be written to the disk that a directory is on.
func freeBytes(dir string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}
