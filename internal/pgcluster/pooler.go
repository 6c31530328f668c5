package pgcluster

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// poolerPort is only part of the socket's name.
const poolerPort = 6432

// StartPooler starts PgBouncer in front of the server, in transaction mode: each transaction may get another
// connection. It ends with the cluster.
func (c *Cluster) StartPooler() error {
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin = "/usr/sbin/pgbouncer"; !isExecutable(bin) {
			return errors.New("pgbouncer is not installed")
		}
	}
	owner, err := ownerOfClusters()
	if err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(c.dir, name) }
	config := fmt.Sprintf(`[databases]
* = host=%[1]s port=%[2]d user=%[3]s
[pgbouncer]
listen_addr =
listen_port = %[4]d
unix_socket_dir = %[1]s
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
logfile = %[5]s
pidfile = %[6]s
`, c.dir, c.port, role, poolerPort, file("pooler.log"), file(poolerFile))
	if err := os.WriteFile(file("pooler.ini"), []byte(config), 0o644); err != nil {
		return err
	}
	cmd := exec.Command(bin, "-q", file("pooler.ini"))
	cmd.Dir = c.dir
	detach(cmd)
	owner.runs(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return await(c.PooledDSN("postgres"), file("pooler.log"), ended)
}

// PooledDSN is the DSN through the pooler. Connections must not prepare statements: other transactions would not find
// them.
func (c *Cluster) PooledDSN(database string) string {
	query := url.Values{"host": {c.dir}, "port": {strconv.Itoa(poolerPort)}, "sslmode": {"disable"}, "default_query_exec_mode": {"exec"}}
	return "postgres://" + role + "@/" + database + "?" + query.Encode()
}
