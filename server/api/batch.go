package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"github.com/lineage-store/lineage/lineage"
)

// maxOperations limits the operations of a batch.
const maxOperations = 1000

type batchOf struct {
	Operations []json.RawMessage `json:"operations" doc:"what to do, in order; #N as a thread, context or position is what operation N, from 0, has made"`
}

// operations returns the types of operations by name.
func (a *API) operations() map[string]reflect.Type {
	all := make(map[string]reflect.Type)
	for _, r := range a.routes {
		if r.op != "" {
			all[r.op] = r.in
		}
	}
	return all
}

// batch runs several operations in one commit.
func (a *API) batch(ctx context.Context, c *call, in *batchOf) error {
	if len(in.Operations) == 0 || len(in.Operations) > maxOperations {
		return fmt.Errorf("operations: %w: there are 1 to %d", lineage.ErrInvalid, maxOperations)
	}
	types := a.operations()
	all := make([]operation, len(in.Operations))
	for i, text := range in.Operations {
		op, err := parseOperation(types, text)
		if err != nil {
			return &operationError{i, err}
		}
		all[i] = op
	}
	done, err := a.commit(c, all)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(`{"items":[`)
	for i := range done {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := c.encodeMade(ctx, &b, &done[i]); err != nil {
			return err
		}
	}
	b.WriteString("]}\n")
	return c.sendJSON(http.StatusOK, b.Bytes())
}

// parseOperation reads an operation: an object with its name and the members of its route's path and body.
func parseOperation(types map[string]reflect.Type, text json.RawMessage) (operation, error) {
	var named struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(text, &named); err != nil {
		return nil, fmt.Errorf("%w: must be an object with op", lineage.ErrInvalid)
	}
	t, known := types[named.Op]
	if !known {
		return nil, fmt.Errorf("op %.100q: %w: there is no such operation", named.Op, lineage.ErrInvalid)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%w: must be an object", lineage.ErrInvalid)
	}
	v := reflect.New(t)
	for _, f := range fieldsOf(t) {
		delete(members, f.json)
	}
	delete(members, "op")
	for name := range members {
		return nil, fmt.Errorf("%s: %w: there is no member %.100q", named.Op, lineage.ErrInvalid, name)
	}
	if err := json.Unmarshal(text, v.Interface()); err != nil { // what is raw in it stays as it is, byte for byte
		return nil, fmt.Errorf("%s: %w: %s", named.Op, lineage.ErrInvalid, wrongJSON(err))
	}
	return v.Interface().(operation), nil
}
