package export

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/render"
)

// Site counts what WriteSite wrote.
type Site struct {
	Conversations int
	Bytes         int64
}

const (
	// siteDir is the folder of the pages of conversations. siteIndex is the page that lists them.
	siteDir   = "conversations"
	siteIndex = "index.html"
	// maxSearched limits the bytes of prompts that the search of the list uses, over all conversations.
	// maxSearchedOne limits them for one conversation, which always gets at least minSearchedOne.
	maxSearched    = 16 << 20
	maxSearchedOne = 64 << 10
	minSearchedOne = 512
)

//go:embed site/index.js
var siteScript string

//go:embed site/index.css
var siteStyle string

// WriteSite writes threads as a folder of pages. The main page lists the conversations, the last changed first, and
// searches them by title, agent, project and prompts. A folder below has a page for each conversation, as HTML writes
// it. The pages load nothing, and only the list has a script.
//
// The folder appears when it is complete. The error matches lineage.ErrExists if the folder exists and is not empty.
// A thread that is deleted during the call is left out.
func WriteSite(ctx context.Context, store *lineage.Store, dir string, o Options) (written Site, err error) {
	if o.Scope.Context != nil || o.AsGiven {
		return written, fmt.Errorf("a folder of pages has threads: %w", lineage.ErrInvalid)
	}
	x := newExporter(store, nil, o)
	threads, err := x.threads(ctx)
	if err != nil {
		return written, err
	}
	s := &site{exporter: x, share: min(maxSearchedOne, max(minSearchedOne, maxSearched/max(len(threads), 1)))}
	err = vfs.NewDir(dir, lineage.ErrExists, func(partial string) error {
		s.dir = partial
		if err := os.Mkdir(filepath.Join(partial, siteDir), 0o755); err != nil {
			return err
		}
		for conv, err := range x.conversationsOf(ctx, threads, true) {
			if err != nil {
				return err
			}
			if err := s.conversation(ctx, conv); err != nil && !errors.Is(err, lineage.ErrNotFound) {
				return err
			}
		}
		return s.list()
	})
	return Site{Conversations: len(s.rows), Bytes: s.bytes}, err
}

// site is the state of one call of WriteSite.
type site struct {
	*exporter
	dir   string
	rows  []*siteRow
	share int // bytes of prompts that the search uses for each conversation
	bytes int64
}

// siteRow is a conversation in the list.
type siteRow struct {
	name, title, agent, project, user string
	messages                          uint64
	branches                          int
	updated                           time.Time
	prompts                           [][2]string // anchors and starts
}

// file writes a file of the site. If writing fails, the file is removed together with the folder.
func (s *site) file(name string, write func(x *exporter) error) error {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	x := *s.exporter
	x.w = bufio.NewWriterSize(f, 64<<10)
	if err = write(&x); err == nil {
		err = x.w.Flush()
	}
	if info, failed := f.Stat(); err == nil {
		if err = failed; err == nil {
			s.bytes += info.Size()
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close())
}

// conversation writes the page of a thread.
func (s *site) conversation(ctx context.Context, conv *conversation) (err error) {
	row := &siteRow{updated: conv.info.UpdatedAt, user: conv.info.UserID, branches: len(conv.tips)}
	row.name = fmt.Sprintf("%s/%s-%s.html", siteDir, row.updated.UTC().Format(time.DateOnly), conv.info.ID)
	if rawjson.Valid(conv.info.Metadata) {
		row.agent = rawjson.Str(rawjson.Get(conv.info.Metadata, archive.KeyAgent))
		row.project = rawjson.Str(rawjson.Get(conv.info.Metadata, archive.KeyProject))
	}
	if row.title, err = s.title(ctx, conv); err != nil {
		return err
	}
	lookup := backend.Runs(ctx, s.store.View())
	for _, t := range conv.tips {
		if t.active {
			run, err := lookup(t.ref.Run)
			if err != nil {
				return err
			}
			row.messages = run.Position(t.ref.Seq)
		}
	}
	err = s.file(row.name, func(x *exporter) error {
		x.beginPage(row.title, "")
		x.put("<p class=\"back\"><a href=\"../", siteIndex, "#", conv.info.ID.String(), "\">All conversations</a></p>\n")
		const single = true
		p, err := x.htmlConversation(ctx, conv, 1, single)
		if err != nil {
			return err
		}
		left := s.share
		for _, prompt := range p.prompts {
			if left -= len(prompt.start) + len(prompt.anchor); left < 0 {
				break
			}
			row.prompts = append(row.prompts, [2]string{prompt.anchor, render.Clean(prompt.start)})
		}
		x.endPage()
		return nil
	})
	if errors.Is(err, lineage.ErrNotFound) {
		return errors.Join(err, os.Remove(filepath.Join(s.dir, row.name)))
	}
	s.rows = append(s.rows, row)
	return err
}

// list writes the list of conversations.
func (s *site) list() error {
	slices.SortStableFunc(s.rows, func(a, b *siteRow) int { return b.updated.Compare(a.updated) })
	hash := sha256.Sum256([]byte(siteScript))
	return s.file(siteIndex, func(x *exporter) error {
		x.beginPage(cmp.Or(s.o.Title, severalTitle), "script-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'; ")
		x.put("<style>\n", siteStyle, "</style>\n<p class=\"find\" hidden><input id=\"q\" type=\"search\" aria-label=\"Search\" placeholder=\"Search titles, agents, projects and prompts\" autocomplete=\"off\" spellcheck=\"false\"> <span id=\"n\" role=\"status\"></span></p>\n")
		if len(s.rows) == 0 {
			x.put("<p class=\"note\">There is nothing here.</p>\n")
		}
		month := ""
		prompts := make([][][2]string, len(s.rows))
		for i, row := range s.rows {
			if updated := row.updated.UTC().Format("January 2006"); updated != month {
				if month != "" {
					x.put("</ol></section>\n")
				}
				x.put("<section class=\"month\"><h2>", updated, "</h2>\n<ol class=\"rows\">\n")
				month = updated
			}
			prompts[i] = row.prompts
			row.write(x)
		}
		if month != "" {
			x.put("</ol></section>\n")
		}
		data, err := json.Marshal(prompts) // Marshal escapes characters that could end the element
		if err != nil {
			return err
		}
		x.put("<script type=\"application/json\" id=\"prompts\">", string(data), "</script>\n<script>", siteScript, "</script>\n")
		x.endPage()
		return x.failed()
	})
}

// write writes a row of the list.
func (r *siteRow) write(x *exporter) {
	id := strings.TrimSuffix(r.name[strings.LastIndex(r.name, "/")+1+len(time.DateOnly)+1:], ".html")
	x.put("<li id=\"", id, "\"><time datetime=\"", r.updated.UTC().Format(time.RFC3339), "\">", r.updated.UTC().Format("2 Jan"), "</time> <a href=\"", escape(r.name), "\"><bdi>", escape(r.title), "</bdi></a> <span class=\"about\">")
	for _, about := range []string{r.agent, r.project, r.user} {
		if about != "" {
			x.put("<bdi>", escape(about), "</bdi> ")
		}
	}
	x.put("<span class=\"n\">", amount.Plural(r.messages, "message"), "</span>")
	if r.branches > 1 {
		x.put(" <span class=\"n\">", amount.Plural(r.branches, "branch"), "</span>")
	}
	x.put("</span></li>\n")
}
