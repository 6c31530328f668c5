//go:build unix

package server

import (
	"os/exec"
	"syscall"
)

// asUser makes a command run as another user.
func asUser(c *exec.Cmd, user uint32) {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
}
