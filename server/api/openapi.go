package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/problem"
)

// document returns the OpenAPI document of a table.
func document(routes []route) []byte {
	s := &schemas{named: object{}}
	paths, operations := object{}, []any{}
	named := make(map[string]bool)
	for i := range routes {
		r := &routes[i]
		path, _ := paths[r.path()].(object)
		if path == nil {
			path = object{}
			paths[r.path()] = path
		}
		path[strings.ToLower(r.method())] = s.route(r)
		if r.op != "" && !named[r.op] {
			named[r.op] = true
			operations = append(operations, s.input(r.in, r.op))
		}
	}
	s.named["Problem"] = s.structOf(reflect.TypeFor[problem.Problem]())
	s.named["Input"] = s.structOf(reflect.TypeFor[records.Input]())
	s.named["Operation"] = object{"oneOf": operations}
	body, err := marshal(object{
		"openapi":    "3.1.0",
		"info":       object{"title": "Lineage", "version": "1", "description": "Conversations of agents: see docs/api.md."},
		"paths":      paths,
		"components": object{"schemas": s.named, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
		"security":   []any{object{"token": []string{}}},
	})
	if err != nil {
		panic(err) // depends only on the table
	}
	return body
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// route returns the description of a route.
func (s *schemas) route(r *route) object {
	operation := object{"summary": r.doc, "responses": s.responses(r)}
	if parameters := s.parameters(r); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	switch {
	case r.upload:
		operation["requestBody"] = object{"required": true, "content": object{"*/*": object{}}}
	case r.path() == "/v1/batch":
		operation["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": object{
			"type": "object", "required": []string{"operations"}, "additionalProperties": false,
			"properties": object{"operations": object{"type": "array", "minItems": 1, "maxItems": maxOperations, "items": object{"$ref": "#/components/schemas/Operation"}}},
		}}}}
	default:
		if body := s.input(r.in, ""); body != nil {
			_, needed := body["required"]
			operation["requestBody"] = object{"required": needed || body["type"] == nil, "content": object{"application/json": object{"schema": body}}}
		}
	}
	return operation
}

// parameters returns the parameters of a route, in the path, the query and the headers.
func (s *schemas) parameters(r *route) (all []any) {
	for _, f := range fieldsOf(r.in) {
		parameter := object{"name": f.name, "description": f.doc}
		switch f.from {
		case fromBody:
			continue
		case fromPath:
			if !strings.Contains(r.path(), "{"+f.name+"}") {
				continue
			}
			parameter["in"], parameter["required"], parameter["schema"] = "path", true, object{"type": "string"}
		case fromQuery:
			parameter["in"], parameter["schema"] = "query", notNull(s.of(f.kind))
		case fromHeader:
			parameter["in"], parameter["schema"] = "header", object{"type": "string"}
		}
		all = append(all, parameter)
	}
	if r.needs.writes && r.serve != nil && !r.upload && r.op+r.path() != r.path() || r.path() == "/v1/batch" {
		all = append(all, object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "minLength": 1, "maxLength": maxKey},
			"description": "the request is applied once, and repeated ones get the answer again",
		})
	}
	return all
}

// notNull returns the schema of a parameter. Parameters are never null.
func notNull(schema object) object {
	if kinds, several := schema["type"].([]string); several {
		schema["type"] = kinds[0]
	}
	return schema
}

// responses returns the answers of a route.
func (s *schemas) responses(r *route) object {
	problems := object{"description": "a problem", "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
	responses := object{"default": problems}
	done := object{"description": "done"}
	switch {
	case r.answer.record != nil && r.answer.list:
		item := s.record(r.answer.record)
		properties := object{"items": object{"type": "array", "items": item}, "next": object{"type": "string"}}
		if r.answer.behind {
			properties["behind"] = object{"type": "integer", "description": "the number of the last commits that the search does not see yet"}
		}
		all := object{"type": "object", "required": []string{"items"}, "additionalProperties": false, "properties": properties}
		if r.answer.or {
			all = object{"oneOf": []any{all, object{"type": "object", "not": object{"required": []string{"items"}}}}}
		}
		done["content"] = object{"application/json": object{"schema": all}}
	case r.answer.record != nil:
		done["content"] = object{"application/json": object{"schema": s.record(r.answer.record)}}
	case r.answer.media != "":
		done["content"] = object{r.answer.media: object{}}
	case r.answer.status != http.StatusNoContent:
		done["content"] = object{"application/json": object{}}
	}
	responses[strconv.Itoa(r.answer.status)] = done
	if r.method() == http.MethodGet && r.answer.record != nil {
		responses["304"] = object{"description": "as If-None-Match has it"}
	}
	if _, may := r.in.FieldByName("Reuse"); may {
		responses["200"] = object{"description": "it was there", "content": done["content"]}
	}
	return responses
}

// record returns the schema of a record of an answer.
func (s *schemas) record(t reflect.Type) object {
	if t == recordType {
		return object{"type": "object", "required": []string{"type"}}
	}
	return s.ref(t.Elem())
}

func (a *API) openAPIDocument(_ context.Context, c *call, _ *struct{}) error {
	return c.sendJSON(http.StatusOK, a.openAPI())
}
