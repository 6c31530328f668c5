package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

const (
	workImport            = "import"
	importIntoLineage     = nameLineage
	importIntoSQLite      = nameSQLite
	importIntoSQLitePlain = nameSQLite + ", no full text"
)

// imports imports a file of conversations, including parsing, and compares that with inserting the
// same messages from memory into the documented schema, with prepared statements and a thousand
// rows per transaction. Both have normal durability and start with an empty store.
func (r *run) imports(ctx context.Context) error {
	const perConversation = 20
	conversations := min(r.config.StoreMessages, 50_000) / perConversation
	r.config.Progress("writing conversations to import")
	path, texts, err := r.conversationFile(conversations, perConversation)
	if err != nil {
		return err
	}
	all := subject{workload: workImport, size: len(texts), unit: unitPerSec, rate: true, rounds: 3, warm: true}
	return r.compare(ctx, all, []contender{
		r.importing(importIntoLineage, func(ctx context.Context, dir string) error {
			s, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
			if err != nil {
				return err
			}
			report, err := importer.Import(ctx, s, archive.Path(path), importer.Options{})
			if err == nil && report.NewMessages != int64(len(texts)) {
				err = errWrongCount{nameLineage, int(report.NewMessages), len(texts)}
			}
			return errors.Join(err, s.Close())
		}, len(texts)),
		r.importing(importIntoSQLite, inserting(texts, perConversation, true), len(texts)),
		r.importing(importIntoSQLitePlain, inserting(texts, perConversation, false), len(texts)),
	})
}

// importing is a contender that fills a new store in each round.
func (r *run) importing(name string, fill func(ctx context.Context, dir string) error, messages int) contender {
	var dir string
	return contender{
		system: name, durability: normal,
		before: func(context.Context) (err error) {
			if dir != "" {
				if err := os.RemoveAll(dir); err != nil {
					return err
				}
			}
			dir, err = r.directory("import")
			return err
		},
		round: func(ctx context.Context) (int, error) { return messages, fill(ctx, dir) },
	}
}

// inserting inserts conversations into the documented schema.
func inserting(texts [][]byte, perConversation int, fullText bool) func(ctx context.Context, dir string) error {
	return func(ctx context.Context, dir string) (err error) {
		opened, err := sqliteSystem(normal).open(ctx, dir)
		if err != nil {
			return err
		}
		s := opened.(*sqlStore)
		defer func() { err = errors.Join(err, s.close()) }()
		s.noText = !fullText
		var rows []sqlRow
		for c := range slices.Chunk(texts, perConversation) {
			h, err := s.start(ctx)
			if err != nil {
				return err
			}
			chat := h.(*sqlHistory)
			for i, text := range c {
				rows = append(rows, sqlRow{chat, roleOf(i), text})
			}
			if len(rows) >= 1_000 {
				if err := s.insert(ctx, rows); err != nil {
					return err
				}
				rows = rows[:0]
			}
		}
		return s.insert(ctx, rows)
	}
}

// conversationFile writes conversations as JSON lines, and also returns their texts.
func (r *run) conversationFile(conversations, each int) (path string, texts [][]byte, err error) {
	path = filepath.Join(r.dir, "conversations.jsonl")
	f, err := os.Create(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	m := newMessages(&r.config, streamImport)
	w := bufio.NewWriterSize(f, 1<<20)
	out := json.NewEncoder(w)
	for c := range conversations {
		line := struct {
			ID       string    `json:"id"`
			Messages []message `json:"messages"`
		}{ID: "conversation-" + strconv.Itoa(c)}
		for i := range each {
			text := m.one()
			texts = append(texts, text)
			line.Messages = append(line.Messages, message{roleOf(i), string(text)})
		}
		if err := out.Encode(line); err != nil {
			return "", nil, err
		}
	}
	return path, texts, w.Flush()
}
