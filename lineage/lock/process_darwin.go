package lock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// stateZombie is SZOMB in <sys/proc.h>: the process has ended, but its parent has not waited for
// it.
const stateZombie = 5

// probe looks up a process.
func probe(pid int) process {
	if !exists(pid) {
		return process{}
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return process{running: true}
	}
	if info.Proc.P_stat == stateZombie {
		return process{}
	}
	started := info.Proc.P_starttime
	return process{running: true, started: fmt.Sprintf("%d.%06d", started.Sec, started.Usec)}
}

// processScope returns the boot session.
func processScope() string {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return boot
}
