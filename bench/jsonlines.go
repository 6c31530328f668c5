package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the report as JSON lines, with the kind of each record in "type".
func (r *Report) WriteJSON(w io.Writer) error {
	if err := writeRecords(w, "environment", []Environment{r.Environment}); err != nil {
		return err
	}
	if err := writeRecords(w, "measurement", r.Rows); err != nil {
		return err
	}
	if err := writeRecords(w, "ratio", r.Ratios); err != nil {
		return err
	}
	if err := writeRecords(w, "growth", r.Growth); err != nil {
		return err
	}
	if err := writeRecords(w, "goal", r.Goals); err != nil {
		return err
	}
	return writeRecords(w, "unmeasured", r.Skipped)
}

// writeRecords writes structs as records of a kind, which is their first member.
func writeRecords[T any](w io.Writer, kind string, all []T) error {
	for _, x := range all {
		var fields bytes.Buffer
		out := json.NewEncoder(&fields)
		out.SetEscapeHTML(false)
		if err := out.Encode(x); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, `{"type":%q,%s`, kind, fields.Bytes()[1:]); err != nil {
			return err
		}
	}
	return nil
}

// ReadJSON reads the output of WriteJSON. Records of unknown kinds are ignored.
func ReadJSON(in io.Reader) (*Report, error) {
	var r Report
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := r.readRecord(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return &r, lines.Err()
}

func (r *Report) readRecord(line []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case "environment":
		return json.Unmarshal(line, &r.Environment)
	case "measurement":
		return appendJSON(&r.Rows, line)
	case "ratio":
		return appendJSON(&r.Ratios, line)
	case "growth":
		return appendJSON(&r.Growth, line)
	case "goal":
		return appendJSON(&r.Goals, line)
	case "unmeasured":
		return appendJSON(&r.Skipped, line)
	case "":
		return fmt.Errorf("not a record of a benchmark")
	}
	return nil
}

func appendJSON[T any](to *[]T, line []byte) error {
	var x T
	if err := json.Unmarshal(line, &x); err != nil {
		return err
	}
	*to = append(*to, x)
	return nil
}
