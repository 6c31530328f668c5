package follow

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A database is read as a whole when it has changed. If that takes restFrom or longer, the next read is at least
// restFactor times that later, but at most restMost, so that following an agent that writes constantly takes a small
// part of a processor.
const (
	restFrom   = 200 * time.Millisecond
	restFactor = 10
	restMost   = 10 * time.Minute
)

// hold reports whether a conversation of a file that changed at a time is not stored yet, because it may change again. complete
// is set if it seems complete. f.held becomes the time at which the file is read again.
func (r *run) hold(f *file, changed time.Time, complete bool) bool {
	limit := holdTime
	if complete {
		limit = holdComplete
	}
	if r.clock.Now().Sub(changed).Abs() >= limit || complete && r.options.Once {
		return false
	}
	if until := changed.Add(limit); f.held.IsZero() || until.Before(f.held) {
		f.held = until
	}
	return true
}

// importFile imports a file that is not read by lines.
func (r *run) importFile(ctx context.Context, f *file) error {
	if began := r.clock.Now(); isDatabase(f.path) {
		defer func() {
			if now := r.clock.Now(); now.Sub(began) >= restFrom {
				f.rest = now.Add(min(restFactor*now.Sub(began), restMost))
			}
		}()
	}
	t := r.takingOf(ctx, f)
	t.known = f.folder.project
	overtaken := false
	t.rows = func(c *archive.Conversation) error {
		err := r.keepRows(ctx, f, c.SourceID, t.branchOf(c.SourceID), c.Rows)
		overtaken = isOvertaken(err)
		return err
	}
	o := r.archiveOptions(f, t)
	o.Rows = f.folder.agent.Name != ""
	f.held = time.Time{}
	o.Hold = func(changed time.Time, complete bool) bool { return r.hold(f, changed, complete) }
	report, err := importer.Import(ctx, r.store, archive.Path(f.path), o)
	if err = t.outcome(err); err != nil {
		r.dropRows(f)
		if overtaken {
			r.waiting[f] = r.clock.Now()
			return nil
		}
		return err
	}
	waits, err := r.flushRows(ctx, f)
	if err == nil && !waits {
		waits, err = r.recordWhole(ctx, f, t)
	}
	switch {
	case waits:
		r.waiting[f] = r.clock.Now()
	case err == nil:
		r.markRead(f, t, &report, f.now, f.now.size)
		if !f.held.IsZero() {
			f.state.Modified = 0 // a part is not read yet
			r.waiting[f] = f.held
		}
	}
	return err
}

// A message that its agent is still writing must be unchanged for holdTime before it is read, and one that may be complete
// for holdComplete, unless no later look follows. Each state of a message that is read is a version, on a branch of its own.
const (
	holdTime     = 10 * time.Minute
	holdComplete = time.Minute
)

func (r *run) archiveOptions(f *file, t *taking) importer.Options {
	members := map[string]string{archive.KeyMachine: r.options.Machine.Name}
	agent := &f.folder.agent
	if agent.Shares {
		members[archive.KeyAgent] = agent.Name
	}
	if agent.Counts {
		origin := hashOf([]byte(r.options.Machine.ID + " " + f.folder.root))
		t.local = hex.EncodeToString(origin[:6])
	}
	if f.folder.project != "" {
		members[archive.KeyProject] = f.folder.project
	}
	more, _ := json.Marshal(members) // text always marshals
	return importer.Options{
		Unsynced: true, // save syncs
		Outlines: r.outlines,
		Format:   f.format(), Formats: t.formats(r.options.Formats), Limits: r.options.Limits, Metadata: more,
	}
}
