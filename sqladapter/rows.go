package sqladapter

import (
	"database/sql"
	"encoding/json"
	"fmt"
)

// Rows are the rows of a query. Their texts are unescaped.
type Rows struct {
	rows    *sql.Rows // nil if no row matches
	escaped bool
}

// Next prepares the next row for Scan and reports whether there is one.
func (r *Rows) Next() bool { return r.rows != nil && r.rows.Next() }

// Err returns the error that ended the rows, if any.
func (r *Rows) Err() error {
	if r.rows == nil {
		return nil
	}
	return r.rows.Err()
}

// Close ends the query.
func (r *Rows) Close() error {
	if r.rows == nil {
		return nil
	}
	return r.rows.Close()
}

// Scan reads the columns of a row. JSON is read into a json.RawMessage.
func (r *Rows) Scan(into ...any) error {
	for i, v := range into {
		if v, ok := v.(*json.RawMessage); ok {
			into[i] = &document{v, r.escaped}
		}
	}
	if err := r.rows.Scan(into...); err != nil || !r.escaped {
		return err
	}
	for _, v := range into {
		switch v := v.(type) {
		case *string:
			*v = unescapeText(*v)
		case *sql.NullString:
			v.String = unescapeText(v.String)
		case *any:
			if s, ok := (*v).(string); ok {
				*v = unescapeText(s)
			}
		}
	}
	return nil
}

// Text returns a text that was scanned into sql.RawBytes.
func (r *Rows) Text(b sql.RawBytes) string {
	if r.escaped {
		return unescapeText(string(b))
	}
	return string(b)
}

// document scans JSON, nil for null.
type document struct {
	to      *json.RawMessage
	escaped bool
}

// Scan implements sql.Scanner.
func (d *document) Scan(from any) error {
	var text string
	switch from := from.(type) {
	case nil:
		*d.to = nil
		return nil
	case string:
		text = from
	case []byte:
		text = string(from)
	default:
		return fmt.Errorf("JSON of type %T", from)
	}
	if d.escaped {
		text = unescapeJSON(text)
	}
	*d.to = json.RawMessage(text)
	return nil
}
