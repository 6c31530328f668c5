package transcript

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// Members of inputs that tell what a call does, the most telling first. Values of the first list are executed or
// written as a whole. Values of the second list name something.
var (
	runKeys  = []string{"command", "cmd", "script", "code", "patch", "CommandLine"}
	nameKeys = []string{
		"pattern", "query", "queries", "search_query", "q", "url", "urls", "file_path", "filePath", "path", "notebook_path", "absolute_path", "filename",
		"TargetFile", "AbsolutePath", "Query", "DirectoryPath", "Url",
		"description", "prompt", "question", "message", "expression", "name", "id",
	}
)

// Members of inputs that describe a change of a file: the old text, the new text, and a whole new content.
var (
	oldKeys   = []string{"old_string", "oldString", "old_str", "old_text", "TargetContent"}
	newKeys   = []string{"new_string", "newString", "new_str", "new_text", "ReplacementContent"}
	writeKeys = []string{"content", "contents", "file_text", "CodeContent"}
)

// Members of inputs that are a list of tasks, and what a task says.
var (
	taskKeys = []string{"todos", "plan"}
	sayKeys  = []string{"content", "step", "description"}
)

// maxTitle limits the title of a call, in bytes.
const maxTitle = 400

// newCall describes a call.
func newCall(p *message.Part, o Options) *ToolCall {
	c := &ToolCall{ID: p.CallID, Tool: p.Tool}
	if p.Input == nil {
		c.Title = oneLine(p.Text, maxTitle)
		if isPatch(p.Text) {
			c.Title = oneLine(patched(p.Text), maxTitle)
			c.Diff, c.DiffLeft = o.cut(p.Text)
		} else {
			c.Text, c.Left = o.cut(p.Text)
		}
		return c
	}
	text, diff, rest := c.read(p.Input)
	c.Text, c.Left = o.cut(text)
	c.Diff, c.DiffLeft = o.cut(diff)
	c.Rest = rest
	return c
}

// read divides a JSON input into a text, a change, and the rest. It also sets the title.
func (c *ToolCall) read(input []byte) (text, diff string, rest []byte) {
	input = bytes.TrimSpace(input)
	if rawjson.IsString(input) {
		text = rawjson.Str(input)
		c.Title = oneLine(text, maxTitle)
		return text, "", nil
	}
	if !rawjson.IsObject(input) || rawjson.Check(input) != nil {
		if !rawjson.IsNull(input) {
			rest, c.Title = input, oneLine(string(rawjson.Compact(input)), maxTitle)
		}
		return "", "", rest
	}
	members, unique := membersOf(input)
	if len(members) == 0 {
		return "", "", nil
	}
	if !unique {
		c.Title = oneLine(string(rawjson.Compact(input)), maxTitle)
		return "", "", input
	}
	used := make(map[string]bool)
	text, diff = c.readMembers(members, used)
	rest = rawjson.RemoveFunc(input, func(key string) bool { return used[key] })
	if left, _ := membersOf(rest); len(left) == 0 {
		rest = nil
	}
	if c.Title == "" {
		c.Title = oneLine(string(rawjson.Compact(input)), maxTitle)
	}
	return text, diff, rest
}

// readMembers returns the text and the change in the members of an input, sets the title and the description, and marks the
// members that it used.
func (c *ToolCall) readMembers(members map[string][]byte, used map[string]bool) (text, diff string) {
	take := func(keys []string) (string, bool) {
		for _, key := range keys {
			if words, ok := spoken(members[key]); ok && words != "" {
				used[key] = true
				return words, true
			}
		}
		return "", false
	}
	run, ok := take(runKeys)
	tasks, current := "", ""
	if !ok {
		tasks, current = taskList(members, used)
	}
	switch {
	case ok && isPatch(run):
		diff, c.Title = run, oneLine(patched(run), maxTitle)
	case ok:
		text, c.Title = run, oneLine(run, maxTitle)
	case tasks != "":
		text, c.Title = tasks, oneLine(current, maxTitle)
	default:
		if text, ok = take(nameKeys); !ok && len(members) == 1 {
			for key, value := range members {
				if text, ok = spoken(value); ok {
					used[key] = true
				}
			}
		}
		c.Title = oneLine(text, maxTitle)
		diff = change(members, used)
	}
	if about := members["description"]; rawjson.IsString(about) && !used["description"] {
		c.About, used["description"] = rawjson.Str(about), true
	}
	return text, diff
}

// membersOf returns the members of an object by key. unique is false if a key occurs twice.
func membersOf(object []byte) (members map[string][]byte, unique bool) {
	members, unique = make(map[string][]byte), true
	for m := range rawjson.Members(object) {
		unique = unique && members[m.Key] == nil
		members[m.Key] = m.Value
	}
	return members, unique
}

// spoken returns a value as people would write it: a text, a number, or a list of texts, such as the words of a
// command.
func spoken(value []byte) (string, bool) {
	switch {
	case len(value) == 0 || rawjson.IsNull(value) || rawjson.IsObject(value):
		return "", false
	case rawjson.IsString(value):
		return rawjson.Str(value), true
	case !rawjson.IsArray(value):
		return string(value), true
	}
	var words []string
	for e := range rawjson.Elements(value) {
		if !rawjson.IsString(e) {
			return "", false
		}
		words = append(words, rawjson.Str(e))
	}
	if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") { // of a shell
		return words[2], true
	}
	return strings.Join(words, " "), len(words) > 0
}

// change returns the change that the members of an input make, and marks them as used.
func change(members map[string][]byte, used map[string]bool) string {
	text := func(in map[string][]byte, keys []string) (string, string) {
		for _, key := range keys {
			if rawjson.IsString(in[key]) {
				return rawjson.Str(in[key]), key
			}
		}
		return "", ""
	}
	was, oldKey := text(members, oldKeys)
	now, newKey := text(members, newKeys)
	if oldKey != "" && newKey != "" {
		used[oldKey], used[newKey] = true, true
		return replaced(was, now)
	}
	if written, key := text(members, writeKeys); key != "" && !used[key] {
		used[key] = true
		return replaced("", written)
	}
	if !rawjson.IsArray(members["edits"]) {
		return ""
	}
	var diff strings.Builder
	for e := range rawjson.Elements(members["edits"]) {
		edit, unique := membersOf(e)
		was, oldKey := text(edit, oldKeys)
		now, newKey := text(edit, newKeys)
		if oldKey == "" || newKey == "" || !unique || len(edit) != 2 {
			return "" // it says more than a change
		}
		diff.WriteString("@@\n" + replaced(was, now))
	}
	used["edits"] = true
	return diff.String()
}

// taskList returns a list of tasks with a box each, and how far it is, and marks the member as used. The ids and priorities of
// tasks and their other wording while they are done are left out.
func taskList(members map[string][]byte, used map[string]bool) (list, current string) {
	for _, key := range taskKeys {
		if !rawjson.IsArray(members[key]) {
			continue
		}
		var text strings.Builder
		done, total, now := 0, 0, ""
		for e := range rawjson.Elements(members[key]) {
			box, task, ok := taskOf(e)
			if !ok {
				return "", ""
			}
			total++
			switch {
			case box == boxes["completed"]:
				done++
			case box == boxes["in_progress"] && now == "":
				now = task
			}
			text.WriteString(box + " " + strings.ReplaceAll(task, "\n", "\n    ") + "\n")
		}
		if total == 0 {
			continue
		}
		used[key] = true
		current = fmt.Sprintf("%d of %d done", done, total)
		if now != "" {
			current += ": " + now
		}
		return text.String(), current
	}
	return "", ""
}

// taskOf returns the box and the text of a task. ok is false for what says more or less than a task.
func taskOf(raw []byte) (box, text string, ok bool) {
	task, unique := membersOf(raw)
	if !unique {
		return "", "", false
	}
	texts := 0
	for name, value := range task {
		switch {
		case slices.Contains(sayKeys, name) && rawjson.IsString(value):
			text = rawjson.Str(value)
			texts++
		case name == "status":
			box = boxes[rawjson.Str(value)]
		case name != "activeForm" && name != "id" && name != "priority":
			return "", "", false
		}
	}
	return box, text, box != "" && texts == 1
}

// boxes are the marks of tasks by their status.
var boxes = map[string]string{"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}

// replaced returns a replacement of a text as the lines of a diff. Of the lines that both texts share at the start
// and the end, only the nearest three are kept.
func replaced(was, now string) string {
	const context = 3
	old, current := lines(was), lines(now)
	same := min(len(old), len(current))
	head := 0
	for head < same && old[head] == current[head] {
		head++
	}
	tail := 0
	for tail < same-head && old[len(old)-1-tail] == current[len(current)-1-tail] {
		tail++
	}
	var diff strings.Builder
	add := func(mark string, lines []string) {
		for _, line := range lines {
			diff.WriteString(mark + line + "\n")
		}
	}
	add(" ", old[max(0, head-context):head])
	add("-", old[head:len(old)-tail])
	add("+", current[head:len(current)-tail])
	add(" ", old[len(old)-tail:len(old)-tail+min(tail, context)])
	return diff.String()
}

// lines returns the lines of a text without their ends.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// isPatch reports whether a text is a patch in the format of Codex.
func isPatch(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch") }

// patched returns the names of the files that a patch changes.
func patched(patch string) string {
	var files []string
	for line := range strings.SplitSeq(patch, "\n") {
		for _, what := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
			if file, ok := strings.CutPrefix(line, what); ok {
				files = append(files, file)
			}
		}
	}
	return strings.Join(files, " ")
}

// hunks returns the change of an edit as recorded by Claude Code, empty if there is none.
func hunks(record []byte) string {
	var diff strings.Builder
	for h := range rawjson.Elements(rawjson.Last(record, "structuredPatch")) {
		if !rawjson.IsObject(h) {
			continue
		}
		number := func(key string) string { return string(rawjson.Last(h, key)) }
		diff.WriteString("@@ -" + number("oldStart") + "," + number("oldLines") + " +" + number("newStart") + "," + number("newLines") + " @@\n")
		for line := range rawjson.Elements(rawjson.Last(h, "lines")) {
			diff.WriteString(rawjson.Str(line) + "\n")
		}
	}
	return diff.String()
}
