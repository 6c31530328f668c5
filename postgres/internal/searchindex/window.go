package searchindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// window has the changes that one window of the feed makes to the index. They are prepared from the store and the tables, and
// then written by one transaction.
type window struct {
	index        *Index
	before, next meta // of the index
	stamp        int64
	w            *derived.Window[Tx]

	blocks  map[content.ID]*structure.Block
	spans   []*structure.Span
	homes   map[structure.ThreadID]structure.Home // of threads that exist
	runs    map[string]int64                      // numbers, by key; 0 for those that are not indexed
	created []run
	lasts   map[string]uint64

	threads threadChanges
	tips    tipChanges

	gone     [][]byte                 // texts that are erased, with the marks of their content
	erased   []content.ID             // the content of these texts
	restored map[content.ID]bool      // content that was stored again
	mentions []mention                // of steps and summaries
	sources  map[searched.TextID]text // of texts that may be new
	order    []searched.TextID
	unread   []searched.TextID // new texts, the words of which are still to be found
	parser   query.Terms
	sorts    bool     // the transaction writes the last texts
	repeats  bool     // runs may have been written
	ids      [][]byte // new texts, and their words
	words    []string
	added    map[string]int32 // numbers of terms that were looked up or given
	terms    [][]byte         // new terms, and their numbers
	numbers  []int32
}

// run is a new run.
type run struct {
	key    string
	parent string // its key, "" if there is none
	after  uint64
	home   structure.Home
}

// mention says that a message or a summary has a text.
type mention struct {
	text searched.TextID
	run  string // its key
	seq  uint64
	head int
	kind structure.UsageKind
	role string
}

// text says where a text is found: a name, or content.
type text struct {
	name    string
	content content.ID
	kind    structure.UsageKind
}

// erasedMark is the reading of a row that marks content as erased, whether or not it is indexed.
const erasedMark form.Reading = 0xfe

// prepare reads what the window needs.
func (w *window) prepare(ctx context.Context) error {
	w.blocks, w.homes, w.runs = make(map[content.ID]*structure.Block), make(map[structure.ThreadID]structure.Home), make(map[string]int64)
	w.lasts, w.restored, w.sources = make(map[string]uint64), make(map[content.ID]bool), make(map[searched.TextID]text)
	w.tips.init()
	for _, c := range w.w.Commits {
		for _, r := range c.Records {
			switch r := r.(type) {
			case *structure.Block:
				w.blocks[r.ID] = r
			case *structure.Run:
				w.next.runs++
				found := run{key: string(r.ID[:]), after: r.Parent.Seq, home: r.Home}
				if !r.Parent.IsZero() {
					found.parent = string(r.Parent.Run[:])
				}
				w.runs[found.key] = w.next.runs
				w.created = append(w.created, found)
				w.threads.saw(r.Home.Thread)
			case *structure.Thread:
				w.threads.saw(r.ID)
			case *structure.Span:
				w.next.spans++
				w.spans = append(w.spans, r)
				w.lasts[string(r.Ref.Run[:])] = r.Ref.Seq
			}
		}
	}
	for _, step := range []func(context.Context) error{
		w.settleContents, w.settleThreads, w.settleContexts, w.settleCheckpoints, w.settleSummaries, w.findRuns, w.mentionSpans, w.findNew,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if len(w.gone) > 0 { // a term may lose its number, and get another one later
		w.next.generation = rand.Int64()
	}
	return nil
}

// findRuns looks up the numbers of runs that the window refers to. A run of a later window has none, and the later window
// has what refers to it again.
func (w *window) findRuns(ctx context.Context) error {
	if err := w.readRuns(ctx, w.wantedRuns()); err != nil {
		return err
	}
	for _, r := range w.created {
		if r.parent != "" && w.runs[r.parent] == 0 {
			return fmt.Errorf("run %x is missing: %w", r.parent, searched.ErrDamaged)
		}
	}
	for key := range w.lasts {
		if w.runs[key] == 0 {
			return fmt.Errorf("run %x is missing: %w", key, searched.ErrDamaged)
		}
	}
	for i := range w.tips.are {
		t := &w.tips.are[i]
		if w.runs[t.run] != 0 {
			continue
		}
		if t.owner != nil { // the run of a summary
			w.next.runs++
			w.runs[t.run] = w.next.runs
			w.created = append(w.created, run{key: t.run})
			w.lasts[t.run] = 1
		} else if w.w.To == w.w.Head {
			return fmt.Errorf("run %x is missing: %w", t.run, searched.ErrDamaged)
		}
	}
	return nil
}

// wantedRuns returns the keys of the runs whose numbers are not known yet.
func (w *window) wantedRuns() (ids [][]byte) {
	want := func(key string) {
		if _, known := w.runs[key]; !known && key != "" {
			w.runs[key] = 0
			ids = append(ids, []byte(key))
		}
	}
	w.repeats = !w.before.Settled() // by an interrupted update
	for _, r := range w.created {
		want(r.parent)
		if w.repeats {
			ids = append(ids, []byte(r.key))
		}
	}
	for _, s := range w.spans {
		want(string(s.Ref.Run[:]))
	}
	for i := range w.tips.are {
		want(w.tips.are[i].run)
	}
	return ids
}

// readRuns reads the numbers of runs.
func (w *window) readRuns(ctx context.Context, ids [][]byte) error {
	if len(ids) == 0 {
		return nil
	}
	return w.index.server.Read(ctx, func(b *pgx.Batch) {
		b.Queue(`SELECT id, number FROM lineage_search_run WHERE store = $1 AND id = ANY($2::bytea[])`, w.index.store, ids).Query(func(rows pgx.Rows) error {
			var id []byte
			var n int64
			_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
				w.runs[string(id)] = n
				return nil
			})
			return err
		})
	})
}

// mentionSpans finds what is indexed of the steps.
func (w *window) mentionSpans(ctx context.Context) error {
	if err := w.fetchBlocks(ctx); err != nil {
		return err
	}
	for _, s := range w.spans {
		run := string(s.Ref.Run[:])
		if w.runs[run] == 0 { // of a later window
			continue
		}
		_ = searched.Mentions(s, func(m searched.Mention) error {
			id, from := searched.TextID{}, text{name: m.Name}
			if m.Name != "" {
				id = searched.TextOfName(m.Name)
			} else {
				b := w.blocks[m.Usage.Content]
				if b == nil { // erased or collected
					return nil
				}
				r := searched.ReadingOf(m.Usage, b)
				if r == form.Unread {
					return nil
				}
				id, from = searched.TextOf(m.Usage.Content, r), text{content: m.Usage.Content, kind: m.Usage.Kind}
			}
			w.mention(mention{id, run, s.Ref.Seq, m.Head, m.Kind, m.Role}, from)
			return nil
		})
	}
	return nil
}

func (w *window) mention(m mention, from text) {
	w.mentions = append(w.mentions, m)
	if _, known := w.sources[m.text]; !known {
		w.sources[m.text] = from
		w.order = append(w.order, m.text)
	}
}

// Limits of one read of blocks, and of a body that is kept until its text is needed.
const (
	mostBlocks = 200
	mostKept   = 4 << 10
)

// fetchBlocks reads the blocks that the steps use and the window does not have. Those that are gone are nil.
func (w *window) fetchBlocks(ctx context.Context) error {
	var missing []content.ID
	for _, s := range w.spans {
		for i := range s.Usages {
			id := s.Usages[i].Content
			if b, known := w.blocks[id]; !known || b != nil && !searched.HasBody(b) {
				w.blocks[id] = nil
				missing = append(missing, id)
			}
		}
	}
	for len(missing) > 0 {
		some := missing[:min(len(missing), mostBlocks)]
		missing = missing[len(some):]
		blocks, err := w.w.State.Blocks(ctx, some)
		if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) {
			blocks = blocks[:0]
			for _, id := range some {
				b, err := searched.BlockIn(ctx, w.w.State, id)
				if err != nil {
					return err
				}
				blocks = append(blocks, b)
			}
			err = nil
		}
		if err != nil {
			return err
		}
		for i, b := range blocks {
			if b != nil && len(b.Body) > mostKept {
				less := *b
				less.Body = nil
				b = &less
			}
			w.blocks[some[i]] = b
		}
	}
	return nil
}

// findNew finds the texts that the index does not have.
func (w *window) findNew(ctx context.Context) error {
	ask := make([][]byte, 0, len(w.order))
	for i := range w.order {
		ask = append(ask, w.order[i][:])
	}
	for id := range w.restored {
		for _, r := range searched.Readings {
			t := searched.TextOf(id, r)
			ask = append(ask, t[:])
		}
	}
	known := make(map[searched.TextID]bool) // false without words
	if len(ask) > 0 {
		err := w.index.server.Read(ctx, func(b *pgx.Batch) {
			b.Queue(`SELECT id, words IS NOT NULL FROM lineage_search_text WHERE store = $1 AND id = ANY($2::bytea[])`, w.index.store, ask).Query(func(rows pgx.Rows) error {
				var id []byte
				var has bool
				_, err := pgx.ForEachRow(rows, []any{&id, &has}, func() error {
					known[searched.TextID(id)] = has
					return nil
				})
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	for id := range w.restored {
		for _, r := range searched.Readings {
			t := searched.TextOf(id, r)
			if has, ok := known[t]; ok && !has {
				delete(known, t)
				if _, ok := w.sources[t]; !ok {
					w.sources[t] = text{content: id, kind: structure.PartUsage}
					w.order = append(w.order, t)
				}
			}
		}
	}
	for _, id := range w.order {
		if _, ok := known[id]; !ok {
			w.unread = append(w.unread, id)
		}
	}
	w.parser = make(query.Terms)
	return nil
}

// findTexts finds the words of the next texts, as many as a transaction writes. more reports whether there are others.
func (w *window) findTexts(ctx context.Context) (more bool, err error) {
	w.ids, w.words, w.terms, w.numbers = nil, nil, nil, nil
	at := make(map[string]int) // of a term in all
	var all []string
	var texts [][]int
	for size := 0; len(w.unread) > 0 && size < MostWritten; w.unread = w.unread[1:] {
		id := w.unread[0]
		body, err := w.read(ctx, id)
		if err != nil {
			return false, err
		}
		var words []int
		searched.EachTerm(w.parser, body, func(term string) {
			n, ok := at[term]
			if !ok {
				n = len(all)
				all, at[term] = append(all, term), n
			}
			words = append(words, n)
		})
		if size += len(words); len(words) > 0 {
			w.ids, texts = append(w.ids, id[:]), append(texts, words)
		}
	}
	numbers, err := w.number(ctx, all)
	if err != nil {
		return false, err
	}
	for _, words := range texts {
		b := make([]byte, 0, 11*len(words)+2)
		b = append(b, '{')
		for i, n := range words {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(numbers[n]), 10)
		}
		w.words = append(w.words, string(append(b, '}')))
	}
	return len(w.unread) > 0, nil
}

// read returns a text, "" if it is gone.
func (w *window) read(ctx context.Context, id searched.TextID) (string, error) {
	from := w.sources[id]
	if from.name != "" {
		return from.name, nil
	}
	b := w.blocks[from.content]
	if !searched.HasBody(b) {
		var err error
		if b, err = searched.BlockIn(ctx, w.w.State, from.content); b == nil {
			return "", err
		}
	}
	return searched.ReadText(ctx, w.w.State, from.kind, b, id.Reading())
}
