//go:build unix

package pgcluster

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that the server runs as; nil for the user of this process. PostgreSQL refuses to run as root.
type account struct{ uid, gid int }

// ownerOfClusters returns the user that the server will run as.
func ownerOfClusters() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, err
		}
		return &account{uid, gid}, nil
	}
	return nil, fmt.Errorf("root cannot run postgres, and there is no user postgres or nobody to do so")
}

// takes makes the account the owner of a directory, and checks that it can enter it.
func (a *account) takes(dir string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(dir, a.uid, a.gid); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", `cd "$1" && : >probe && rm probe`, "sh", dir)
	a.runs(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("user %d cannot use %s: %w: %s", a.uid, dir, err, out)
	}
	return nil
}

// runs makes a command run as the account.
func (a *account) runs(cmd *exec.Cmd) {
	if a == nil {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}

// detach protects a command from signals that are meant for this process.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
