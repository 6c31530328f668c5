package message_test

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/message"
)

func Example() {
	var history []message.Message
	for _, stored := range []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Is it warm in Oslo?"}]}`,
		`{"type":"function_call","call_id":"c1","name":"weather","arguments":"{\"city\":\"Oslo\"}"}`,
		`{"type":"function_call_output","call_id":"c1","output":"3 degrees"}`,
	} {
		history = append(history, message.Decode([]byte(stored), "application/json", "")...)
	}
	request, err := message.Encode(message.Anthropic, history)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range request.Items {
		fmt.Println(string(item))
	}
	fmt.Println(len(request.Losses), "losses")
	// Output:
	// {"role":"user","content":"Is it warm in Oslo?"}
	// {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"weather","input":{"city":"Oslo"}}]}
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"3 degrees"}]}
	// 0 losses
}
