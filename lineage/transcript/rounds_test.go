package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure/structuretest"
)

// A call of VS Code has the input that the model wrote, and the output that it got, as the metadata of the answer states them.
func TestRounds(t *testing.T) {
	const answer = `[
		{"kind":"toolInvocationSerialized","toolCallId":"t1","toolId":"copilot_readFile","invocationMessage":{"value":"Reading main.go"},"pastTenseMessage":{"value":"Read main.go"},"isComplete":true},
		{"kind":"toolInvocationSerialized","toolCallId":"t2","toolId":"copilot_findFiles","invocationMessage":"Searching","pastTenseMessage":"2 matches","isComplete":true},
		{"kind":"toolInvocationSerialized","toolCallId":"t3","toolId":"copilot_other","invocationMessage":"Doing","pastTenseMessage":"Done","isComplete":true},
		{"kind":"toolInvocationSerialized","toolCallId":"t4","toolId":"run_in_terminal","invocationMessage":"Running","isComplete":true,"toolSpecificData":{"kind":"terminal","commandLine":{"original":"go vet"}}},
		{"value":"So it is."}]`
	const stated = `{"result":{"metadata":{"toolCallRounds":[
		{"response":"","toolCalls":[{"id":"t1__vscode-1","name":"read_file","arguments":"{\"filePath\":\"/src/main.go\",\"startLine\":1}"},{"id":"t2__vscode-2","name":"file_search","arguments":"{\"query\":\"*.go\"}"}]},
		{"response":"So it is.","toolCalls":[{"id":"t3__vscode-3","name":"other","arguments":"{cut"},{"id":"t4__vscode-4","name":"run_in_terminal","arguments":"{\"command\":\"go vet\",\"goal\":\"vet\"}"}]}],
		"toolCallResults":{
			"t1__vscode-1":{"content":[{"$mid":21,"value":"package main"}]},
			"t2__vscode-2":{"content":[{"$mid":22,"value":{"node":{"type":1,"children":[{"type":2,"text":"2 matches","lineBreakBefore":true},{"type":1,"children":[{"type":2,"text":"a.go","lineBreakBefore":true},{"type":2,"text":", b.go"}]}]}}}]},
			"t4__vscode-4":{"content":[{"value":"\u001b[32mok\u001b[0m"}]}}}}}`
	model := func(metadata string) *Message { return with(object("assistant", answer), metadata) }
	items := collect(t, Options{}, model(stated))
	require.Equal(t, `→ copilot_readFile /src/main.go
  about Reading main.go
  rest {"startLine":1}
  ← Read main.go package main @1
→ copilot_findFiles *.go
  about Searching
  ← 2 matches a.go, b.go @1
→ copilot_other Doing
  ← Done @1
→ run_in_terminal go vet
  ← ok @1
answer: So it is.
`, shown(items))
	for _, metadata := range []string{`{"result":1}`, `{"result":{"metadata":{"toolCallRounds":{},"toolCallResults":[]}}}`, `{"result":{"metadata":{"toolCallRounds":[1,{"toolCalls":1},{"toolCalls":[1,{"id":1,"arguments":{}}]}]}}}`} {
		require.Equal(t, "→ copilot_readFile Reading main.go\n  ← Read main.go @1\n→ copilot_findFiles Searching\n  ← 2 matches @1\n→ copilot_other Doing\n  ← Done @1\n→ run_in_terminal go vet\n  ← @1\nanswer: So it is.\n", shown(collect(t, Options{}, model(metadata))), metadata)
	}
}

// An answer with many calls takes time and memory by their number, and not by its square.
func TestManyRounds(t *testing.T) {
	const n = 3000
	var calls, results []string
	for i := range n {
		id := fmt.Sprintf("t%d__vscode-%d", i, i)
		calls = append(calls, `{"id":"`+id+`","arguments":"{}"}`)
		results = append(results, `"`+id+`":{"content":[{"value":"done"}]}`)
	}
	metadata := []byte(`{"result":{"metadata":{"toolCallRounds":[{"toolCalls":[` + strings.Join(calls, ",") + `]}],"toolCallResults":{` + strings.Join(results, ",") + `}}}}`)
	var rounds map[string]round
	allocated := structuretest.Allocated(func() { rounds = roundsOf(metadata) })
	require.Len(t, rounds, n)
	require.Equal(t, "done", rounds[fmt.Sprint("t", n-1)].output)
	require.Less(t, allocated, uint64(n*2048))
}
