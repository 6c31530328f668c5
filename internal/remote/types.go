package remote

import (
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Walkers of the types of the port.

func cursor(w *wire, c *backend.Cursor) {
	w.Uint("number", &c.Number)
	w.Uint("id", &c.ID)
}

func contextState(w *wire, c *backend.Context) {
	walkRecord(w, &c.Context)
	w.Uint("moved", &c.Moved)
	integer(w, "moved at", &c.MovedAt)
}

func runInfo(w *wire, r *structure.RunInfo) {
	walkRecord(w, &r.Run)
	w.Uint("depth", &r.Depth)
	digest(w, &r.Digest)
}

func runInfos(w *wire, all *[]structure.RunInfo) { list(w, "runs", all, 48, runInfo) }

func home(w *wire, h *structure.Home) {
	id(w, "thread", &h.Thread)
	w.Uint("incarnation", &h.Incarnation)
}

func ref(w *wire, r *structure.SpanRef) { w.Ref("span", r) }

func digest(w *wire, d *structure.Digest) { w.fixed("digest", d[:]) }

func contentID(w *wire, id *content.ID) { w.Content("content", id) }

func chunkKey(w *wire, k *content.Key) { w.fixed("key", k[:]) }

func chunkKeys(w *wire, keys *[]content.Key) { list(w, "keys", keys, len(content.Key{}), chunkKey) }

func bodies(w *wire, all *[][]byte) {
	list(w, "bodies", all, 1, func(w *wire, b *[]byte) { w.data("body", b) })
}

func flags(w *wire, all *[]bool) {
	list(w, "flags", all, 1, func(w *wire, flag *bool) { w.Flag("flag", flag) })
}

func usageID(w *wire, u *structure.UsageID) {
	w.Ref("span", &u.Span)
	integer(w, "index", &u.Index)
}

func found(w *wire, f *backend.Found) {
	home(w, &f.Home)
	w.Uint("lookup", &f.Lookup)
	w.Ref("span", &f.Span)
}

func owner(w *wire, o *structure.Owner) {
	integer(w, "scope", &o.Scope)
	w.Text("name", &o.Name)
	id(w, "thread", &o.Thread)
	id(w, "context", &o.Context)
}

func valueKey(w *wire, k *structure.ValueKey) {
	owner(w, &k.Owner)
	w.Text("key", &k.Key)
}

func value(w *wire, v *backend.Value) {
	walkRecord(w, &v.Value)
	w.Uint("commit", &v.Commit)
}

func window(w *wire, v *structure.Window) {
	w.Uint("from", &v.From)
	w.Uint("to", &v.To)
	w.Uint("last", &v.Last)
}

func stats(w *wire, s *backend.Stats) {
	for _, n := range []*uint64{
		&s.Threads, &s.Contexts, &s.Branches, &s.Checkpoints, &s.Runs, &s.Spans, &s.Usages, &s.Blocks, &s.Chunks,
		&s.UniqueBytes, &s.LogicalBytes, &s.StoredBytes, &s.IndexBytes, &s.OtherBytes, &s.UnpackedBytes,
	} {
		w.Uint("count", n)
	}
}

func threadListing(w *wire, l *backend.ThreadListing) {
	record(w, &l.Thread)
	w.instant("last message", &l.LastMessage)
}

func threadQuery(w *wire, q *backend.ThreadQuery) {
	w.OptionalText("user", &q.User)
	w.Text("source prefix", &q.SourcePrefix)
	w.Text("title prefix", &q.TitlePrefix)
	list(w, "metadata", &q.Metadata, 2, func(w *wire, m *backend.MetadataIs) {
		w.Text("key", &m.Key)
		b := []byte(m.Value)
		w.data("value", &b)
		m.Value = b
	})
	w.instant("from", &q.From)
	w.instant("to", &q.To)
	w.Flag("oldest", &q.Oldest)
	integer(w, "after", &q.After.Updated)
	id(w, "after", &q.After.Thread)
}

func once(w *wire, o *backend.Once) {
	w.fixed("session", o.Session[:])
	cursor(w, &o.Since)
	w.Uint("sequence", &o.Sequence)
}

func options(w *wire, o *backend.Options) {
	integer(w, "durability", &o.Durability)
	list(w, "tips", &o.Tips, 18, func(w *wire, e *backend.Expect) {
		id(w, "context", &e.Context)
		w.Ref("tip", &e.Tip)
	})
	list(w, "threads", &o.Threads, 17, func(w *wire, e *backend.ExpectThread) {
		id(w, "thread", &e.ID)
		optionalRecord(w, "was", &e.Was)
	})
	list(w, "contexts", &o.Contexts, 17, func(w *wire, e *backend.ExpectContext) {
		id(w, "context", &e.ID)
		optionalRecord(w, "was", &e.Was)
	})
	if present(w, "once", o.Once != nil) {
		if w.reading {
			o.Once = new(backend.Once)
		}
		once(w, o.Once)
	}
	list(w, "branches", &o.Branches, 18, func(w *wire, e *backend.ExpectBranch) {
		id(w, "thread", &e.Thread)
		w.Text("name", &e.Name)
		optionalRecord(w, "was", &e.Was)
	})
	list(w, "checkpoints", &o.Checkpoints, 18, func(w *wire, e *backend.ExpectCheckpoint) {
		id(w, "thread", &e.Thread)
		w.Text("name", &e.Name)
		optionalRecord(w, "was", &e.Was)
	})
	list(w, "values", &o.Values, 36, func(w *wire, e *backend.ExpectValue) {
		valueKey(w, &e.Key)
		w.Uint("commit", &e.Commit)
	})
	list(w, "sources", &o.Sources, 18, func(w *wire, e *backend.ExpectSource) {
		w.Text("source id", &e.SourceID)
		id(w, "thread", &e.Thread)
		list(w, "spans", &e.Spans, 2, ref)
	})
}

func receipt(w *wire, r *backend.Receipt) {
	cursor(w, &r.Cursor)
	w.Flag("repeated", &r.Repeated)
	list(w, "known", &r.Known, len(content.ID{}), contentID)
	integer(w, "known chunks", &r.KnownChunks)
}

func finding(w *wire, f *backend.Finding) {
	for _, s := range []*string{&f.Subject, &f.ID, &f.File, &f.Problem, &f.Repair} {
		w.Text("finding", s)
	}
	integer(w, "offset", &f.Offset)
}

func packOptions(w *wire, o *backend.PackOptions) {
	w.Flag("all", &o.All)
	w.Flag("dense", &o.Dense)
}

func packReport(w *wire, r *backend.PackReport) {
	integer(w, "files", &r.Files)
	w.Uint("commits", &r.Commits)
	integer(w, "before", &r.Before)
	integer(w, "after", &r.After)
	integer(w, "fast", &r.Fast)
}

func collectOptions(w *wire, o *backend.CollectOptions) {
	w.Flag("dry run", &o.DryRun)
	integer(w, "keep reflog", &o.KeepReflog)
	integer(w, "keep unused", &o.KeepUnused)
	w.instant("now", &o.Now)
}

func collectReport(w *wire, r *backend.CollectReport) {
	for _, n := range []*uint64{&r.Commit, &r.Records, &r.Spans, &r.Blocks, &r.Chunks, &r.Erased, &r.Bytes, &r.Before, &r.After} {
		w.Uint("count", n)
	}
	integer(w, "files", &r.Files)
	list(w, "removed", &r.Removed, 1, func(w *wire, s *string) { w.Text("removed", s) })
	list(w, "elsewhere", &r.Elsewhere, 1, func(w *wire, s *string) { w.Text("elsewhere", s) })
}

func copyPart(w *wire, p *backend.CopyPart) {
	if present(w, "plan", p.Plan != nil) {
		if w.reading {
			p.Plan = new(backend.CopyPlan)
		}
		w.fixed("store", p.Plan.Store[:])
		w.Uint("commit", &p.Plan.Commit)
		list(w, "files", &p.Plan.Files, 2, func(w *wire, f *backend.CopyFile) {
			w.Text("name", &f.Name)
			integer(w, "size", &f.Size)
		})
	}
	integer(w, "file", &p.File)
	w.data("bytes", &p.Bytes)
}

// Records that are not plain (see structure.Walk) are sent in commits, in the encoding of package structure.

var encoders = sync.Pool{New: func() any { return new(structure.Encoder) }}

// epoch is the time of commits that only transport records.
var epoch = time.UnixMilli(0).UTC()

func (w *wire) encode(c *structure.Commit) {
	e := encoders.Get().(*structure.Encoder)
	defer encoders.Put(e)
	payload, _, err := e.Encode(c)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.data("commit", &payload)
}

func (w *wire) decode() *structure.Commit {
	var payload []byte
	if w.data("commit", &payload); w.err != nil {
		return nil
	}
	c, err := structure.DecodeCommit(payload)
	if err != nil {
		w.err, w.b = err, nil
	}
	return c
}

func commit(w *wire, c **structure.Commit) {
	var number, id uint64
	if !w.reading {
		number, id = (*c).Number, (*c).ID
	}
	w.Uint("number", &number)
	w.Uint("id", &id)
	if !w.reading {
		w.encode(*c)
	} else if *c = w.decode(); *c != nil {
		(*c).Number, (*c).ID = number, id
	}
}

// records writes or reads records of one type in a commit.
func records[R structure.Record](w *wire, all *[]R) {
	if !w.reading {
		c := structure.Commit{Time: epoch, Records: make([]structure.Record, len(*all))}
		for i, r := range *all {
			c.Records[i] = r
		}
		w.encode(&c)
		return
	}
	c := w.decode()
	if c == nil {
		return
	}
	*all = make([]R, len(c.Records))
	for i, r := range c.Records {
		record, ok := r.(R)
		if !ok {
			w.fail("record of another kind")
			return
		}
		(*all)[i] = record
	}
}

// step writes or reads a step in a commit. Its span comes before the blocks, so that the encoding does not abbreviate
// the usages.
func step(w *wire, s **backend.Step) {
	if w.reading {
		*s = new(backend.Step)
	}
	copied := *s
	w.Uint("position", &copied.Position)
	w.Uint("commit", &copied.Commit)
	bodies := copied.Blocks != nil
	w.Flag("bodies", &bodies)
	if !w.reading {
		c := structure.Commit{Time: epoch, Records: []structure.Record{copied.Span}}
		for _, b := range copied.Blocks {
			c.Records = append(c.Records, b)
		}
		w.encode(&c)
		return
	}
	c := w.decode()
	if c == nil {
		return
	}
	for i, r := range c.Records {
		switch r := r.(type) {
		case *structure.Span:
			copied.Span = r
		case *structure.Block:
			copied.Blocks = append(copied.Blocks, r)
		}
		if i == 0 && copied.Span == nil || len(copied.Blocks) != i || i > 0 && !bodies {
			w.fail("records that are no step")
			return
		}
	}
	if copied.Span == nil {
		w.fail("step without a span")
	} else if bodies && copied.Blocks == nil {
		copied.Blocks = []*structure.Block{}
	}
}
