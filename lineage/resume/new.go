package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// maxMade is the default of Options.MaxMade.
const maxMade = 64 << 20

// Options configure a session. Environment is required.
type Options struct {
	// Agent is the name of the agent. Default: the agent that the thread came from.
	Agent string
	// Thread is the thread of the history, zero if it has none.
	Thread lineage.ThreadID
	// Dir is the folder in which the agent starts. Default: the folder of the thread's session.
	Dir string
	// Environment states where the folders of agents are.
	Environment *follow.Environment
	// Now is the time of the session. Default time.Now.
	Now time.Time
	// MaxMade limits the total size of bodies to translate, in bytes. Default 64 MiB, which is more than models read.
	// The agent's own lines do not count.
	MaxMade int64
}

// New prepares a session of the history that ends at a span. It writes nothing.
func New(ctx context.Context, store *lineage.Store, tip lineage.SpanRef, o Options) (*Session, error) {
	if tip.IsZero() {
		return nil, ErrNothing
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	about, err := aboutThread(ctx, store, o.Thread)
	if err != nil {
		return nil, err
	}
	s, err := newSession(about, o)
	if err != nil {
		return nil, err
	}
	h, err := readHistory(ctx, store, tip)
	if err != nil {
		return nil, err
	}
	h.most = cmp.Or(o.MaxMade, maxMade)
	s.Messages, s.history = len(h.spans), h
	if s.own, err = findOwn(ctx, h, s.format, s.Agent, about); err != nil {
		return nil, err
	}
	err = s.complete(ctx, h)
	slices.SortStableFunc(s.Losses, func(a, b lineage.Loss) int { return cmp.Compare(a.Position, b.Position) })
	return s, err
}

// newSession returns a session without messages: its agent, id, folder and file.
func newSession(a about, o Options) (*Session, error) {
	name := cmp.Or(o.Agent, a.agent)
	if name == "" {
		return nil, fmt.Errorf("%w: the thread did not come from an agent", ErrNoWayIn)
	}
	format, agent, err := formatOf(name)
	if err != nil {
		return nil, err
	}
	dir, err := folder(o.Dir, a.dir)
	if err != nil {
		return nil, err
	}
	s := &Session{
		Agent: agent, ID: format.newID(), Dir: dir, Root: agent.Folder(o.Environment), Machine: a.machine,
		environment: o.Environment, format: format, now: o.Now, about: a,
	}
	if format.root != nil {
		s.Root = format.root(s)
	}
	if s.Path, err = format.path(s, o.Now); err != nil {
		return nil, err
	}
	s.Commands = format.commands(s)
	return s, nil
}

// complete adds the lines that are not the agent's own.
func (s *Session) complete(ctx context.Context, h *history) error {
	rest, err := h.rest(ctx, s)
	if err != nil {
		return err
	}
	m := &maker{s: s}
	if s.own != nil {
		if s.Own = s.own.upTo; len(rest.messages) == 0 {
			return nil
		}
		if err := s.ownEdited(ctx, func(line []byte) error { return m.after.see(s.format, line) }); err != nil {
			return err
		}
	}
	if err := s.format.make(m, rest); err != nil {
		return err
	}
	if s.made = m.lines; s.own == nil && m.said == 0 {
		return ErrNothing
	}
	return nil
}

// folder returns the folder in which the agent starts, in the form that the agent sees.
func folder(wanted, threads string) (string, error) {
	dir := cmp.Or(wanted, threads)
	if dir == "" {
		return "", fmt.Errorf("%w: the thread does not say in which it worked", ErrNoFolder)
	}
	if strings.ContainsFunc(dir, unicode.IsControl) || !utf8.ValidString(dir) {
		return "", fmt.Errorf("%w: %q has control characters or is not UTF-8, and no command is printed with such a name", ErrNoFolder, dir)
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%w: %q is not a full path", ErrNoFolder, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(real); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a file", dir)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s does not exist", ErrNoFolder, dir)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNoFolder, err)
	}
	return real, nil
}

// IsFrom reports whether all of the history was read from session files on a machine. The machine's secret proves
// that. The names of machines in threads and sources do not count, because anyone may have written them.
func (s *Session) IsFrom(ctx context.Context, m follow.Machine) (bool, error) {
	sources, err := s.history.sources(ctx, s.about)
	if err != nil {
		return false, err
	}
	read := make(map[lineage.SpanRef]bool)
	for _, source := range sources {
		same, err := source.IsOf(ctx, m)
		if err == nil && !same {
			continue
		}
		var lines [][]lineage.SpanRef
		if err == nil {
			lines, err = source.Spans(ctx)
		}
		switch {
		case notUsable(err):
		case err != nil:
			return false, err
		}
		for _, spans := range lines {
			for _, span := range spans {
				read[span] = true
			}
		}
	}
	return !slices.ContainsFunc(s.history.spans, func(span lineage.SpanRef) bool { return !read[span] }), nil
}
