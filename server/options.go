package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// DefaultListen is the address that is tried first. Ports is the number of ports from there on that are tried before
// any free one is used.
const (
	DefaultListen = "127.0.0.1:7411"
	Ports         = 20
)

// Options configure a server. Store and Access are required.
type Options struct {
	Store *lineage.Store
	// Access has the tokens and the host name of the page.
	Access *access.File
	// Routes are those of the page and the API. Without routes of the page there are no sessions.
	Routes []Route
	// Listen is the address. Default: DefaultListen, or a free port near it. An address that other machines can reach
	// needs TLS or Plain.
	Listen string
	TLS    *tls.Config
	Plain  bool
	// ReadOnly refuses requests that change the store.
	ReadOnly bool
	// Origins are the origins whose pages may call with a token, such as "https://example.org".
	Origins []string
	// Runtime is the directory for the socket and for the file by which Find finds the server. Only this user can
	// read both. If it is empty, there is neither.
	Runtime string
	// Name is the name of the store for people. It is written to the file in Runtime.
	Name string
	// Ready, when not nil, returns the reason why the store cannot be used, for /readyz.
	Ready func() error
	// Logger gets a record of each request. Default none.
	Logger *slog.Logger
	Limits Limits
	// now is the clock; for tests.
	now func() time.Time
}

// Limits keep the server usable for others when one caller is slow or asks for much. Zero values mean the defaults.
type Limits struct {
	// Header and Body limit the time in which a request must arrive. Write limits the time to send a part of an
	// answer. Idle limits how long a connection without requests is kept.
	Header, Body, Write, Idle time.Duration
	// Heartbeat is the interval of heartbeats on a stream of events.
	Heartbeat time.Duration
	// Connections, Requests and Streams are the maximum numbers at once. Streams of events do not count as requests.
	Connections, Requests, Streams int
	// BodySize is the maximum size of a request's body, in bytes.
	BodySize int64
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&l.Header, 10*time.Second)
	set(&l.Body, 30*time.Second)
	set(&l.Write, 30*time.Second)
	set(&l.Idle, 2*time.Minute)
	set(&l.Heartbeat, 15*time.Second)
	count := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	count(&l.Connections, 2048)
	count(&l.Requests, 256)
	count(&l.Streams, 1024)
	if l.BodySize == 0 {
		l.BodySize = 1 << 20
	}
	return l
}

// headerSize limits the header of a request, in bytes.
const headerSize = 16 << 10

func (o Options) withDefaults() (Options, error) {
	if o.Store == nil || o.Access == nil {
		return o, errors.New("server: no store or no access file")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	o.Limits = o.Limits.withDefaults()
	for _, origin := range o.Origins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || origin != u.Scheme+"://"+u.Host {
			return o, fmt.Errorf("origin %q: %w: must be like https://example.org", origin, lineage.ErrInvalid)
		}
	}
	if o.Listen != "" {
		host, _, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return o, fmt.Errorf("listen %q: %w: must be like %s", o.Listen, lineage.ErrInvalid, DefaultListen)
		}
		if !loopback(host) && o.TLS == nil && !o.Plain {
			return o, fmt.Errorf("listen %q: %w", o.Listen, ErrNeedsTLS)
		}
	}
	return o, nil
}

// ErrNeedsTLS is returned for an address that other machines can reach, if there is no TLS.
var ErrNeedsTLS = errors.New("other machines reach this address, and without TLS everybody between can read what is sent")

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// certificateNames returns the names that the certificates are valid for.
func certificateNames(c *tls.Config) (names []string) {
	if c == nil {
		return nil
	}
	for i := range c.Certificates {
		if leaf := c.Certificates[i].Leaf; leaf != nil {
			for _, name := range leaf.DNSNames {
				if !strings.Contains(name, "*") {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
