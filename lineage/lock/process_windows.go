package lock

import (
	"errors"
	"strconv"

	"golang.org/x/sys/windows"
)

// stillActive is the exit code of a running process.
const stillActive = 259

// probe looks up a process.
func probe(pid int) process {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return process{}
	}
	if err != nil {
		return process{running: true}
	}
	defer windows.CloseHandle(handle)

	// A process that has ended still exists while another one has a handle to it.
	var code uint32
	if err := windows.GetExitCodeProcess(handle, &code); err == nil && code != stillActive {
		return process{}
	}
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &user); err != nil {
		return process{running: true}
	}
	return process{running: true, started: strconv.FormatInt(created.Nanoseconds(), 10)}
}

// processScope is empty: start times are absolute and so differ between boots.
func processScope() string { return "" }
