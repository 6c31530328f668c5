package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// holder returns a process that has a lock on a file, and its command line. Readers write
// nothing to the file, so /proc is read. The process is 0 if unknown.
func holder(f *os.File) (pid int, command string) {
	info, err := f.Stat()
	if err != nil {
		return 0, ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, ""
	}
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		// Example: 1: FLOCK ADVISORY READ 1234 fd:01:5678 0 EOF
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], inode) {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		if err == nil && pid > 0 && hasOpen(pid, info) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty if it just ended
			return pid, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return 0, ""
}

// hasOpen reports whether a process has a file open. The inode number alone does not tell, because other devices may
// have files with the same number.
func hasOpen(pid int, file os.FileInfo) bool {
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, name := range open {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}
