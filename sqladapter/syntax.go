package sqladapter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Statement is SQL for all dialects, which [Syntax.Render] renders. It is written as for SQLite,
// with all identifiers in double quotes, and with marks where databases differ:
//
//	?             a parameter
//	{list}        n parameters with commas between them
//	{rows:k}      n rows of k parameters, for VALUES; {rows:ktj} says that the one
//	              numbered j is terms
//	{likes:c}     n conditions: AND column c LIKE a parameter
//	{recursive}   the word that makes WITH recursive
//	{unlimited}   at the end: no limit on recursion
//	{same:c=d}    a condition: column c of a documented table equals column d of ours, each
//	              as alias.column
//	{exactly}     after a column of a documented table: its values are compared as those of
//	              our tables are
//	{version}     a text that changes when a program overwrites the message m
//	{current:k}   a condition: AND row k of lineage_messages is of the current version of
//	              the message m
//	{lasting:k}   a condition: AND the depth in row k of lineage_messages counts
//	{kept:c}      a condition: AND the chat of column c, as alias.column, is not being
//	              deleted
//	{limit}       after ORDER BY: at most as many rows as a parameter
//	{nth}         after ORDER BY: only the row that follows as many as a parameter
//	{after:o}     a condition: a row of chats comes after a position in a list that is ordered by
//	              update time and id, of which two parameters are given. o is > or, for a list
//	              that begins with the newest, <. With {after:user o} a parameter before them is
//	              the user of the chats
//	{until:o}     a condition: the update time of a row of chats is not after the end of a list, a
//	              parameter. o is <= or, for a list that begins with the newest, >=. See
//	              [Statement.OfAllTimes] for {until:all o}
//	{metadata}    n conditions: AND the metadata of a row of chats passes a filter; see
//	              [MetadataSyntax]
type Statement string

// OfAllTimes returns a statement with {until:o} for a list that has no limit of time, where a planner chooses between indexes.
// With + 0, the index of times has no condition, so it is not preferred to that of the user's times. That "id" is not less than
// ” makes a planner without statistics expect few rows from the latter, so that it does not sort.
func (s Statement) OfAllTimes() Statement {
	return Statement(strings.Replace(string(s), "{until:", "{until:all ", 1))
}

// Syntax is the syntax of a dialect for Statements.
type Syntax struct {
	// Parameter returns a parameter by its number, from 1.
	Parameter func(n int) string
	// Quotes are the characters before and after an identifier.
	Quotes [2]string
	// Fold, when not nil, converts identifiers.
	Fold func(string) string
	// Recursive, Unlimited, Exactly and Version replace their marks. Version is empty if triggers
	// delete index rows of overwritten messages. With Exactly, Loosely makes a column of our tables
	// compare like one of a documented table, so that the latter's index can be used.
	Recursive, Unlimited, Exactly, Loosely, Version string
	// Epochs is set if a stored depth is valid only with the current epoch of its chat in lineage_chains. Triggers
	// increase the epoch when a chain changes. In other databases triggers delete such depths.
	Epochs bool
	// Key, when not nil, converts a parameter that is compared with an id or a name.
	Key func(parameter string) string
	// Argument, when not nil, converts an argument for the driver. Bytes converts the bytes from Terms.
	Argument func(any) any
	Bytes    func([]byte) any
	// Terms, when not nil, converts a parameter to terms.
	Terms func(parameter string) string
	// Limit and Nth replace their marks, with a parameter.
	Limit, Nth func(number string) string
	RowValues  RowValues
	Metadata   MetadataSyntax
	// Integrity, when not empty, is a query that compares a table with its indexes. It returns a row per difference,
	// or "ok".
	Integrity Statement
}

// RowValues says with which comparisons of row values, such as (a, b) < (1, 2), a page is read from an index. The page is one of
// all rows, or of the rows that have given values in the first columns of the index.
type RowValues uint8

const (
	// NoRowValues means that the database has no row values.
	NoRowValues RowValues = iota
	// OrderedColumns means comparisons without the columns that have given values.
	OrderedColumns
	// AllColumns means comparisons that include the columns with given values. They keep a planner that does not know
	// the values from choosing an index with only the other columns.
	AllColumns
)

// MetadataSyntax describes how a database finds a superset of the chats that match a metadata filter.
type MetadataSyntax struct {
	// Condition is a condition on a row of chats, with the parameters of Args.
	Condition func(parameter func() string) string
	Args      func(MetadataValue) []any
	// Keys and KeysOfUser are set if there is an index for the condition. They read the id and update time of
	// matching chats in a time range, newest first, and whether the id is less than another id. They read up to Few+1
	// rows, or all. Their parameters are the user, the range, those of Args, and the other id.
	Keys, KeysOfUser Statement
	Few              int
}

// MetadataValue is a value that the metadata must have.
type MetadataValue struct {
	// Path are the keys that lead to the value.
	Path []string
	// Value is a string, bool or json.Number. JSON is the same value as JSON text.
	Value any
	JSON  json.RawMessage
	// Least and Greatest are the floats next to a number.
	Least, Greatest float64
}

// Render returns the statement in the dialect's syntax, with n repetitions of marks that repeat.
func (x *Syntax) Render(s Statement, n int) (string, error) {
	var b strings.Builder
	count := 0
	parameter := func() string { count++; return x.Parameter(count) }
	for rest := string(s); rest != ""; {
		at := strings.IndexAny(rest, `"?{'`)
		if at < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:at])
		mark := rest[at]
		rest = rest[at+1:]
		if mark == '?' {
			b.WriteString(x.compared(b.String(), parameter)())
			continue
		}
		end := strings.IndexByte(rest, map[byte]byte{'"': '"', '\'': '\'', '{': '}'}[mark])
		if end < 0 {
			return "", fmt.Errorf("statement %q: no end to %c", s, mark)
		}
		word := rest[:end]
		rest = rest[end+1:]
		switch mark {
		case '"':
			b.WriteString(x.Identifier(word))
		case '\'':
			b.WriteString("'" + word + "'")
		default:
			text, err := x.mark(word, n, b.String(), parameter)
			if err != nil {
				return "", fmt.Errorf("statement %q: %w", s, err)
			}
			b.WriteString(text)
		}
	}
	return b.String(), nil
}

// Identifier returns a quoted name.
func (x *Syntax) Identifier(name string) string {
	if x.Fold != nil {
		name = x.Fold(name)
	}
	return x.Quotes[0] + name + x.Quotes[1]
}

// keyEnds are the suffixes of the names of columns with ids and names.
var keyEnds = []string{"id", "Id", "name", "scope"}

// compared returns a function that writes the parameters after a text. In a condition, after an identifier and an
// operator, or after IN and a parenthesis, the parameters are written for a comparison with the identifier.
func (x *Syntax) compared(before string, parameter func() string) func() string {
	compared, isCompared := strings.CutSuffix(before, " IN (")
	for _, operator := range []string{" = ", " < ", " > "} {
		if !isCompared {
			compared, isCompared = strings.CutSuffix(before, operator)
		}
	}
	if x.Key == nil || !isCompared || !strings.Contains(before, "WHERE") || !slices.ContainsFunc(keyEnds, func(end string) bool { return strings.HasSuffix(compared, end+x.Quotes[1]) }) {
		return parameter
	}
	return func() string { return x.Key(parameter()) }
}

// column returns a column, given as alias.column. Aliases of one letter are not quoted.
func (x *Syntax) column(name string) string {
	alias, column, _ := strings.Cut(name, ".")
	if len(alias) > 1 {
		alias = x.Identifier(alias)
	}
	return alias + "." + x.Identifier(column)
}

func (x *Syntax) same(theirs, ours string) string {
	if x.Exactly == "" {
		return theirs + " = " + ours
	}
	return "(" + theirs + " = " + ours + " " + x.Loosely + " AND " + theirs + " " + x.Exactly + " = " + ours + ")"
}

func (x *Syntax) mark(word string, n int, before string, parameter func() string) (string, error) {
	list := func(n int) string {
		parameters := make([]string, n)
		parameter := x.compared(before, parameter)
		for i := range parameters {
			parameters[i] = parameter()
		}
		return strings.Join(parameters, ", ")
	}
	word, argument, _ := strings.Cut(word, ":")
	switch word {
	case "list":
		return list(n), nil
	case "rows":
		return x.rows(argument, n, parameter)
	case "recursive":
		return x.Recursive, nil
	case "unlimited":
		return x.Unlimited, nil
	case "exactly":
		return x.Exactly, nil
	case "version":
		return cmp.Or(x.Version, "''"), nil
	case "current":
		if x.Version == "" {
			return "", nil
		}
		return "AND " + x.Identifier(argument) + "." + x.Identifier("version") + " = " + x.Version, nil
	case "lasting":
		if !x.Epochs {
			return "", nil
		}
		named := func(column string) string { return x.Identifier(argument) + "." + x.Identifier(column) }
		return "AND " + named("epoch") + " = COALESCE((SELECT e." + x.Identifier("epoch") + " FROM " + x.Identifier("lineage_chains") + " e WHERE e." +
			x.Identifier("chatId") + " = " + named("chatId") + "), 0)", nil
	case "same":
		theirs, ours, _ := strings.Cut(argument, "=")
		return x.same(x.column(theirs), x.column(ours)), nil
	case "kept":
		return "AND NOT EXISTS (SELECT 1 FROM " + x.Identifier("lineage_deleting") + " d WHERE " + x.same(x.column(argument), x.column("d.chatId")) + ")", nil
	case "likes":
		var b strings.Builder
		for range n {
			b.WriteString(" AND " + x.Identifier(argument) + " LIKE " + parameter())
		}
		return b.String(), nil
	case "limit":
		return x.Limit(parameter()), nil
	case "nth":
		return x.Nth(parameter()), nil
	case "after":
		operator, ofUser := strings.CutPrefix(argument, "user ")
		return x.after(operator, ofUser, parameter), nil
	case "until":
		updated := x.Identifier("updatedAt")
		if operator, all := strings.CutPrefix(argument, "all "); all {
			return x.Identifier("id") + " >= '' AND " + updated + " + 0 " + operator + " " + parameter(), nil
		}
		return updated + " " + argument + " " + parameter(), nil
	case "metadata":
		var b strings.Builder
		for range n {
			b.WriteString(" AND " + x.Metadata.Condition(parameter))
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("unknown mark %q", word)
}

// after returns the condition that a row of chats comes after a position.
func (x *Syntax) after(operator string, ofUser bool, parameter func() string) string {
	key := x.Key
	if key == nil {
		key = func(parameter string) string { return parameter }
	}
	userCondition, columns, position := "", []string{x.Identifier("updatedAt"), x.Identifier("id")}, []string(nil)
	if ofUser {
		user, userValue := x.Identifier("userId"), key(parameter())
		userCondition = user + " = " + userValue + " AND "
		if x.RowValues == AllColumns {
			columns, position = append([]string{user}, columns...), append(position, userValue)
		}
	}
	updated, id := parameter(), key(parameter())
	if x.RowValues == NoRowValues {
		return userCondition + columns[0] + " " + operator + "= " + updated + " AND (" + columns[0] + " " + operator + " " + updated + " OR " + columns[1] + " " + operator + " " + id + ")"
	}
	position = append(position, updated, id)
	return userCondition + "(" + strings.Join(columns, ", ") + ") " + operator + " (" + strings.Join(position, ", ") + ")"
}

// rows returns n rows of parameters. The argument is the number of columns, and may continue with "t" and the number of the column
// that has terms, from 1.
func (x *Syntax) rows(argument string, n int, parameter func() string) (string, error) {
	columns, terms, _ := strings.Cut(argument, "t")
	width, err := strconv.Atoi(columns)
	if err != nil {
		return "", err
	}
	rows, values := make([]string, n), make([]string, width)
	for i := range rows {
		for j := range values {
			values[j] = parameter()
			if terms == strconv.Itoa(j+1) && x.Terms != nil {
				values[j] = x.Terms(values[j])
			}
		}
		rows[i] = "(" + strings.Join(values, ", ") + ")"
	}
	return strings.Join(rows, ", "), nil
}
