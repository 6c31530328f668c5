package archives

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
)

// langGraph reads LangGraph checkpoints. A checkpoint has all messages so far; the checkpoints of a
// thread become one history with forks, in which common messages are stored once. Other data of
// checkpoints becomes messages of the aside "log".
func langGraph() archive.Format {
	return archive.Format{
		Name: "langgraph",
		Detect: func(h archive.Head) bool {
			return mentions(h, "checkpoints") && (mentions(h, "writes") || mentions(h, "checkpoint_writes") || mentions(h, "checkpoint_blobs"))
		},
		Read: readLangGraph,
	}
}

func readLangGraph(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		db, done, err := openDatabase(ctx, in)
		if err == nil {
			defer done()
			if !db.has("checkpoints", "thread_id", "checkpoint_id", "checkpoint") {
				err = fmt.Errorf("%w: no table of checkpoints", archive.ErrMalformed)
			}
		}
		if err != nil {
			yield(nil, whole(ctx, in, err))
			return
		}
		g := &graphReader{reader{database: db, in: in, yield: yield}}
		query := `SELECT ` + db.list("checkpoints", "thread_id") + ` FROM checkpoints GROUP BY checkpoints.thread_id ORDER BY checkpoints.thread_id`
		g.end(ctx, g.eachItem(ctx, query, nil, func(r row) error { return g.thread(ctx, r) }))
	}
}

type graphReader struct{ reader }

// graphThread is the thread being read.
type graphThread struct {
	id      string
	out     partCollector
	nodes   map[nodeKey]string // ids of existing nodes
	ids     map[string]bool
	stated  map[string]bool // checkpoints in the log
	parents map[string]bool // checkpoints that others follow
	created time.Time
	updated time.Time
	current string
}

func (g *graphReader) thread(ctx context.Context, r row) error {
	id := r["thread_id"]
	t := &graphThread{id: r.text("thread_id"), nodes: make(map[nodeKey]string), ids: make(map[string]bool), stated: make(map[string]bool)}
	t.out = partCollector{Conversation: &archive.Conversation{SourceID: t.id}, r: &g.reader}
	g.begin()
	err := g.takeRow(r)
	if err == nil {
		err = g.followed(ctx, t, id)
	}
	if isLimit(err) {
		return g.skip(ctx, archive.Position{File: g.in.Name, Inside: "thread " + t.id}, err)
	}
	if err != nil {
		return err
	}
	order := ` ORDER BY checkpoints.checkpoint_id`
	if g.has("checkpoints", "checkpoint_ns") {
		order = ` ORDER BY checkpoints.checkpoint_ns, checkpoints.checkpoint_id`
	}
	query := `SELECT ` + g.list("checkpoints", "checkpoint_ns", "checkpoint_id", "checkpoint", "parent_checkpoint_id", "type", "metadata") +
		` FROM checkpoints WHERE thread_id = ?` + order
	err = g.eachItem(ctx, query, []any{id}, func(r row) error {
		at := g.next("checkpoint " + r.text("checkpoint_id") + " of thread " + t.id)
		if err := g.checkpoint(ctx, t, id, r, at); err != nil {
			if err := g.skip(ctx, at, err); err != nil {
				return err
			}
		}
		return t.out.flush()
	})
	if err != nil {
		return err
	}
	t.out.Created, t.out.Updated, t.out.Current = t.created, t.updated, t.current
	return t.out.finish()
}

// checkpoint is a decoded row of the table of checkpoints.
type checkpoint struct {
	row
	namespace string
	record    fields // without what other tables have
	channels  fields // with what other tables have
	messages  string // name of the channel with the messages, empty for none
	created   time.Time
	at        archive.Position
}

// name is unique in the thread.
func (c *checkpoint) name() string { return c.namespace + "/" + c.text("checkpoint_id") }

// checkpoint adds the new messages of a checkpoint.
func (g *graphReader) checkpoint(ctx context.Context, t *graphThread, thread any, r row, at archive.Position) error {
	if err := g.takeRow(r); err != nil {
		return err
	}
	v, err := decodeTyped(&g.item, r.text("type"), r.bytes("checkpoint"))
	if err != nil {
		return err
	}
	record, ok := v.(fields)
	if !ok {
		return fmt.Errorf("%w: checkpoint is not an object", archive.ErrMalformed)
	}
	c := &checkpoint{row: r, namespace: r.text("checkpoint_ns"), record: record, created: parseTime(record.text("ts")), at: at}
	channels, _ := record.get("channel_values").(fields)
	var damage error
	c.channels, damage = g.blobs(ctx, thread, r, record, slices.Clone(channels))
	var messages []any
	c.messages, messages = messageChannel(c.channels)
	tip := t.addMessages(c, messages)
	if c.namespace == "" {
		if t.created.IsZero() {
			t.created = c.created
		}
		t.updated, t.current = c.created, tip
	}
	if err := g.log(t, c, tip); err != nil {
		return errors.Join(damage, err)
	}
	if !t.parents[c.name()] {
		damage = errors.Join(damage, g.pending(ctx, t, thread, c))
	}
	return damage
}

// addMessages adds the messages of a checkpoint that no checkpoint before had in the same history. It returns the id of the last
// message.
func (t *graphThread) addMessages(c *checkpoint, messages []any) (tip string) {
	parent := nodeKey{}
	parent.namespace(c.namespace)
	for i, m := range messages {
		n, ok := messageNode(m)
		if !ok {
			n = archive.Node{Role: "message", Type: "application/json", Body: appendJSON(nil, m)}
		}
		key := parent.next(&n)
		id, seen := t.nodes[key]
		if !seen {
			n.At = c.at
			n.At.Inside += fmt.Sprintf(", message %d", i+1)
			if n.Created.IsZero() {
				n.Created = c.created
			}
			id = t.name(c.namespace, n.ID, key)
			n.ID, n.Parent, n.Root, n.Aside = id, tip, tip == "", c.namespace
			t.nodes[key] = id
			t.out.add(n)
		}
		tip, parent = id, key
	}
	return tip
}

// followed records the checkpoints of a thread that have a successor.
func (g *graphReader) followed(ctx context.Context, t *graphThread, thread any) error {
	t.parents = make(map[string]bool)
	if !g.has("checkpoints", "checkpoint_ns", "parent_checkpoint_id") {
		return nil
	}
	query := `SELECT DISTINCT ` + g.list("checkpoints", "checkpoint_ns", "parent_checkpoint_id") + ` FROM checkpoints WHERE thread_id = ? AND parent_checkpoint_id IS NOT NULL`
	return g.each(ctx, query, []any{thread}, func(r row) error {
		t.parents[r.text("checkpoint_ns")+"/"+r.text("parent_checkpoint_id")] = true
		return nil
	})
}

// pending adds the writes after a checkpoint without a successor: no state contains them yet.
func (g *graphReader) pending(ctx context.Context, t *graphThread, thread any, c *checkpoint) error {
	if !g.has("writes", "thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value") {
		return nil
	}
	follows := "checkpoint " + c.name()
	query := `SELECT ` + g.list("writes", "task_id", "idx", "channel", "type", "value") + ` FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY writes.task_id, writes.idx`
	var damage error
	err := g.each(ctx, query, []any{thread, c.namespace, c.text("checkpoint_id")}, func(r row) error {
		name := "write " + c.name() + "/" + r.text("task_id") + "/" + r.text("idx")
		v, err := decodeTyped(&g.item, r.text("type"), r.bytes("value"))
		if isLimit(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			damage = errors.Join(damage, fmt.Errorf("%s: %w", name, err))
			return nil
		}
		t.out.add(archive.Node{
			ID: name, Parent: follows, Aside: "log", Role: "write", Name: r.text("channel"), Type: "application/json", Body: appendJSON(nil, v), Created: c.created, At: c.at,
		})
		follows = name
		return nil
	})
	return errors.Join(damage, err)
}

// name returns the id of a node: that of the message, unless another message of the thread has it.
func (t *graphThread) name(namespace, id string, key nodeKey) string {
	if id != "" && namespace != "" {
		id = namespace + "/" + id
	}
	if id == "" || t.ids[id] {
		id = "message-" + key.String()
	}
	t.ids[id] = true
	return id
}

// log adds a checkpoint to the log: its record, its metadata and the values of its channels, without the messages. tip is the id of
// the last message.
func (g *graphReader) log(t *graphThread, c *checkpoint, tip string) error {
	kept := fields{{"id", c.text("checkpoint_id")}, {"namespace", c.namespace}, {"parent", c.text("parent_checkpoint_id")}, {"tip", tip}}
	for _, f := range c.record {
		if f.key != "channel_values" && f.key != "id" {
			kept = append(kept, f)
		}
	}
	if c.messages != "" {
		kept = append(kept, field{"messages", c.messages})
	}
	var values fields
	for _, f := range c.channels {
		if f.key != c.messages {
			values = append(values, f)
		}
	}
	if len(values) > 0 {
		kept = append(kept, field{"channel_values", values})
	}
	if raw := c.bytes("metadata"); len(raw) > 0 {
		v, err := decodeTyped(&g.item, "", raw)
		if isLimit(err) {
			return err
		}
		if err == nil {
			kept = append(kept, field{"metadata", v})
		}
	}
	n := archive.Node{
		ID: "checkpoint " + c.name(), Aside: "log", Role: "checkpoint", Type: "application/json", Created: c.created, At: c.at,
		Body: appendJSON(nil, kept),
	}
	if parent := "checkpoint " + c.namespace + "/" + c.text("parent_checkpoint_id"); t.stated[parent] {
		n.Parent = parent
	} else {
		n.Root = true
	}
	t.stated[n.ID] = true
	t.out.add(n)
	return nil
}

// blobs adds the channels that are stored in a separate table.
func (g *graphReader) blobs(ctx context.Context, thread any, r row, state, channels fields) (fields, error) {
	versions, _ := state.get("channel_versions").(fields)
	if !g.has("checkpoint_blobs", "thread_id", "checkpoint_ns", "channel", "version", "type", "blob") || len(versions) == 0 {
		return channels, nil
	}
	known := make(map[string]bool, len(channels))
	for _, c := range channels {
		known[c.key] = c.value != nil
	}
	query := `SELECT ` + g.list("checkpoint_blobs", "type", "blob") +
		` FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ? AND CAST(version AS TEXT) = ? LIMIT 1`
	var damage error
	for _, v := range versions {
		if known[v.key] {
			continue
		}
		version, ok := v.value.(string)
		if !ok {
			version = string(appendJSON(nil, v.value))
		}
		err := g.each(ctx, query, []any{thread, r.text("checkpoint_ns"), v.key, version}, func(b row) error {
			if b.text("type") == "empty" {
				return nil
			}
			value, err := decodeTyped(&g.item, b.text("type"), b.bytes("blob"))
			if err != nil {
				return err
			}
			channels = append(channels, field{v.key, value})
			known[v.key] = value != nil
			return nil
		})
		if err != nil {
			damage = fmt.Errorf("channel %q: %w", v.key, err)
		}
		if isLimit(err) {
			break
		}
	}
	return channels, damage
}

// decodeTyped decodes a value by its type name. Types whose decoding executes code are refused.
func decodeTyped(a *allowance, kind string, raw []byte) (any, error) {
	switch kind {
	case "msgpack":
		return unpack(a, raw)
	case "json", "":
		if len(raw) == 0 {
			return nil, nil
		}
		return decodeJSON(a, raw)
	case "null":
		return nil, nil
	case "bytes", "bytearray":
		return raw, nil
	case "pickle":
		return nil, fmt.Errorf("pickled value: %w", archive.ErrRefused)
	}
	return nil, fmt.Errorf("%w: value of type %q", archive.ErrMalformed, kind)
}

// messageChannel returns the name and value of the channel with messages.
func messageChannel(channels fields) (string, []any) {
	isList := func(v any) ([]any, bool) {
		list, _ := v.([]any)
		if len(list) == 0 {
			return nil, false
		}
		_, ok := messageNode(list[0])
		return list, ok
	}
	if list, ok := isList(channels.get("messages")); ok {
		return "messages", list
	}
	for _, f := range channels {
		if list, ok := isList(f.value); ok && !graphInternal(f.key) {
			return f.key, list
		}
	}
	return "", nil
}

// graphInternal reports whether a channel is internal to the graph, such as its initial input.
func graphInternal(name string) bool {
	return len(name) > 2 && name[:2] == "__" || len(name) > 7 && name[:7] == "branch:"
}
