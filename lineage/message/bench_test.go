package message_test

import (
	"testing"

	"github.com/lineage-store/lineage/lineage/message"
)

// Benchmark decodes and encodes a history of 3,000 messages with 1,000 calls.
func Benchmark(b *testing.B) {
	bodies := map[message.Dialect][]string{
		message.OpenAI: {`{"role":"user","content":"What is a directed acyclic graph, and where is one used?"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"search","arguments":"{\"q\":\"dag\"}"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":"A graph whose edges have a direction, and lead back to no node."}`},
		message.UI: {`{"id":"a","role":"user","parts":[{"type":"text","text":"What is a directed acyclic graph, and where is one used?"}]}`,
			`{"id":"b","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-search","toolCallId":"c","state":"output-available","input":{"q":"dag"},"output":"A graph whose edges have a direction."}]}`,
			`{"id":"c","role":"assistant","parts":[{"type":"text","text":"A graph whose edges have a direction, and lead back to no node."}]}`},
	}
	for from, items := range bodies {
		for _, to := range []message.Dialect{message.OpenAI, message.Anthropic, message.UI} {
			b.Run(string(from)+" as "+string(to), func(b *testing.B) {
				for b.Loop() {
					var history []message.Message
					for range 1000 {
						for _, item := range items {
							history = append(history, message.Decode([]byte(item), "application/json", "user")...)
						}
					}
					encode(b, to, history)
				}
			})
		}
	}
}
