// Package pgcluster starts a private PostgreSQL server from the installed binaries: in a directory of its own,
// listening only on a socket in it. It ends with the process, however that ends.
package pgcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// role is the superuser of the cluster.
const role = "lineage"

// Options configure a cluster. The zero value of each field is its default.
type Options struct {
	// Dir is the directory for the cluster's own directory, if the server's account can use it and its path is short
	// enough for a socket. Default: the system's temporary directory.
	Dir string
	// Settings are settings of the server, as "name=value".
	Settings []string
}

// A Cluster is a running server. Keep a reference to it while it is used: it ends when it is garbage collected.
type Cluster struct {
	dir  string // has all files of the cluster, including its socket
	port int
	// leash is open as long as this process lives. The keeper has the other end, and ends the cluster when this one
	// closes.
	leash  *os.File
	keeper *exec.Cmd

	bin      string
	owner    *account
	settings []string
	server   *exec.Cmd
	ended    chan error // receives the error that the server ended with
}

// patience is the time limit for an answer of a server.
const patience = 5 * time.Minute

// keeper waits for the end of its input, then stops the server and its pooler and removes the directory.
// postmaster.pid exists as long as the server runs.
const keeper = `
cat >/dev/null
pid=$(head -n 1 "$1/` + poolerFile + `" 2>/dev/null) && kill -KILL "$pid" 2>/dev/null
pidfile="$1/data/postmaster.pid"
for signal in INT QUIT KILL; do
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    pid=$(head -n 1 "$pidfile" 2>/dev/null) || break 2
    [ $i -gt 1 ] || kill -$signal "$pid" 2>/dev/null || break 2
    sleep 0.2
  done
done
rm -rf "$1"
`

// Start creates and starts a cluster.
func Start(o Options) (*Cluster, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("a cluster is started on Unix only")
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	owner, err := ownerOfClusters()
	if err != nil {
		return nil, err
	}
	dir, err := directory(owner, o.Dir)
	if err != nil {
		return nil, err
	}
	// The port is only part of the socket's name.
	c := &Cluster{dir: dir, port: 5432, bin: bin, owner: owner, settings: o.Settings}
	return c.begin(c.initdb)
}

// begin creates the data of a cluster and starts it.
func (c *Cluster) begin(data func() error) (*Cluster, error) {
	if err := c.keep(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	err := data()
	if err == nil {
		err = c.Run()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Standby creates a cluster that follows this one, with a name for synchronous_standby_names.
func (c *Cluster) Standby(name string, settings ...string) (*Cluster, error) {
	dir, err := directory(c.owner, filepath.Dir(c.dir))
	if err != nil {
		return nil, err
	}
	s := &Cluster{dir: dir, port: c.port, bin: c.bin, owner: c.owner, settings: append(slices.Clone(c.settings), settings...)}
	return s.begin(func() error {
		return s.command("pg_basebackup", "--pgdata", s.data(), "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
			"--dbname", fmt.Sprintf("host=%s port=%d user=%s application_name=%s", c.dir, c.port, role, name))
	})
}

// Stop stops the server. With atOnce it stops as in a crash.
func (c *Cluster) Stop(atOnce bool) error {
	signal := syscall.SIGINT
	if atOnce {
		signal = syscall.SIGQUIT
	}
	if err := c.server.Process.Signal(signal); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(patience):
		return errors.New("the server does not stop")
	}
}

// Close ends the server and removes its files.
func (c *Cluster) Close() error {
	return errors.Join(c.leash.Close(), c.keeper.Wait())
}

// Dir returns the directory with all files of the cluster.
func (c *Cluster) Dir() string { return c.dir }

// binaries returns the directory with initdb and postgres: those in the path, or else the newest installed version.
func binaries() (string, error) {
	var candidates []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved
		}
		candidates = append(candidates, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	var installed []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		installed = append(installed, found...)
	}
	slices.SortFunc(installed, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range append(candidates, installed...) {
		if isExecutable(filepath.Join(dir, "initdb")) && isExecutable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("no initdb and postgres are installed")
}

// version returns the number in the path of an installation, or 0.
func version(dir string) int {
	name := filepath.Base(filepath.Dir(dir))
	n, _ := strconv.Atoi(name[strings.LastIndexAny(name, "-@")+1:])
	return n
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// directory creates a directory for the owner, which the owner can enter and whose path is short enough for a socket.
func directory(owner *account, first string) (string, error) {
	var reasons []error
	for _, parent := range slices.Compact([]string{cmp.Or(first, os.TempDir()), os.TempDir(), "/tmp", "/var/tmp"}) {
		dir, err := os.MkdirTemp(parent, "lineage-pg-")
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		if err = owner.takes(dir); err == nil && len(dir) > 80 {
			err = fmt.Errorf("the path of %s is too long for a socket in it", dir)
		}
		if err == nil {
			return dir, nil
		}
		reasons = append(reasons, err, os.RemoveAll(dir))
	}
	return "", errors.Join(reasons...)
}

// keep starts the keeper.
func (c *Cluster) keep() error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd := exec.Command("/bin/sh", "-c", keeper, "sh", c.dir)
	cmd.Stdin = theirs
	detach(cmd)
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return err
	}
	c.leash, c.keeper = ours, cmd
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// command runs a command of the installation and waits for it.
func (c *Cluster) command(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	c.owner.runs(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (c *Cluster) initdb() error {
	args := []string{"--pgdata", c.data(), "--username", role, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync"}
	if version(c.bin) != 0 && version(c.bin) < 14 {
		args = args[:len(args)-1]
	}
	return c.command("initdb", args...)
}

// Run starts the stopped server.
func (c *Cluster) Run() error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	postgres := exec.Command(filepath.Join(c.bin, "postgres"), "-D", c.data(), "-k", c.dir, "-p", strconv.Itoa(c.port), "-c", "listen_addresses=")
	for _, setting := range c.settings {
		postgres.Args = append(postgres.Args, "-c", setting)
	}
	postgres.Dir, postgres.Stdout, postgres.Stderr = c.dir, log, log
	detach(postgres)
	c.owner.runs(postgres)
	if err := postgres.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	c.server, c.ended = postgres, ended
	go func() { ended <- postgres.Wait() }()
	return await(c.DSN("postgres"), log.Name(), ended)
}

// DSN returns the connection string of a database of the cluster. "postgres" always exists.
func (c *Cluster) DSN(database string) string {
	query := url.Values{"host": {c.dir}, "port": {strconv.Itoa(c.port)}, "sslmode": {"disable"}}
	return "postgres://" + role + "@/" + database + "?" + query.Encode()
}

// FailoverDSN is the DSN for whichever of two clusters is writable.
func (c *Cluster) FailoverDSN(other *Cluster, database string) string {
	port := strconv.Itoa(c.port)
	query := url.Values{"host": {c.dir + "," + other.dir}, "port": {port + "," + port}, "sslmode": {"disable"}, "target_session_attrs": {"read-write"}}
	return "postgres://" + role + "@/" + database + "?" + query.Encode()
}

// poolerFile is the file with the pooler's process id, for the keeper.
const poolerFile = "pooler.pid"

// await returns when a server answers, or with an error when it has ended.
func await(dsn, log string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			output, _ := os.ReadFile(log)
			return fmt.Errorf("the server does not answer: %w: %s", err, output)
		case err := <-ended:
			output, _ := os.ReadFile(log)
			return fmt.Errorf("the server does not start: %w: %s", err, output)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
