package follow

import (
	"cmp"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// markRead records that a file was read up to an offset.
func (r *run) markRead(f *file, t *taking, report *importer.Report, now stamp, end int64) {
	was := f.state
	state := r.stateOf(f, t, report, now, end)
	event := Event{
		Kind: Read, Agent: state.Agent, Path: f.path, Bytes: max(end-was.Bytes, 0), Messages: report.NewMessages, Conversations: slices.Clone(t.stored),
	}
	event.Skipped = report.SkippedCount - int64(len(report.Skipped)) // those that the report does not have
	for _, d := range report.Skipped {
		if elsewhere := (*archive.ElsewhereError)(nil); errors.As(d, &elsewhere) && (f.reader == nil || f.reader.fresh) {
			state.Waits = elsewhere.SourceID
		}
		if !errors.Is(d, archive.ErrNoMessages) {
			event.Skipped++
			event.Err = cmp.Or(event.Err, f.itemError(d))
		}
	}
	state.Skipped += event.Skipped
	if state.Error == "" && event.Err != nil {
		state.Error = event.Err.Error()
	}
	for _, id := range state.Conversations {
		r.conversations[id] = true
	}
	if state.Waits == "" || !f.begunAgain {
		defer r.beginAgain(state.Conversations, f)
	}
	if f.begunAgain = false; state.Waits != "" && state.Waits != was.Waits {
		r.waits[state.Waits] = append(r.waits[state.Waits], f)
	}
	f.state = state
	r.count++
	if isDatabase(f.path) {
		r.databases++
	}
	r.changed(f)
	if state.LeftOut == "" {
		r.options.Events(event)
		return
	}
	state.Skipped, state.Error = 0, "" // nothing of it is wanted
	if was.LeftOut != state.LeftOut {
		r.options.Events(Event{Kind: LeftOut, Agent: state.Agent, Path: f.path, Reason: string(state.LeftOut)})
	}
}

// stateOf returns the state of a file that was read up to an offset, without what was skipped this time.
func (r *run) stateOf(f *file, t *taking, report *importer.Report, now stamp, end int64) *State {
	was := f.state
	state := &State{
		Agent: f.agent(), Bytes: end, Size: now.size, Modified: r.settled(f, now), Beside: now.beside,
		Conversations: slices.Clone(t.ids), LeftOut: t.leftOut(), Project: t.project, moved: was.moved,
	}
	state.setPath(f.path)
	if len(report.Formats) > 0 {
		state.Format = report.Formats[0]
	}
	if f.reader != nil {
		if state.LeftOut == "" && f.reader.growing.Session() == "" {
			state.Conversations = nil // it has no message, and so no thread yet
		}
		if f.reader.rounds > 1 { // earlier reads count, too
			state.Skipped, state.Error, state.Format, state.Waits = was.Skipped, was.Error, was.Format, was.Waits
		}
		if !f.reader.fresh {
			state.Waits = was.Waits // the beginning does not count now
		}
	}
	state.Reader = r.versionOf(state.Format)
	return state
}

// versionOf returns the version of a format's reader.
func (r *run) versionOf(format string) int { return r.formatNamed(format).Version }
