// Package tables describes the tables of a projection and generates their statements, in the syntax
// of sqladapter.Statement.
package tables

import (
	"fmt"
	"strings"
)

// Table is a table. The first column is the key.
type Table struct {
	Name    string
	Columns []string
	// Fixed is the number of leading columns that are not updated.
	Fixed int
	// Of are the columns by which the rows of an owner are looked up, if any.
	Of []string
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
)

// All are the tables.
var All = []*Table{
	Chats, Messages, Branches, Checkpoints, Origins, Users, Blocks, Sets, Spans, Usages, Contexts, Values, Summaries, Scopes, Reach, Pins, Erased, Orphans,
}

// New returns a table; columns are separated by spaces.
func New(name string, fixed int, columns string) *Table {
	return &Table{Name: name, Columns: strings.Fields(columns), Fixed: fixed}
}

func (t *Table) of(columns ...string) *Table {
	t.Of = columns
	return t
}

// Statements returns the statements by name.
func (t *Table) Statements() map[string]string {
	all := map[string]string{"insert": t.Insert(), "select": t.Select(), "known": t.Known(), "page": t.Page(), "count": t.Count(), "remove": t.Remove()}
	if len(t.Columns) > t.Fixed {
		all["update"] = t.Update()
	}
	if t.Of != nil {
		all["of"] = t.SelectOf()
	}
	return all
}

// Insert inserts rows.
func (t *Table) Insert() string {
	return fmt.Sprintf(`INSERT INTO %q (%s) VALUES {rows:%d}`, t.Name, t.list(""), len(t.Columns))
}

// Select reads the rows with a list of keys.
func (t *Table) Select() string { return t.selectBy(t.Columns[:1]) }

// SelectOf reads the rows with values of the columns Of, and a list of values of the last of them.
func (t *Table) SelectOf() string { return t.selectBy(t.Of) }

func (t *Table) selectBy(columns []string) string {
	conditions := ""
	for _, c := range columns[:len(columns)-1] {
		conditions += fmt.Sprintf("%q = ? AND ", c)
	}
	return fmt.Sprintf(`SELECT %s FROM %q WHERE %s%q IN ({list})`, t.list(""), t.Name, conditions, columns[len(columns)-1])
}

// Known reads which keys of a list exist.
func (t *Table) Known() string {
	return fmt.Sprintf(`SELECT %q FROM %q WHERE %[1]q IN ({list})`, t.Columns[0], t.Name)
}

// Update writes the columns that can change. The key is the last parameter.
func (t *Table) Update() string {
	return fmt.Sprintf(`UPDATE %q SET %s WHERE %q = ?`, t.Name, (&Table{Columns: t.Columns[t.Fixed:]}).list(" = ?"), t.Columns[0])
}

// Remove deletes the rows with a list of keys.
func (t *Table) Remove() string {
	return fmt.Sprintf(`DELETE FROM %q WHERE %q IN ({list})`, t.Name, t.Columns[0])
}

// Page reads the keys after a key.
func (t *Table) Page() string {
	return fmt.Sprintf(`SELECT %q FROM %q WHERE %[1]q > ? ORDER BY %[1]q {limit}`, t.Columns[0], t.Name)
}

// Count counts the rows.
func (t *Table) Count() string { return fmt.Sprintf(`SELECT COUNT(*) AS "count" FROM %q`, t.Name) }

// list returns the columns separated by commas, each with a suffix.
func (t *Table) list(behind string) string {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = `"` + c + `"` + behind
	}
	return strings.Join(columns, ", ")
}
