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
		c := &archive.Conversation{}
		if in.Name != "." {
			c.Title = in.Name[max(0, strings.LastIndexByte(in.Name, '/')+1):]
			var more rawjson.Object
			more.SetText("folder", in.Name)
			c.Metadata = more.Bytes()
		}
		answers := &pastAnswers{}
		for _, name := range in.Files {
			number := promptNumber(name, "prompt_")
			if number == "" {
				continue
			}
			at := archive.Position{File: in.FileName(name)}
			prompt, err := in.ReadFile(ctx, name)
			if err != nil {
				if !yield(nil, in.Unreadable(at, err)) {
					return
				}
				continue
			}
			nodes := promptNodes(prompt, answers, at)
			response := "response_" + number + ".log"
			if slices.Contains(in.Files, response) {
				at.File = in.FileName(response)
				answer, err := in.ReadFile(ctx, response)
				if err != nil {
					if !yield(nil, in.Unreadable(at, err)) {
						return
					}
				} else {
					nodes = append(nodes, archive.Node{Role: "assistant", Body: answer, Type: content.TypeText, At: at})
					answers.add(answer)
				}
			}
			if len(nodes) == 0 {
				continue
			}
			nodes[0].Root = true
			nodes[len(nodes)-1].Branch = "request-" + number
			c.Nodes = append(c.Nodes, nodes...)
		}
		// These answers have no request.
		for _, name := range in.Files {
			if number := promptNumber(name, "response_"); number != "" && !slices.Contains(in.Files, "prompt_"+number+".log") {
				at := archive.Position{File: in.FileName(name)}
				if !yield(nil, archive.Damaged(at, archive.Malformed("answer without a request"))) {
					return
				}
			}
		}
		if len(c.Nodes) > 0 {
			yield(c, nil)
		}
	}
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
