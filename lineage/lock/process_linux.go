package lock

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// probe looks up a process.
func probe(pid int) process {
	if !exists(pid) {
		return process{}
	}
	if !procIsOurs() {
		return process{running: true}
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{running: true}
	}
	return parseStat(stat)
}

// parseStat parses /proc/<pid>/stat. Field 2 is the program's name in parentheses, which may
// contain anything. The state is field 3, the number of threads 20, the start time in clock ticks
// since boot 22.
func parseStat(stat []byte) process {
	const state, threads, started = 0, 17, 19 // as counted from field 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= started {
		return process{running: true}
	}
	// A zombie has ended, unless only its first thread has.
	switch string(fields[state]) {
	case "Z", "X", "x":
		if string(fields[threads]) <= "1" {
			return process{}
		}
	}
	return process{running: true, started: string(fields[started])}
}

// procIsOurs reports whether /proc has the same pids as system calls. A container may have the
// host's /proc, or none.
func procIsOurs() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// processScope returns the boot, the pid namespace and the time namespace, to which start times
// refer.
func processScope() string {
	if !procIsOurs() {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	clock, _ := os.Readlink("/proc/self/ns/time") // since Linux 5.6
	return strings.TrimSpace(string(boot)) + " " + pids + " " + clock
}
