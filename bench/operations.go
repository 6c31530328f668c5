package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/search"
)

// Operation is the cost of an operation of the context engine on a store, compared with the
// TypeScript package.
type Operation struct {
	Name     string
	Messages int // of the chat
	System   string
	// CPU is the CPU time of the operation, Package that of the package's; both are medians of the
	// rounds. Bare is that of the same statements through the bare driver, for SQLite.
	CPU, Package, Bare time.Duration
}

// Ratio returns the speed relative to the package.
func (o Operation) Ratio() float64 { return float64(o.Package) / float64(max(o.CPU, 1)) }

const (
	nameEmbedded     = "embedded"
	nameSQLiteEngine = "sqlite"
	nameBare         = "bare driver"
)

// operations are measured in this order. The first ones leave the chat slightly longer.
var operations = []string{"chain", "resolve", "graph", "search", "save", "aside", "rewind", "delete"}

// CompareOperations measures the operations of the context engine at several lengths of a chat, on
// a store and on SQLite, interleaved with those of @deepagents/context on SQLite. Only Dir, Sizes,
// Rounds, MessageBytes, NodeModules, Seed and Progress of the configuration apply.
func CompareOperations(ctx context.Context, c Config) (all []Operation, err error) {
	if len(c.Sizes) == 0 {
		c.Sizes = []int{100, 10_000}
	}
	c.setDefaults()
	dir, err := os.MkdirTemp(c.Dir, "lineage-operations-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{config: c, dir: dir}
	node, err := r.nodeSystem()
	if err != nil {
		return nil, err
	}
	opened, err := node.open(ctx, dir)
	if err != nil {
		return nil, err
	}
	theirs := &nodeEngine{store: opened.(*nodeStore)}
	defer func() { err = errors.Join(err, theirs.store.close()) }()
	embedded, err := newEmbeddedEngines(ctx, filepath.Join(dir, "store"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, embedded.close()) }()
	onSQLite, bare, err := newSQLiteEngines(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.close(), onSQLite.close()) }()
	for _, size := range c.Sizes {
		some, err := compareOperations(ctx, c, size, theirs, map[string]operator{nameEmbedded: embedded, nameSQLiteEngine: onSQLite, nameBare: bare})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// operator performs operations on chats.
type operator interface {
	// load creates a chat with messages.
	load(ctx context.Context, chatID string, texts []string) error
	// measure performs an operation several times and returns the CPU time.
	measure(ctx context.Context, name string, times int) (time.Duration, error)
}

func compareOperations(ctx context.Context, c Config, size int, theirs operator, ours map[string]operator) (all []Operation, err error) {
	took := map[string]map[string][]time.Duration{}
	texts := textsOf(newMessages(&c, uint64(size)).some(size))
	systems := map[string]operator{nameDeepAgents: theirs}
	for name, o := range ours {
		systems[name] = o
	}
	names := []string{nameDeepAgents, nameEmbedded, nameSQLiteEngine, nameBare} // the last one repeats what the one before it ran
	for round := range c.Rounds {
		for _, system := range names {
			if err := systems[system].load(ctx, fmt.Sprintf("chat-%d-%d", size, round), texts); err != nil {
				return nil, fmt.Errorf("%s: %w", system, err)
			}
		}
		for _, name := range operations {
			c.Progress(fmt.Sprintf("%s in %s messages, round %d", name, count(size), round+1))
			for _, system := range names {
				times := timesOf(name, size)
				d, err := systems[system].measure(ctx, name, times)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", system, name, err)
				}
				if took[name] == nil {
					took[name] = map[string][]time.Duration{}
				}
				took[name][system] = append(took[name][system], d/time.Duration(times))
			}
		}
	}
	for _, name := range operations {
		for _, system := range names[1:3] {
			o := Operation{Name: name, Messages: size, System: system, CPU: middle(took[name][system]), Package: middle(took[name][nameDeepAgents])}
			if system == nameSQLiteEngine {
				o.Bare = middle(took[name][nameBare])
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// timesOf returns how often an operation is done in a round, to take some hundredths of a second.
func timesOf(name string, size int) int {
	switch name {
	case "delete":
		return 1
	case "save", "aside", "rewind":
		return 20
	case "search":
		return max(5, 20_000/size)
	}
	return max(2, 10_000/size)
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// nodeEngine is the package's engine on the last loaded chat.
type nodeEngine struct {
	store *nodeStore
	chat  int
}

func (n *nodeEngine) load(_ context.Context, _ string, texts []string) error {
	answer, err := n.store.ask(nodeRequest{Op: "start"})
	for batch := range slices.Chunk(texts[1:], 1_000) {
		if err == nil {
			_, err = n.store.ask(nodeRequest{Op: "load", History: answer.History, Texts: batch})
		}
	}
	n.chat = answer.History
	return err
}

func (n *nodeEngine) measure(_ context.Context, name string, times int) (time.Duration, error) {
	answer, err := n.store.ask(nodeRequest{Op: "measure", Name: name, Words: words, History: n.chat, Times: times})
	return time.Duration(answer.CPU * float64(time.Second)), err
}

// engines are this project's engines on a chat store, on the last loaded chat.
type engines struct {
	chats  chat.Store
	settle func(ctx context.Context) error // completes background work, if not nil
	close  func() error
	engine *engine.Engine
	middle string
	said   int
}

func newEmbeddedEngines(ctx context.Context, dir string) (*engines, error) {
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	if err != nil {
		return nil, err
	}
	index, err := search.Open(ctx, store, dir, search.Options{})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &engines{chats: index.Chats(), settle: index.Update, close: func() error { return errors.Join(index.Close(), store.Close()) }}, nil
}

func (e *engines) load(ctx context.Context, chatID string, texts []string) (err error) {
	if e.engine, err = engine.Open(ctx, e.chats, engine.Options{ChatID: chatID, UserID: "bench"}); err != nil {
		return err
	}
	for batch := range slices.Chunk(texts, 1_000) {
		for _, text := range batch {
			if err := e.engine.Set(engine.User(text)); err != nil {
				return err
			}
		}
		if _, err := e.engine.Save(ctx); err != nil {
			return err
		}
	}
	at := 0
	for m, err := range e.chats.Messages(ctx, chatID) {
		if err != nil {
			return err
		}
		if at++; at == len(texts)/2 {
			e.middle = m.ID
			break
		}
	}
	return nil
}

func (e *engines) measure(ctx context.Context, name string, times int) (time.Duration, error) {
	if e.settle != nil && name == "search" {
		if err := e.settle(ctx); err != nil {
			return 0, err
		}
	}
	runtime.GC() // garbage of other contenders
	began := processTime()
	for i := range times {
		if err := e.do(ctx, name, i); err != nil {
			return 0, err
		}
	}
	return processTime() - began, nil
}

func (e *engines) do(ctx context.Context, name string, i int) (err error) {
	switch name {
	case "save":
		e.said++
		if err := e.engine.Set(engine.User(fmt.Sprint("what was said in number ", e.said))); err != nil {
			return err
		}
		_, err = e.engine.Save(ctx)
	case "aside":
		_, err = e.engine.Aside(ctx)
	case "rewind":
		_, err = e.engine.Rewind(ctx, e.middle)
	case "resolve":
		_, err = e.engine.Resolve(ctx, engine.ResolveOptions{Renderer: engine.XMLRenderer{}})
	case "graph":
		_, err = e.engine.Graph(ctx)
	case "search":
		_, err = e.chats.SearchMessages(ctx, e.engine.ChatID(), searched(i), chat.SearchOptions{})
	case "chain":
		for _, err := range e.chats.MessageChain(ctx, e.engine.ChatID(), string(e.engine.Head())) {
			if err != nil {
				return err
			}
		}
	case "delete":
		_, err = e.chats.DeleteChat(ctx, e.engine.ChatID(), chat.DeleteOptions{})
	default:
		err = fmt.Errorf("no operation %q", name)
	}
	return err
}

// searched returns the search text, the same as in deepagents.mjs.
func searched(i int) string { return words[(7*i)%len(words)] + " " + words[(11*i+3)%len(words)] }

// WriteOperations prints a table.
func WriteOperations(w io.Writer, all []Operation) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tmessages\tstore\tcpu\tpackage\ttimes as fast\tagainst the bare driver\t")
	for _, o := range all {
		bare := ""
		if o.Bare > 0 {
			bare = fmt.Sprintf("%.2f", float64(o.CPU)/float64(o.Bare))
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%v\t%v\t%.1f\t%s\t\n", o.Name, o.Messages, o.System,
			o.CPU.Round(time.Microsecond), o.Package.Round(time.Microsecond), o.Ratio(), bare)
	}
	return t.Flush()
}
