// Package serving has the commands that serve a store over HTTP.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/sources"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/mcp"
)

type serveOptions struct {
	idle               time.Duration
	listen, cert, key  string
	plain, readOnly    bool
	open, link         bool
	alone, log, follow bool
	origins            []string
	mcpWrite           []string
}

func ServeCommand(a *app.App) *cobra.Command {
	o := &serveOptions{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Keep a store open, and show it as a page",
		Long: `Keeps a store open for the other processes of this user on this machine, and shows it as a page in
the browser: conversations while they run, their graphs, search, and what they cost. It prints a
link that opens the page once and within a minute; --link prints another one of a server that runs,
and --open opens the browser. It runs until ctrl-C or SIGTERM stops it, or with --idle until nobody
has used it for some time. A store that another process has open is served as well.

It listens on 127.0.0.1:7411, or the next port that is free, and on a socket for this user. Programs
call the API there, and agents /mcp: 'lineage token create' makes a token for one. --follow keeps the
sessions of the agents on this machine up to date meanwhile, as 'lineage follow' does; it also creates
the store if there is none.

--listen with an address that other machines reach needs a certificate, or --plain, with which
everybody between can read what is sent.`,
		Example: `  lineage serve --idle 100ms
  lineage serve --idle 100ms --read-only --listen 127.0.0.1:0`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(ctx context.Context, _ []string) error { return runServe(ctx, a, o) }),
	}
	f := c.Flags()
	f.DurationVar(&o.idle, "idle", 0, "end after this time without another process or a request; 0 is never")
	f.BoolVar(&o.open, "open", false, "open the page in the browser")
	f.BoolVar(&o.link, "link", false, "print a new link of a server of this store that runs, and end")
	f.StringVar(&o.listen, "listen", "", "the address to listen on (default "+server.DefaultListen+" or the next free port)")
	f.StringVar(&o.cert, "tls-cert", "", "the file of the certificate, for TLS")
	f.StringVar(&o.key, "tls-key", "", "the file of the certificate's key")
	f.BoolVar(&o.plain, "plain", false, "listen without TLS, although other machines reach the address")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse requests that change the store")
	f.BoolVar(&o.follow, "follow", false, "follow the agents on this machine as well")
	f.BoolVar(&o.alone, "no-http", false, "keep the store open for processes of this user only")
	f.StringArrayVar(&o.origins, "allow-origin", nil, "let pages of this origin call with a token")
	f.StringSliceVar(&o.mcpWrite, "mcp-write", nil, "let agents call these tools that change the store, with a token that may: see 'lineage mcp'")
	f.BoolVar(&o.log, "log", false, "log each request on standard error, as JSON")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	for _, other := range []string{"listen", "tls-cert", "plain", "read-only", "allow-origin", "mcp-write", "log"} {
		c.MarkFlagsMutuallyExclusive("no-http", other)
		c.MarkFlagsMutuallyExclusive("link", other)
	}
	for _, other := range []string{"idle", "follow", "no-http"} {
		c.MarkFlagsMutuallyExclusive("link", other)
	}
	c.MarkFlagsMutuallyExclusive("no-http", "open")
	c.MarkFlagsMutuallyExclusive("read-only", "mcp-write")
	c.MarkFlagsMutuallyExclusive("read-only", "follow")
	return c
}

// options returns the server's options from the flags.
func (o *serveOptions) options() (server.Options, error) {
	s := server.Options{Listen: o.listen, Plain: o.plain, ReadOnly: o.readOnly, Origins: o.origins}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return s, fmt.Errorf("certificate %s: %w", o.cert, err)
		}
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	return s, nil
}

func runServe(ctx context.Context, a *app.App, o *serveOptions) error {
	if o.idle < 0 {
		return app.Usagef("--idle: must be 0 or more")
	}
	if err := mcp.CheckWrites(o.mcpWrite); err != nil {
		return app.Usagef("--mcp-write: %w", err)
	}
	dir, err := a.FindStore(o.follow)
	if err != nil {
		return err
	}
	if o.alone && app.IsServed(dir) {
		return app.Usagef("%s: the server keeps this store open", app.Redact(dir))
	}
	if o.link {
		return printLink(ctx, a, o.open)
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	mode := app.NoThread
	if o.follow {
		mode |= app.Create
	}
	if o.readOnly {
		mode |= app.Reading // a store that cannot be written is shown, too
	}
	opened := false
	err = a.Open(ctx, mode, func(ctx context.Context, s *app.OpenStore) error {
		opened = true
		alive := func() error { return nil }
		if !app.IsServed(dir) {
			alive = func() error { return stillThere(dir) }
		}
		if o.alone {
			return followAndServe(ctx, s, o, nil, alive)
		}
		options.Ready = alive
		return serveHTTP(ctx, s, o, options)
	})
	if app.Stopped(ctx, err) {
		a.Note("stopped serving")
		return nil
	}
	if !opened && !o.readOnly && vfs.IsUnwritable(err) {
		err = app.Hint(err, "--read-only shows a store that cannot be written")
	}
	return err
}

// serveHTTP serves the store to other processes and over HTTP.
func serveHTTP(ctx context.Context, s *app.OpenStore, o *serveOptions, options server.Options) (err error) {
	indexes := &sharedIndexes{store: s.Store, dir: s.Dir, counts: o.follow}
	defer func() { err = errors.Join(err, indexes.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	http, err := listen(ctx, s, o, options, indexes)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, http.Close(ctx))
	}()
	return followAndServe(ctx, s, o, http, options.Ready)
}

// followAndServe serves the store, and follows agents meanwhile if that was asked for. http is nil for other processes only.
func followAndServe(ctx context.Context, s *app.OpenStore, o *serveOptions, http *server.Server, alive func() error) error {
	s.Note("serving %s", screen.Line(s.Name))
	if !o.follow {
		return serve(ctx, s, o, http, alive)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	followed, err := followBeside(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		<-followed
	}()
	return serve(ctx, s, o, http, alive)
}

// stillThere returns an error if the directory of a store is gone.
func stillThere(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "journal")); err != nil {
		return fmt.Errorf("store %s: it was removed or cannot be read: %w", dir, err)
	}
	return nil
}

// listen starts the HTTP server and prints its address.
func listen(ctx context.Context, s *app.OpenStore, o *serveOptions, options server.Options, indexes *sharedIndexes) (*server.Server, error) {
	tokens, err := tokens(s)
	if err != nil {
		return nil, err
	}
	if options.Runtime, err = server.RuntimeDir(); err != nil {
		s.Warn("no socket: %v", err)
	}
	options.Store, options.Access, options.Name = s.Store, tokens, s.Name
	options.Logger = logline.New(slog.LevelWarn, func(line string) { s.Warn("%s", line) })
	if o.log {
		options.Logger = slog.New(slog.NewJSONHandler(s.Err.W, nil))
	}
	if options.Routes, err = pageRoutes(s, o.readOnly, options.Logger, indexes); err != nil {
		return nil, err
	}
	options.Routes = append(options.Routes, apiRoutes(s, options.Logger, indexes)...)
	options.Routes = append(options.Routes, mcpRoute(s, options.Logger, indexes, o.mcpWrite))
	http, err := server.Open(ctx, options)
	if errors.Is(err, server.ErrNeedsTLS) {
		err = app.Hint(&app.UsageError{Err: err}, "--tls-cert and --tls-key name a certificate; --plain does without")
	}
	if err != nil {
		return nil, err
	}
	if o.plain && options.TLS == nil {
		s.Warn("%s: without TLS everybody between can read what is sent, tokens too", http.Addr())
	}
	r := &records.Serving{Store: s.Name, URL: http.URL(), Link: http.Link(), ReadOnly: o.readOnly}
	if o.open {
		if err := openBrowser(options.Runtime, http.Link()); err != nil {
			s.Warn("the browser was not opened: %v", err)
		}
	}
	return http, errors.Join(s.Print(r, "%s\n", r.Link), s.Flush())
}

// tokens returns the file of tokens of the store.
func tokens(s *app.OpenStore) (*access.File, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return nil, app.Hint(err, "tokens are kept in the folder of the user's configuration")
	}
	return access.Open(config, s.Store.ID()), nil
}

// followBeside follows agents until the context ends. An error is reported.
func followBeside(ctx context.Context, s *app.OpenStore) (done <-chan struct{}, err error) {
	environment, machine, err := s.Machine()
	if err != nil {
		return nil, err
	}
	choice, err := follow.Remembered(ctx, s.Store, machine)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Nothing else is printed in the meantime.
		err := sources.Follow(ctx, s, follow.Options{Environment: environment, Machine: machine, Formats: sources.Formats(), Choice: choice})
		if err != nil && ctx.Err() == nil {
			s.Warn("following ended: %v", err)
		}
	}()
	return ended, nil
}

const (
	// looksWhileIdle is the number of checks for other processes within the time after which an idle server ends.
	looksWhileIdle = 10
	// looksAtStore is the interval of checks that the store still exists.
	looksAtStore = 10 * time.Second
)

// serve waits until it is interrupted, the store is gone, or the server was idle for some time.
func serve(ctx context.Context, s *app.OpenStore, o *serveOptions, http *server.Server, alive func() error) error {
	var failed <-chan error
	if http != nil {
		failed = http.Failed()
	}
	interval := looksAtStore
	if o.idle > 0 {
		interval = min(max(o.idle/looksWhileIdle, time.Millisecond), time.Second)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for used := time.Now(); o.idle == 0 || time.Since(used) < o.idle; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-failed:
			return err
		case <-tick.C:
		}
		if err := alive(); err != nil {
			return err
		}
		if dir, err := server.RuntimeDir(); err == nil {
			removeOpened(dir, time.Now())
		}
		if o.idle == 0 {
			continue
		}
		all, err := s.Store.Processes(ctx)
		if err != nil {
			return err
		}
		if all.Owner.PID != 0 && (!all.Owns || len(all.Guests) > 0) {
			used = time.Now()
		}
		if http != nil && http.Used().After(used) {
			used = http.Used()
		}
	}
	return nil
}
