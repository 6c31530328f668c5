//test:long

package resume_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/resume"
)

// modelCall is a call that the model is asked for.
type modelCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// callsFor returns a prompt after which the model makes these calls.
func callsFor(text string, calls ...modelCall) string {
	raw, _ := json.Marshal(calls)
	return text + " Calls:" + base64.RawURLEncoding.EncodeToString(raw) + ";"
}

// askedCalls returns the calls that the last message of a request asks for.
func askedCalls(body []byte) (calls []modelCall) {
	var asked struct{ Messages, Input, Contents, Tools []json.RawMessage }
	if json.Unmarshal(body, &asked) != nil || len(asked.Tools) == 0 {
		return nil
	}
	all := append(append(asked.Messages, asked.Input...), asked.Contents...)
	if len(all) == 0 {
		return nil
	}
	_, after, found := strings.Cut(string(all[len(all)-1]), "Calls:")
	coded, _, _ := strings.Cut(after, ";")
	raw, err := base64.RawURLEncoding.DecodeString(coded)
	if !found || err != nil || json.Unmarshal(raw, &calls) != nil {
		return nil
	}
	return calls
}

// answerCalls returns the events of an answer with calls.
func answerCalls(path string, n int, calls []modelCall) (events []string) {
	id := func(i int) string { return fmt.Sprintf("call_%d_%d", n, i) }
	switch {
	case strings.HasSuffix(path, "/responses"):
		events = append(events, event("response.created", `{"type":"response.created","response":{"id":"resp_calls"}}`))
		var items []string
		for i, c := range calls {
			arguments, _ := json.Marshal(c.Arguments)
			text, _ := json.Marshal(string(arguments))
			item := fmt.Sprintf(`{"type":"function_call","id":"fc_%d_%d","call_id":%q,"name":%q,"arguments":%s}`, n, i, id(i), c.Name, text)
			items = append(items, item)
			events = append(events, event("response.output_item.done", fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item)))
		}
		return append(events, event("response.completed", `{"type":"response.completed","response":{"id":"resp_calls","output":[`+strings.Join(items, ",")+`],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":107}}}`))
	case strings.HasSuffix(path, "/chat/completions"):
		var items []string
		for i, c := range calls {
			arguments, _ := json.Marshal(c.Arguments)
			text, _ := json.Marshal(string(arguments))
			items = append(items, fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, i, id(i), c.Name, text))
		}
		return []string{
			event("", fmt.Sprintf(`{"id":"standin","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{"role":"assistant","content":"I do it: ✓.","tool_calls":[%s]},"finish_reason":null}]}`, strings.Join(items, ","))),
			event("", `{"id":"standin","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}}`),
			event("", "[DONE]"),
		}
	case strings.HasSuffix(path, ":streamGenerateContent"):
		items := []string{`{"text":"I do it: ✓."}`}
		for _, c := range calls {
			arguments, _ := json.Marshal(c.Arguments)
			items = append(items, fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, c.Name, arguments))
		}
		return []string{event("", fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[%s]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"totalTokenCount":107}}`, strings.Join(items, ",")))}
	}
	return nil
}

// png is an image of one pixel.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// fresh returns the command of a program that begins a session, or continues the last one, with files of images.
func (p program) fresh(continued bool, prompt string, images ...string) (command []string) {
	switch p.agent {
	case "codex":
		if command = []string{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}; continued {
			command = append(command, "resume", "--last")
		}
		for _, image := range images {
			command = append(command, "-i", image)
		}
		if len(images) > 0 {
			command = append(command, "--")
		}
		return append(command, prompt)
	case "pi":
		if command = []string{"pi"}; continued {
			command = append(command, "-c")
		}
		command = append(command, "-p")
		for _, image := range images {
			command = append(command, "@"+image)
		}
		return append(command, prompt)
	case "qwen":
		if command = []string{"qwen", "--approval-mode", "yolo"}; continued {
			command = append(command, "--continue")
		}
	case "gemini":
		if command = []string{"gemini", "--approval-mode", "yolo"}; continued {
			command = append(command, "--resume", "latest")
		}
	case "opencode":
		if command = []string{"opencode", "run"}; continued {
			command = append(command, "--continue")
		}
		for _, image := range images {
			command = append(command, "--file="+image)
		}
		return append(append(command, "--"), strings.Fields(prompt)...)
	}
	for _, image := range images {
		prompt = "@" + filepath.Base(image) + " " + prompt
	}
	return append(command, "-p", prompt)
}

// does runs a program in the folder of work until it ends, or, with stop, until the model hangs.
func (p program) does(h *home, bin string, model *model, stop bool, command []string) string {
	c := exec.Command(command[0], command[1:]...)
	c.Env = p.environment(h, bin)
	for _, dir := range filepath.SplitList(strings.TrimPrefix(c.Env[2], "PATH=")) {
		if _, err := os.Stat(filepath.Join(dir, command[0])); err == nil {
			c.Path, c.Err = filepath.Join(dir, command[0]), nil
			break
		}
	}
	c.Dir = h.work
	c.WaitDelay = 10 * time.Second
	hang := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
	defer hang.Stop()
	if stop {
		model.Hangs = make(chan struct{}, 10)
		go func() {
			<-model.Hangs
			time.Sleep(2 * time.Second)
			_ = c.Process.Signal(os.Interrupt)
			time.Sleep(10 * time.Second)
			_ = c.Process.Kill()
		}()
	}
	out, err := c.CombinedOutput()
	if !stop && err != nil {
		h.t.Logf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// richTools are the calls of each program: of files that are there and not, and of a subagent.
func richTools(agent, dir string) (reads, wrong, subagent []modelCall) {
	file, none := filepath.Join(dir, "ä 世界.txt"), filepath.Join(dir, "none.txt")
	one := func(name string, key string) {
		reads = []modelCall{{name, map[string]any{key: file}}, {name, map[string]any{key: filepath.Join(dir, "b.txt")}}}
		wrong = []modelCall{{name, map[string]any{key: none}}}
	}
	switch agent {
	case "codex":
		reads = []modelCall{{"exec_command", map[string]any{"cmd": "cat '" + file + "'"}}, {"exec_command", map[string]any{"cmd": "cat b.txt"}}}
		wrong = []modelCall{{"exec_command", map[string]any{"cmd": "cat none.txt"}}}
	case "pi":
		one("read", "path")
	case "qwen":
		one("read_file", "file_path")
		subagent = []modelCall{{"agent", map[string]any{"description": "look", "prompt": "Look at b.txt.", "subagent_type": "general-purpose"}}}
	case "gemini":
		one("read_file", "file_path")
	case "opencode":
		one("read", "filePath")
		subagent = []modelCall{{"task", map[string]any{"description": "look", "prompt": "Look at b.txt.", "subagent_type": "general"}}}
	}
	return reads, wrong, subagent
}

// rich lets a program make a session with calls, a failing call, a subagent, an image, an answer that failed first, a turn that was
// interrupted, and letters of many alphabets.
func (p program) rich(h *home, bin string) {
	model := newModel()
	h.t.Cleanup(model.Close)
	p.configure(h, model.URL)
	for name, content := range map[string]string{"ä 世界.txt": "één\n二\n", "b.txt": strings.Repeat("line of b\n", 5)} {
		require.NoError(h.t, os.WriteFile(filepath.Join(h.work, name), []byte(content), 0o600))
	}
	image, err := base64.StdEncoding.DecodeString(png)
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(filepath.Join(h.work, "one.png"), image, 0o600))
	reads, wrong, subagent := richTools(p.agent, h.work)
	p.does(h, bin, model, false, p.fresh(false, callsFor("Hé 世界 🎉 שלום", reads...)))
	p.does(h, bin, model, false, p.fresh(true, callsFor("Wrong", wrong...)))
	p.does(h, bin, model, false, p.fresh(true, "Look", filepath.Join(h.work, "one.png")))
	p.does(h, bin, model, false, p.fresh(true, "Retry: it"))
	p.does(h, bin, model, true, p.fresh(true, "Hang: now"))
	if subagent != nil {
		p.does(h, bin, model, false, p.fresh(true, callsFor("Sub", subagent...)))
	}
	p.does(h, bin, model, false, p.fresh(true, "Thanks"))
}

// TestRichSessionsContinueAnywhere resumes a session of each program, with all that rich makes, in each program, at every position, and
// compares what the program sends with what 'lineage resolve' prints.
func TestRichSessionsContinueAnywhere(t *testing.T) {
	onlyInCampaigns(t)
	for _, source := range programs {
		t.Run(source.agent, func(t *testing.T) {
			bin := installed(t, source)
			h := newHome(t)
			source.rich(h, bin)
			var thread *lineage.Thread
			if source.agent == "opencode" {
				ids := regexp.MustCompile(`ses_[0-9A-Za-z]+`).FindAllString(source.shell(h, bin, "cd '"+h.work+"' && opencode session list"), -1)
				require.NotEmpty(t, ids)
				thread = h.openCode(source.shell(h, bin, "cd '"+h.work+"' && opencode export "+ids[0]+" 2>/dev/null"))
			} else {
				h.follow()
				for _, found := range h.threads() {
					if thread == nil || len(h.spans(h.tip(found))) > len(h.spans(h.tip(thread))) {
						thread = found
					}
				}
			}
			for _, target := range programs {
				t.Run("in "+target.agent, func(t *testing.T) { target.anywhere(t, h, bin, source.agent, thread) })
			}
		})
	}
}

// onlyInCampaigns skips a test that starts programs hundreds of times.
func onlyInCampaigns(t *testing.T) {
	if !campaign.Runs() {
		t.Skip("it starts programs some hundred times: make campaign runs it")
	}
}

// anywhere resumes a thread in a program at every position, and reports what differs. name is that of the thread.
func (p program) anywhere(t *testing.T, h *home, bin, name string, thread *lineage.Thread) {
	before := h.t
	h.t = t
	defer func() { h.t = before }()
	spans := h.spans(h.tip(thread))
	equal := 0
	for n := range spans {
		difference := p.difference(h, bin, thread, spans[n])
		switch {
		case difference == "":
			equal++
		case explained.MatchString(difference):
			t.Logf("position %d of %d: %s", n+1, len(spans), difference)
		default:
			t.Errorf("position %d of %d: %s", n+1, len(spans), difference)
		}
	}
	t.Logf("%s in %s: %d positions, %d equal", name, p.agent, len(spans), equal)
}

// TestArchivesContinueAnywhere resumes threads of archives and of the library at every position.
func TestArchivesContinueAnywhere(t *testing.T) {
	onlyInCampaigns(t)
	for _, p := range programs {
		t.Run(p.agent, func(t *testing.T) {
			bin := installed(t, p)
			h := newHome(t)
			for _, path := range []string{"claude-made/conversations.json", "chatgpt-made/conversations.json", "librechat/librechat-tree.json", "open-webui/export.json", "claude-code-made"} {
				h.imported(path)
			}
			h.library()
			for i, thread := range h.threads() {
				info, err := thread.Info(bg)
				require.NoError(t, err)
				p.anywhere(t, h, bin, fmt.Sprint(i, " ", info.Title, " ", string(info.Metadata)), thread)
			}
		})
	}
}

// TestResumedAgainAndAgain continues a thread in one program after the other, each with what those before it have added.
func TestResumedAgainAndAgain(t *testing.T) {
	bin := installed(t, programs[0])
	h := newHome(t)
	thread := h.library()
	tip := h.tip(thread)
	steps := []string{"codex", "pi", "codex", "qwen", "gemini", "qwen", "qwen", "pi", "gemini", "codex"}
	if !campaign.Runs() {
		steps = steps[:3]
	}
	for i, name := range steps {
		p := programOf(name)
		installed(t, p)
		model := newModel()
		p.configure(h, model.URL)
		s := h.plan(p.agent, thread, tip)
		h.write(s)
		sent := p.run(h, bin, model, s)
		model.Close()
		require.Empty(t, p.compare(h, thread, tip, s, sent), "step %d, %s", i, name)
		h.follow()
		before := h.spans(tip)
		tip = h.branch(thread, s)
		after := h.spans(tip)
		require.Greater(t, len(after), len(before))
		require.Equal(t, before, after[:len(before)], "step %d", i)
		require.Len(t, h.threads(), 1)
	}
}

// explained are differences that docs/sessions.md lists: a history that has only instructions, and a call without a result that is
// written as text after another text, which programs join.
var explained = regexp.MustCompile(`^there is no message to resume from|^line \d+ is "assistant [^"]*\[call of `)

// difference resumes a position in a program, and returns how what it sends differs from the history, or "".
func (p program) difference(h *home, bin string, thread *lineage.Thread, at lineage.SpanRef) string {
	model := newModel()
	defer model.Close()
	p.configure(h, model.URL)
	s, err := resume.New(bg, h.store, at, resume.Options{Agent: p.agent, Thread: thread.ID(), Dir: h.work, Environment: h.environment})
	if err != nil {
		return err.Error()
	}
	h.write(s)
	return p.compare(h, thread, at, s, p.run(h, bin, model, s))
}

// compare returns how what a program sends differs from the history of a position, or "".
func (p program) compare(h *home, thread *lineage.Thread, at lineage.SpanRef, s *resume.Session, sent []message.Message) string {
	expected := said(p.withoutOwn(h.resolved(thread, at, p.dialect)))
	if len(sent) < p.own {
		return "nothing was sent"
	}
	got := said(sent[p.own:])
	for len(got) > 0 && strings.HasPrefix(got[0], p.before) && p.before != "" {
		got = got[1:]
	}
	var losses []string
	for _, l := range s.Losses {
		losses = append(losses, fmt.Sprint(l.Position, " ", l.Reason))
	}
	about := fmt.Sprintf(" [own %d of %d, losses: %s]", s.Own, s.Messages, strings.Join(losses, "; "))
	if last := got[len(got)-1]; last != "user "+prompt {
		return fmt.Sprintf("the last line is %.300q%s", last, about)
	}
	got = got[:len(got)-1]
	if difference := differing(expected, got); difference == "" || differing(answered(expected), answered(got)) == "" {
		return ""
	} else {
		return difference + about
	}
}

// differing returns how the lines that were sent differ from those expected, which they may continue with what the user's side says.
func differing(expected, got []string) string {
	for i := range expected {
		if i >= len(got) {
			return fmt.Sprintf("line %d is missing: %.300q", i+1, expected[i])
		}
		if got[i] != expected[i] {
			return fmt.Sprintf("line %d is %.300q, not %.300q", i+1, got[i], expected[i])
		}
	}
	for _, more := range got[len(expected):] {
		if !isAnswered(more) && !strings.HasPrefix(more, "user ") {
			return fmt.Sprintf("there is more: %.300q", more)
		}
	}
	return ""
}

// isAnswered reports whether a line is what an agent says of a turn that did not end.
func isAnswered(line string) bool {
	return strings.HasPrefix(line, "result ") && (strings.HasSuffix(line, " aborted") || strings.HasSuffix(line, " No result provided") || strings.Contains(line, "interrupted")) ||
		line == "assistant [The previous response was interrupted before it completed.]"
}

var number = regexp.MustCompile(`^(call|result) (\d+) `)

// answered returns lines without calls that have no result, which agents answer themselves, and with calls that were made at once
// before their results.
func answered(lines []string) (left []string) {
	results := make(map[string]bool)
	for _, line := range lines {
		if m := number.FindStringSubmatch(line); m != nil && m[1] == "result" && !isAnswered(line) {
			results[m[2]] = true
		}
	}
	var after []string // results of the calls before
	for _, line := range lines {
		m := number.FindStringSubmatch(line)
		if strings.HasPrefix(line, "assistant [call of ") || isAnswered(line) || m != nil && !results[m[2]] {
			continue
		}
		line = number.ReplaceAllString(line, "$1 ")
		switch {
		case m == nil:
			left = append(append(left, after...), line)
			after = nil
		case m[1] == "result":
			after = append(after, line)
		default:
			left = append(left, line)
		}
	}
	return append(left, after...)
}
