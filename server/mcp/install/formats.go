package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
)

// The entries of agents whose configuration is JSON.

func plainEntry(s Server) any { return map[string]any{"command": s.Command, "args": s.Args} }

func vscodeEntry(s Server) any {
	return map[string]any{"type": "stdio", "command": s.Command, "args": s.Args}
}

func copilotEntry(s Server) any {
	return map[string]any{"type": "local", "command": s.Command, "args": s.Args, "tools": []string{"*"}}
}

func opencodeEntry(s Server) any {
	return map[string]any{"type": "local", "command": append([]string{s.Command}, s.Args...), "enabled": true}
}

// jsonAdder returns a function that adds an entry to a JSON file, with or without comments, below a member of the
// file.
func jsonAdder(below string, entry func(Server) any) func([]byte, Server) ([]byte, error) {
	return func(was []byte, s Server) ([]byte, error) { return addJSON(was, below, entry(s)) }
}

func addJSON(was []byte, below string, entry any) ([]byte, error) {
	text, err := json.MarshalIndent(entry, "", "  ")
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(was)) == 0 {
		all, err := json.MarshalIndent(map[string]any{below: map[string]any{Name: entry}}, "", "  ")
		return append(all, '\n'), err
	}
	mark := []byte("\ufeff")
	file := bytes.TrimPrefix(was, mark)
	value, err := hujson.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	before, err := members(file)
	if err != nil {
		return nil, err
	}
	servers, isObject := before[below].(map[string]any)
	if before[below] != nil && !isObject {
		return nil, fmt.Errorf("%w: %s is not an object", ErrUnreadable, below)
	}
	if known, found := servers[Name]; found {
		if same(known, entry) {
			return was, nil
		}
		return nil, ErrDiffers
	}
	patch := fmt.Sprintf(`[{"op":"add","path":"/%s/%s","value":%s}]`, below, Name, text)
	if before[below] == nil {
		patch = fmt.Sprintf(`[{"op":"add","path":"/%s","value":{%q:%s}}]`, below, Name, text)
	}
	if err := value.Patch([]byte(patch)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	now := value.Pack()
	after, err := members(now)
	if err != nil {
		return nil, err
	}
	// Everything else must be unchanged.
	added, _ := after[below].(map[string]any)
	if added == nil || !same(added[Name], entry) {
		return nil, ErrUnreadable
	}
	if delete(added, Name); before[below] == nil && len(added) == 0 {
		delete(after, below)
		delete(before, below)
	}
	if !reflect.DeepEqual(before, after) {
		return nil, fmt.Errorf("%w: members of the same name", ErrUnreadable)
	}
	if len(file) < len(was) {
		now = append(mark, now...)
	}
	return now, nil
}

// members returns the members of an object in JSON with comments.
func members(file []byte) (all map[string]any, err error) {
	standard, err := hujson.Standardize(bytes.Clone(file))
	if err == nil {
		err = json.Unmarshal(standard, &all)
	}
	if err != nil || all == nil {
		return nil, fmt.Errorf("%w: it is not a JSON object", ErrUnreadable)
	}
	return all, nil
}

// same reports whether a value that was read equals an entry.
func same(read, entry any) bool {
	b, err := json.Marshal(entry)
	var decoded any
	return err == nil && json.Unmarshal(b, &decoded) == nil && reflect.DeepEqual(read, decoded)
}

// addTOML adds an entry at the end of a TOML file, as a table of its own.
func addTOML(was []byte, s Server) ([]byte, error) {
	var before, after map[string]any
	if _, err := toml.Decode(string(was), &before); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	entry := map[string]any{"command": s.Command, "args": s.Args}
	var table bytes.Buffer
	encoder := toml.NewEncoder(&table)
	encoder.Indent = ""
	if err := encoder.Encode(map[string]any{"mcp_servers": map[string]any{Name: entry}}); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(table.Bytes()), []byte("[mcp_servers]")))
	servers, _ := before["mcp_servers"].(map[string]any)
	if known, found := servers[Name]; found {
		if same(jsonOf(known), entry) {
			return was, nil
		}
		return nil, ErrDiffers
	}
	now := bytes.Clone(was)
	if len(now) > 0 && now[len(now)-1] != '\n' {
		now = append(now, '\n')
	}
	if len(now) > 0 {
		now = append(now, '\n')
	}
	now = append(append(now, text...), '\n')
	if _, err := toml.Decode(string(now), &after); err != nil { // such as an inline table of servers
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	added, _ := after["mcp_servers"].(map[string]any)
	if added == nil || !same(jsonOf(added[Name]), entry) {
		return nil, ErrUnreadable
	}
	if delete(added, Name); len(added) == 0 && before["mcp_servers"] == nil {
		delete(after, "mcp_servers")
	}
	if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
		return nil, ErrUnreadable
	}
	return now, nil
}

// jsonOf returns a value in its JSON form.
func jsonOf(value any) (decoded any) {
	b, err := json.Marshal(value)
	if err != nil || json.Unmarshal(b, &decoded) != nil {
		return nil
	}
	return decoded
}

// Name is the name of the entry.
const Name = "lineage"

// Server is the program that an agent starts.
type Server struct {
	Command string
	Args    []string
}
