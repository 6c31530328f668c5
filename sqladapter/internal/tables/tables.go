// Package tables describes the tables of chats and of a projection, and generates their statements.
package tables

import (
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/sqladapter"
)

// Table is a table. The first column is the key.
type Table struct {
	Name    string
	Columns []string
	// Fixed is the number of leading columns that are not updated.
	Fixed int
	// Of lists the columns that name the owner of a row, if it has one.
	Of []string

	// Insert inserts rows.
	Insert sqladapter.Statement
	// Select reads the rows with a list of keys. SelectOf reads the rows with values of the columns
	// Of, and a list of values of the last of them; it is empty if there are none.
	Select, SelectOf sqladapter.Statement
	// Known reads which keys of a list exist.
	Known sqladapter.Statement
	// Update writes the columns that can change. The key is the last parameter. Update is empty if no column can
	// change.
	Update sqladapter.Statement
	// Remove deletes the rows with a list of keys.
	Remove sqladapter.Statement
	// Page reads the keys after a key. Count counts the rows.
	Page, Count sqladapter.Statement
}

// The documented tables of chats, and the origins of messages.
var (
	Chats       = New("chats", 1, "id userId title metadata createdAt updatedAt")
	Messages    = New("messages", 1, "id chatId parentId name type data createdAt")
	Branches    = New("branches", 3, "id chatId name headMessageId isActive createdAt").of("chatId")
	Checkpoints = New("checkpoints", 3, "id chatId name messageId createdAt").of("chatId")
	Origins     = New("lineage_origins", 1, "messageId userId modelId sourceId derivedFrom")
)

// The tables of content and structure.
var (
	Users  = New("users", 1, "id")
	Blocks = New("content_blocks", 1, "id content_type body origin_kind origin_user_id origin_model_id origin_source_id origin_parent_id "+
		"created_at size erased")
	Sets   = New("span_sets", 1, "id parent_span_id alternatives created_at")
	Spans  = New("spans", 1, "id parent_span_id span_set_id run_id seq position")
	Usages = New("message_usages", 1, "id content_id role created_at span_id place kind name revision content_type source_id metadata "+
		"origin_kind origin_user_id origin_model_id origin_source_id origin_parent_id piece opaque form_id extras lookup metadata_id").of("span_id")
	Contexts = New("contexts", 1, "id parent_context_id tip_span_id summary_text summary_embedding system_prompt_override model_override created_at "+
		"thread_id chat_id base_span_id span_set_id summary_content_id overrides metadata branch_id remnant")
	Values    = New("lineage_values", 1, "id scope owner key value content_id latest set_at commit_number seen_span_id").of("scope", "owner")
	Summaries = New("lineage_summaries", 1, "id context_id level after_span_id to_span_id parts content_id summary_text model embedding created_at").of("context_id")
)

// The tables with the state of the projection.
var (
	Scopes  = New("lineage_scopes", 2, "scope chat_id metadata")
	Reach   = New("lineage_reach", 1, "scope run_id last_seq own")
	Pins    = New("lineage_pins", 1, "id scope run_id seq").of("scope")
	Erased  = New("lineage_erased", 1, "content_id")
	Orphans = New("lineage_orphans", 1, "content_id")
	LeftOut = New("lineage_left_out", 1, "scope reason")
)

// All are the tables.
var All = []*Table{
	Chats, Messages, Branches, Checkpoints, Origins, Users, Blocks, Sets, Spans, Usages, Contexts, Values, Summaries, Scopes, Reach, Pins, Erased, Orphans, LeftOut,
}

// New returns a table; columns are separated by spaces.
func New(name string, fixed int, columns string) *Table {
	t := &Table{Name: name, Columns: strings.Fields(columns), Fixed: fixed}
	key := t.Columns[0]
	t.Insert = statement(`INSERT INTO %q (%s) VALUES {rows:%d}`, name, list(t.Columns, ""), len(t.Columns))
	t.Select = t.selectBy(key)
	t.Known = statement(`SELECT %q FROM %q WHERE %[1]q IN ({list})`, key, name)
	if len(t.Columns) > fixed {
		t.Update = statement(`UPDATE %q SET %s WHERE %q = ?`, name, list(t.Columns[fixed:], " = ?"), key)
	}
	t.Remove = statement(`DELETE FROM %q WHERE %q IN ({list})`, name, key)
	t.Page = statement(`SELECT %q FROM %q WHERE %[1]q > ? ORDER BY %[1]q {limit}`, key, name)
	t.Count = statement(`SELECT COUNT(*) AS "count" FROM %q`, name)
	return t
}

func (t *Table) of(columns ...string) *Table {
	t.Of, t.SelectOf = columns, t.selectBy(columns...)
	return t
}

func (t *Table) selectBy(columns ...string) sqladapter.Statement {
	conditions, last := "", len(columns)-1
	for _, c := range columns[:last] {
		conditions += fmt.Sprintf("%q = ? AND ", c)
	}
	return statement(`SELECT %s FROM %q WHERE %s%q IN ({list})`, list(t.Columns, ""), t.Name, conditions, columns[last])
}

func statement(format string, args ...any) sqladapter.Statement {
	return sqladapter.Statement(fmt.Sprintf(format, args...))
}

// list returns columns separated by commas, each with a suffix.
func list(columns []string, suffix string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = `"` + c + `"` + suffix
	}
	return strings.Join(quoted, ", ")
}
