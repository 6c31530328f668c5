package lists

import (
	"bytes"
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// PromptLogs reads folders with a text file per request to a model and per answer, prompt_001.log
// and response_001.log. A request holds the conversation so far, separated by lines of dashes.
// Common beginnings of requests are stored once, and each request becomes a branch unless a later
// one continues it.
func PromptLogs() archive.Format {
	return archive.Format{
		Name:   "prompt-logs",
		Detect: func(archive.Head) bool { return false },
		Group: func(names []string) []string {
			group := slices.DeleteFunc(names, func(name string) bool {
				return promptNumber(name, "prompt_") == "" && promptNumber(name, "response_") == ""
			})
			if !slices.ContainsFunc(group, func(name string) bool { return strings.HasPrefix(name, "prompt_") }) {
				return nil
			}
			slices.Sort(group)
			return group
		},
		Read: readPromptLogs,
	}
}

// promptNumber returns the digits in prefix<digits>.log, empty for other names.
func promptNumber(name, prefix string) string {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return ""
	}
	digits, ok = strings.CutSuffix(digits, ".log")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits
}

// promptCut matches the line of dashes between messages, with the empty lines around it.
var promptCut = regexp.MustCompile(`\r?\n\r?\n----------\r?\n(?:\r?\n|$)`)

func readPromptLogs(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		r := promptReader{in: in, yield: yield, conversation: promptConversation(in.Name)}
		for _, name := range in.Files {
			if number := promptNumber(name, "prompt_"); number != "" && !r.readRequest(ctx, name, number) {
				return
			}
		}
		for _, name := range in.Files {
			number := promptNumber(name, "response_")
			if number == "" || slices.Contains(in.Files, "prompt_"+number+".log") {
				continue
			}
			at := archive.Position{File: in.FileName(name)}
			if !yield(nil, archive.Damaged(at, archive.Malformed("answer without a request"))) {
				return
			}
		}
		if len(r.conversation.Nodes) > 0 {
			yield(r.conversation, nil)
		}
	}
}

// promptConversation returns the conversation of a folder, without messages.
func promptConversation(folder string) *archive.Conversation {
	c := &archive.Conversation{}
	if folder != "." {
		c.Title = folder[max(0, strings.LastIndexByte(folder, '/')+1):]
		var more rawjson.Object
		more.SetText("folder", folder)
		c.Metadata = more.Bytes()
	}
	return c
}

// promptReader reads requests and their answers. Each is a branch of one conversation.
type promptReader struct {
	in           *archive.Input
	yield        func(*archive.Conversation, error) bool
	conversation *archive.Conversation
	answers      pastAnswers
}

// readRequest reads a request and its answer, if there is one. Files that cannot be read are yielded as errors. It reports whether
// to continue.
func (r *promptReader) readRequest(ctx context.Context, name, number string) bool {
	at := archive.Position{File: r.in.FileName(name)}
	prompt, err := r.in.ReadFile(ctx, name)
	if err != nil {
		return r.yield(nil, r.in.Unreadable(at, err))
	}
	nodes := promptNodes(prompt, &r.answers, at)
	if response := "response_" + number + ".log"; slices.Contains(r.in.Files, response) {
		at.File = r.in.FileName(response)
		answer, err := r.in.ReadFile(ctx, response)
		if err == nil {
			nodes = append(nodes, archive.Node{Role: "assistant", Body: answer, Type: content.TypeText, At: at})
			r.answers.add(answer)
		} else if !r.yield(nil, r.in.Unreadable(at, err)) {
			return false
		}
	}
	if len(nodes) > 0 {
		nodes[0].Root = true
		nodes[len(nodes)-1].Branch = "request-" + number
		r.conversation.Nodes = append(r.conversation.Nodes, nodes...)
	}
	return true
}

// promptNodes splits a request into messages. The files do not name roles: a message that repeats
// an earlier answer is the model's, the first of several is the system prompt, and all others are
// the user's.
func promptNodes(prompt []byte, answers *pastAnswers, at archive.Position) []archive.Node {
	var nodes []archive.Node
	cuts := append(promptCut.FindAllIndex(prompt, -1), []int{len(prompt), len(prompt)})
	begin := 0
	for _, cut := range cuts {
		part := prompt[begin:cut[0]:cut[0]]
		begin = cut[1]
		if len(bytes.TrimSpace(part)) == 0 {
			continue
		}
		n := archive.Node{Role: "user", Body: part, Type: content.TypeText, At: at}
		if answers.repeatedBy(part) {
			n.Role = "assistant"
		}
		nodes = append(nodes, n)
	}
	if len(nodes) > 1 && nodes[0].Role == "user" {
		nodes[0].Role = "system"
	}
	return nodes
}

// pastAnswers recognises earlier answers in requests, where their whitespace and end may differ.
type pastAnswers struct{ starts []string }

// comparedStart is the number of bytes at the start of an answer that are compared.
const comparedStart = 80

func (p *pastAnswers) add(answer []byte) {
	if start := squeezed(answer); start != "" {
		p.starts = append(p.starts, start)
	}
}

// repeatedBy reports whether a part of a request begins as an answer does.
func (p *pastAnswers) repeatedBy(part []byte) bool {
	s := squeezed(part)
	return slices.ContainsFunc(p.starts, func(start string) bool { return strings.HasPrefix(s, start) })
}

// squeezed returns the start of a text without whitespace.
func squeezed(text []byte) string {
	var b strings.Builder
	for word := range bytes.FieldsSeq(text) {
		b.Write(word[:min(len(word), comparedStart-b.Len())])
		if b.Len() >= comparedStart {
			break
		}
	}
	return b.String()
}
