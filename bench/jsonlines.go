package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the report as records, one JSON object a line, each with its
// kind in "type".
func (r *Report) WriteJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	records := []any{struct {
		Type string `json:"type"`
		Environment
	}{"environment", r.Environment}}
	for _, x := range r.Rows {
		records = append(records, struct {
			Type string `json:"type"`
			Row
		}{"measurement", x})
	}
	for _, x := range r.Ratios {
		records = append(records, struct {
			Type string `json:"type"`
			Ratio
		}{"ratio", x})
	}
	for _, x := range r.Growth {
		records = append(records, struct {
			Type string `json:"type"`
			Growth
		}{"growth", x})
	}
	for _, x := range r.Goals {
		records = append(records, struct {
			Type string `json:"type"`
			Goal
		}{"goal", x})
	}
	for _, x := range r.Skipped {
		records = append(records, struct {
			Type string `json:"type"`
			Skipped
		}{"unmeasured", x})
	}
	for _, x := range records {
		if err := out.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

// ReadJSON reads what WriteJSON wrote. Records of kinds that it does not know are
// left out.
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
